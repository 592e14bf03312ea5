package edge_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// Every notification arrives on the stream of its own request, in order, before the response.
func TestNotificationsPrecedeTheirResponse(t *testing.T) {
	const callers, rounds, n = 4, 50, 100
	check := func(t *testing.T, id string, next func() string) {
		for i := range n {
			want := string(progress([]byte(id), i))
			if got := next(); got != want {
				t.Errorf("message %d of %s: got %s, want %s", i, id, got, want)
				return
			}
		}
		if got, want := next(), `{"jsonrpc":"2.0","id":`+id+`,"result":{"done":true}}`; got != want {
			t.Errorf("response of %s: got %s, want %s", id, got, want)
		}
	}
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		t.Run("streamable "+version, func(t *testing.T) {
			w := newWire(t, edge.Options{})
			h := w.open(version)
			var wg sync.WaitGroup
			for c := range callers {
				wg.Go(func() {
					for r := range rounds {
						id := fmt.Sprint(c*1000 + r)
						resp := w.do(context.Background(), "POST", "/mcp", call(id, "burst", "{}"), h)
						ev := readEvents(t, resp.Body)
						check(t, id, ev.message)
						if f, more := ev.next(); more {
							t.Errorf("after the response: got %+v, want the end", f)
						}
						resp.Body.Close()
					}
				})
			}
			wg.Wait()
		})
	}
	// shared runs the same on a transport with one stream for all.
	shared := func(t *testing.T, send func(string), next func() string) {
		lanes := map[string]chan string{}
		for c := range callers {
			for r := range rounds {
				lanes[fmt.Sprint(c*1000+r)] = make(chan string, n+1)
			}
		}
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for r := range rounds {
					id := fmt.Sprint(c*1000 + r)
					send(call(id, "burst", "{}"))
					check(t, id, func() string { return <-lanes[id] })
				}
			})
		}
		for range callers * rounds * (n + 1) {
			m := next()
			_, id, found := strings.Cut(m, `"progressToken":`)
			if !found {
				_, id, _ = strings.Cut(m, `"id":`)
			}
			id, _, _ = strings.Cut(id, ",")
			lanes[id] <- m
		}
		wg.Wait()
	}
	t.Run("sse", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		c := w.sse(nil)
		shared(t, func(m string) {
			if status, body := c.post(m, nil); status != 202 {
				t.Errorf("POST: got %d %s, want 202", status, body)
			}
		}, c.events.message)
	})
	t.Run("stdio", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		p := newStdio(t, w.edge, w.srv)
		var mu sync.Mutex
		shared(t, func(m string) {
			mu.Lock()
			defer mu.Unlock()
			p.send(m)
		}, p.line)
		p.finish()
	})
}

// On stdio messages are served in the order of arrival: a notification waits for the requests before it, and requests
// wait for the notifications before them.
func TestNotificationsKeepTheirPlace(t *testing.T) {
	w := newWire(t, edge.Options{})
	p := newStdio(t, w.edge, w.srv)
	p.send(call("1", "hold", "{}"))
	p.send(`{"jsonrpc":"2.0","method":"notifications/a"}`)
	p.send(call("2", "echo", "{}"))
	p.send(`{"jsonrpc":"2.0","method":"notifications/b"}`)
	mcptest.Eventually(t, "the held call is served", func() bool { return len(w.srv.log()) == 1 })
	close(w.srv.release)
	p.line()
	p.line()
	p.finish()
	want := []string{"tools/call:hold", "notifications/a", "tools/call:echo", "notifications/b"}
	if got := w.srv.log(); !slices.Equal(got, want) {
		t.Errorf("order of serving: got %q, want %q", got, want)
	}
}

func TestSentLetsNotificationsPass(t *testing.T) {
	w := newWire(t, edge.Options{})
	p := newStdio(t, w.edge, w.srv)
	p.send(call("1", "sent-hold", "{}"))
	p.send(`{"jsonrpc":"2.0","method":"notifications/a"}`)
	mcptest.Eventually(t, "the notification passes the request that was handed on", func() bool {
		return slices.Contains(w.srv.log(), "notifications/a")
	})
	close(w.srv.release)
	p.line()
	p.finish()
}

