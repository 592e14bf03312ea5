package proxy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// handle serves one POST without a connection in between.
func (w *world) handle(session, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, proxyPath, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	rec := httptest.NewRecorder()
	w.http.Config.Handler.ServeHTTP(rec, r)
	return rec
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what pools still held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Calls that are never answered expire. While they wait no more are tracked than may be, and afterwards
// nothing is left of them; nor of their sessions once those have ended.
func TestCallsThatNeverAnswer(t *testing.T) {
	const sessions, perSession, tracked = 200, 10, 600
	var places []place
	for i := range 3 {
		s := newServer("hang")
		s.on = func(r *request) bool {
			if r.name() == "hang" {
				<-r.ctx.Done()
			}
			return r.name() == "hang"
		}
		places = append(places, place{fmt.Sprint("s", i), overPipe, s, downstream.SessionPerClient})
	}
	w := newWorld(t, func(o *setup) {
		o.quiet = true
		o.config.Timeout = 3 * time.Second
		o.config.ListDeadline = time.Minute // opening many sessions at once is not the matter here
		o.edge.Limits = limit.Config{TrackedRequests: tracked}
	}, places...)
	forget := func() {
		for _, p := range places {
			p.server.change(func() { p.server.received, p.server.headers = nil, nil })
		}
	}
	mcptest.Eventually(t, "the router's own sessions", func() bool {
		return len(places[0].server.all())+len(places[1].server.all())+len(places[2].server.all()) == 3
	})
	bare := runtime.NumGoroutine()
	var ids [sessions]string
	var wg sync.WaitGroup
	for i := range ids {
		if wg.Go(func() {
			ids[i] = w.handle("", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+initializeParams+`}`).Header().Get("Mcp-Session-Id")
		}); i%50 == 49 {
			wg.Wait()
		}
	}
	wg.Wait()
	round := func() (expired, refused int64) {
		var e, r atomic.Int64
		most := 0
		for n := range sessions * perSession {
			wg.Go(func() {
				body := w.handle(ids[n%sessions], fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"s%d__hang"}}`, n/sessions, n%3)).Body.String()
				switch {
				case strings.Contains(body, `"reason":"timeout"`):
					e.Add(1)
				case strings.Contains(body, `"code":-32000,"message":"The router is overloaded"`):
					r.Add(1)
				default:
					t.Errorf("got %s, want a timeout or overloaded", body)
				}
			})
			if n%100 == 0 {
				most = max(most, w.edge.Tracked())
			}
		}
		mcptest.Eventually(t, "the refusals", func() bool {
			most = max(most, w.edge.Tracked())
			return r.Load()+e.Load() >= sessions*perSession-tracked || r.Load() > 0 && e.Load() > 0
		})
		wg.Wait()
		if most > tracked+runtime.GOMAXPROCS(0)*4 { // a request is counted before it is refused
			t.Errorf("tracked: got %d at once, want %d at most", most, tracked)
		}
		forget()
		return e.Load(), r.Load()
	}
	round()
	mcptest.Eventually(t, "the end of the calls", func() bool { return w.edge.Tracked() == 0 })
	goroutines := runtime.NumGoroutine()
	for range 200 { // cancellations are on their way for a moment
		time.Sleep(5 * time.Millisecond)
		goroutines = min(goroutines, runtime.NumGoroutine())
	}
	forget()
	before := heap()
	expired, refused := round()
	after, left := runtime.NumGoroutine(), w.edge.Tracked()
	for end := time.Now().Add(20 * time.Second); (left > 0 || after > goroutines) && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		after, left = runtime.NumGoroutine(), w.edge.Tracked()
	}
	forget()
	grown := int64(heap()) - int64(before)
	t.Logf("%d expired, %d refused; heap %d KiB and %+d KiB, goroutines %d and %+d", expired, refused, before>>10, grown>>10, goroutines, after-goroutines)
	if expired == 0 || refused == 0 || expired+refused != sessions*perSession {
		t.Errorf("got %d expired and %d refused, want some of each and %d in all", expired, refused, sessions*perSession)
	}
	if left != 0 || after > goroutines {
		t.Errorf("after expiry: got %d tracked and %d goroutines, want none and %d", left, after, goroutines)
	}
	if grown > 4<<20 {
		t.Errorf("after expiry: got %d bytes more in use, want memory flat", grown)
	}
	for i, id := range ids {
		wg.Go(func() {
			r := httptest.NewRequest(http.MethodDelete, proxyPath, nil)
			r.Header.Set("Mcp-Session-Id", id)
			w.http.Config.Handler.ServeHTTP(httptest.NewRecorder(), r)
		})
		if i%100 == 99 {
			wg.Wait()
		}
	}
	wg.Wait()
	mcptest.Eventually(t, "the end of the sessions", func() bool { return w.edge.Sessions() == 0 && runtime.NumGoroutine() <= bare+8 })
}
