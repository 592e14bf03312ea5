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

// A notification that is passed on waits for the requests before it: until they are sent or answered, but at most 5
// seconds.
func TestAwaitEarlier(t *testing.T) {
	rows := []struct {
		tool    string
		release bool // the call
		want    time.Duration
	}{{"hold", false, 5 * time.Second}, {"hold", true, 0}, {"sent-hold", false, 0}}
	for _, row := range rows {
		synctest.Test(t, func(t *testing.T) {
			srv := newServer()
			e := edge.New(edge.Options{})
			in, feed := io.Pipe()
			done := make(chan error, 1)
			go func() { done <- e.ServeStdio(t.Context(), in, io.Discard, srv) }()
			fmt.Fprintln(feed, call("1", row.tool, "{}"))
			fmt.Fprintln(feed, `{"jsonrpc":"2.0","method":"notifications/pass"}`)
			fmt.Fprintln(feed, call("2", "echo", "{}"))
			synctest.Wait()
			if got := srv.log(); !slices.Contains(got, "tools/call:echo") {
				t.Errorf("%s: got %q served at once, want the call behind the notification, too", row.tool, got)
			}
			if row.release {
				close(srv.release)
			}
			began := time.Now()
			for !slices.Contains(srv.log(), "passed") && time.Since(began) < time.Minute {
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
			}
			if got := time.Since(began) - row.want; got < -100*time.Millisecond || got > 200*time.Millisecond {
				t.Errorf("%s: passed on after %v, want %v", row.tool, time.Since(began), row.want)
			}
			if !row.release {
				close(srv.release)
			}
			feed.Close()
			if err := <-done; err != nil {
				t.Errorf("ServeStdio: got %v, want nil", err)
			}
			stop(t, e)
		})
	}
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