func TestRequestsWaitForSlowNotifications(t *testing.T) {
	for _, transport := range []string{"streamable", "sse", "stdio"} {
		t.Run(transport, func(t *testing.T) {
			w := newWire(t, edge.Options{})
			const slow = `{"jsonrpc":"2.0","method":"notifications/slow"}`
			var wait func()
			switch transport {
			case "streamable":
				h := w.open("2025-06-18")
				if status, _, body := w.post(slow, h); status != 202 || body != "" {
					t.Fatalf("notification: got %d %q, want 202 and no body", status, body)
				}
				done := make(chan struct{})
				go func() {
					w.post(call("1", "echo", "{}"), h)
					close(done)
				}()
				wait = func() { <-done }
			case "sse":
				c := w.sse(nil)
				c.post(slow, nil)
				c.post(call("1", "echo", "{}"), nil)
				wait = func() { c.events.message() }
			case "stdio":
				p := newStdio(t, w.edge, w.srv)
				p.send(slow)
				p.send(call("1", "echo", "{}"))
				wait = func() { p.line(); p.finish() }
			}
			mcptest.Eventually(t, "the request is in flight", func() bool { return w.edge.Tracked() == 1 })
			if got := w.srv.log(); slices.Contains(got, "tools/call:echo") {
				t.Errorf("while the notification is being served: got %q, want no call", got)
			}
			close(w.srv.release)
			wait()
		})
	}
}

// The queue of notifications is bounded. Notifications beyond the bound are refused.
func TestTooManyNotifications(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	w.post(`{"jsonrpc":"2.0","method":"notifications/slow"}`, h)
	mcptest.Eventually(t, "the first is served", func() bool { return len(w.srv.log()) == 1 })
	refused := 0
	for range 1010 {
		status, _, body := w.post(`{"jsonrpc":"2.0","method":"notifications/x"}`, h)
		switch status {
		case 202:
		case 503:
			refused++
			checkError(t, body, "null", -32000)
		default:
			t.Fatalf("got %d %s, want 202 or 503", status, body)
		}
	}
	if refused != 10 {
		t.Errorf("refused: got %d of 1,010, want 10", refused)
	}
	close(w.srv.release)
	mcptest.Eventually(t, "all others are served", func() bool { return len(w.srv.log()) == 1001 })
}

// After 5 seconds a notification no longer waits for a request that is not passed on, nor a request for a notification
// that is not served.
func TestOrderIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer()
		e := edge.New(edge.Options{})
		in, feed := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- e.ServeStdio(t.Context(), in, io.Discard, srv) }()
		began := time.Now()
		served := func(name string, want time.Duration) {
			t.Helper()
			for !slices.Contains(srv.log(), name) && time.Since(began) < time.Minute {
				time.Sleep(100 * time.Millisecond)
			}
			if got := time.Since(began); got < want || got > want+200*time.Millisecond {
				t.Errorf("%s: served after %v, want %v", name, got, want)
			}
		}
		fmt.Fprintln(feed, call("1", "hold", "{}"))
		fmt.Fprintln(feed, `{"jsonrpc":"2.0","method":"notifications/slow"}`)
		fmt.Fprintln(feed, call("2", "echo", "{}"))
		served("tools/call:hold", 0)
		served("tools/call:echo", 5*time.Second) // it came 0 s before, too
		served("notifications/slow", 5*time.Second)
		close(srv.release)
		feed.Close()
		if err := <-done; err != nil {
			t.Errorf("ServeStdio: got %v, want nil", err)
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
	})
}

// Of more than 1,000 unwritten notifications the oldest are dropped. The response still comes last.
func TestFullQueueKeepsTheNewest(t *testing.T) {
	const n = 200_000
	w := newWire(t, edge.Options{})
	p := newStdio(t, w.edge, w.srv)
	p.send(call("1", "burst", fmt.Sprintf(`{"n":%d}`, n))) // nobody reads yet
	mcptest.Eventually(t, "the burst is over", func() bool { return len(w.srv.log()) == 1 && w.edge.Tracked() == 0 })
	var got []string
	for {
		line := p.line()
		got = append(got, line)
		if strings.Contains(line, `"result"`) {
			break
		}
	}
	// What was taken for writing before the queue was full comes on top.
	if len(got) < 1001 || len(got) > 1001+2*64 {
		t.Errorf("messages: got %d, want 1,001 and those that were being written", len(got))
	}
	for i, line := range got[len(got)-1001 : len(got)-1] {
		if want := string(progress([]byte("1"), n-1000+i)); line != want {
			t.Fatalf("notification %d from the end: got %s, want %s", 1000-i, line, want)
		}
	}
	p.finish()
}
