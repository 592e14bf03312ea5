package link_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// A request counts as sent once the server's end has taken it, not when it is queued.
func TestSentWhenWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan struct{})
		s := connect(t, link.Target{Dial: func(context.Context) (io.ReadWriteCloser, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				lines := bufio.NewReaderSize(theirs, 16)
				for {
					line, err := lines.ReadBytes('\n')
					if err != nil {
						return
					}
					m, _ := jsonrpc.Parse(line)
					if m.IsRequest() {
						fmt.Fprintf(theirs, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25"}}`+"\n", m.ID)
					} else if m.Method == "notifications/initialized" {
						<-read
					}
				}
			}()
			return ours, nil
		}}, &listener{}, 1<<20)
		var sent atomic.Int64
		done := make(chan error, 1)
		go func() {
			_, err := s.Call(t.Context(), &link.Call{Method: "tools/call", Sent: func() { sent.Add(1) }})
			done <- err
		}()
		synctest.Wait()
		if n := sent.Load(); n != 0 {
			t.Errorf("before the server reads: got %d, want the request not to count as sent", n)
		}
		close(read)
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := sent.Load(); n != 1 {
			t.Errorf("after the answer: got %d, want 1", n)
		}
	})
}

// A session that ends sends the cancellations of its calls before, also to a server that is slow to read them.
func TestCancelledBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 1)
		s := connect(t, pipe(func(conn net.Conn, lines *bufio.Reader) {
			for m, ok := next(lines); ok; m, ok = next(lines) {
				switch m.Method {
				case "initialize":
					fmt.Fprintf(conn, welcome, m.ID)
				case "notifications/cancelled":
					got <- string(m.Params)
				case "tools/call":
					time.Sleep(100 * time.Millisecond)
				}
			}
			close(got)
		}), &listener{}, 1<<20)
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		calls.Go(func() { _, _ = s.Call(ctx, &link.Call{Method: "tools/call"}) }) // it is cancelled
		synctest.Wait()
		cancel()
		calls.Wait()
		s.Close()
		if params := <-got; !strings.Contains(params, "requestId") {
			t.Errorf("got the cancellation %q, want one of the call", params)
		}
	})
}

// A notification that is still queued when its context or its session ends is not written, and its sender is told.
func TestQueuedNotificationIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed, got := make(chan struct{}), []string{}
		var served sync.WaitGroup
		s := connect(t, pipe(func(conn net.Conn, lines *bufio.Reader) {
			served.Add(1)
			defer served.Done()
			for m, ok := next(lines); ok; m, ok = next(lines) {
				switch got = append(got, m.Method); m.Method {
				case "initialize":
					fmt.Fprintf(conn, welcome, m.ID)
				case "notifications/busy":
					<-proceed
				}
			}
		}), &listener{}, 1<<20)
		if err := s.Notify(t.Context(), "notifications/busy", nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		errs := map[string]error{}
		var mu sync.Mutex
		var senders sync.WaitGroup
		notify := func(ctx context.Context, method string) {
			senders.Go(func() {
				err := s.Notify(ctx, method, nil)
				mu.Lock()
				defer mu.Unlock()
				errs[method] = err
			})
			synctest.Wait()
		}
		notify(ctx, "begun")
		notify(ctx, "cancelled")
		notify(t.Context(), "late")
		cancel()
		synctest.Wait()
		s.CloseWithin(0)
		senders.Wait()
		close(proceed)
		served.Wait()
		if errs["begun"] != nil || !errors.Is(errs["cancelled"], context.Canceled) || errs["late"] == nil {
			t.Errorf("got %v, want errors of those that were queued", errs)
		}
		if slices.Contains(got, "cancelled") || slices.Contains(got, "late") {
			t.Errorf("the server got %q, want nothing that was queued", got)
		}
	})
}
