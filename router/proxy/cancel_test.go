package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// hanging makes the server's tool hang wait until it is cancelled; it then answers nevertheless, as servers
// may. Each call is told on the channel.
func hanging(s *server) (started, ended chan *request) {
	started, ended = make(chan *request, 1000), make(chan *request, 1000)
	s.on = func(r *request) bool {
		if r.name() != "hang" {
			return false
		}
		started <- r
		<-r.ctx.Done()
		ended <- r
		if r.peer.ctx.Err() == nil {
			r.result(`{"content":[],"late":true}`)
		}
		return true
	}
	return started, ended
}

func receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(deadline):
		t.Fatalf("waited %v for %s", deadline, what)
		panic("unreachable")
	}
}

// A cancellation goes to the one server that handles the request, with the server's id for it and all that
// the client said; the client gets no response.
func TestCancel(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			one, two := newServer("hang"), newServer("hang")
			started, ended := hanging(one)
			startedTwo, _ := hanging(two)
			w := newWorld(t, nil, place{"one", transport, one, ""}, place{"two", transport, two, ""})
			a, b := w.dial(proxyPath), w.dial(proxyPath)
			call := a.start(`7`, "tools/call", `{"name":"one__hang"}`)
			other := b.start(`7`, "tools/call", `{"name":"one__hang"}`)
			text := a.start(`"7"`, "tools/call", `{"name":"two__hang"}`)
			receive(t, "the call", started)
			receive(t, "the call", started)
			receive(t, "the call", startedTwo)
			began := time.Now()
			if status := a.notify("notifications/cancelled", `{"requestId":7,"reason":"b\u00f6red","future":{"n":9007199254740993}}`); status != 202 {
				t.Errorf("status: got %d, want 202", status)
			}
			r := receive(t, "the end of the call", ended)
			mcptest.Eventually(t, "the cancellation", func() bool { return len(one.got("notifications/cancelled")) > 0 })
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("cancellation: got it after %v, want it at once", took)
			}
			if a.wait(call); call.result+call.err+call.refused != "" || call.status != 200 {
				t.Errorf("the cancelled request: got %d %s%s%s, want 200 and no response", call.status, call.result, call.err, call.refused)
			}
			want := `{"requestId":` + string(r.ID) + `,"reason":"b\u00f6red","future":{"n":9007199254740993}}`
			if got := one.got("notifications/cancelled"); !slices.Equal(got, []string{want}) {
				t.Errorf("at the server: got %q, want %s", got, want)
			}
			if got := two.got("notifications/cancelled"); len(got) > 0 {
				t.Errorf("at the other server: got %q, want nothing", got)
			}
			for what, left := range map[string]*answer{"another client's of the same id": other, `the one with the id "7"`: text} {
				select {
				case <-left.done:
					t.Errorf("%s: got an end, want it to go on", what)
				default:
				}
			}
			a.notify("notifications/cancelled", `{"requestId":"7"}`)
			a.wait(text)
			mcptest.Eventually(t, "the second cancellation", func() bool { return len(two.got("notifications/cancelled")) == 1 })
			if a.call("one__hang2").err == "" || len(a.surplus) > 0 {
				t.Errorf("surplus: got %q, want nothing after a cancelled request", a.surplus)
			}
		})
	}
}

// A cancellation of what is not in flight goes nowhere, is accepted, and is logged.
func TestCancelUnknown(t *testing.T) {
	s := newServer("hang", "echo")
	started, _ := hanging(s)
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	a, b := w.dial(proxyPath), w.dial(proxyPath)
	theirs := b.start(`"theirs"`, "tools/call", `{"name":"s__hang"}`)
	receive(t, "the call", started)
	done := a.start(`"done"`, "tools/call", `{"name":"s__echo"}`)
	a.wait(done)
	for params, id := range map[string]string{
		`{"requestId":99}`:              "99",
		`{"requestId":"never"}`:         "never",
		`{"requestId":"done"}`:          "done",
		`{"requestId":"theirs"}`:        "theirs",
		`{"requestId":1.5}`:             "1.5",
		`{"requestId":{}}`:              "{}",
		`{"requestId":"two\nlines"}`:    `two\\nlines`,
		`{"reason":"which?"}`:           "null",
		`{"requestId":null,"reason":1}`: "null",
	} {
		if status := a.notify("notifications/cancelled", params); status != 202 {
			t.Errorf("%s: got %d, want 202", params, status)
		}
		if want := "Cannot route cancellation for unknown request " + id; !w.logs.Has(want) {
			t.Errorf("%s: got no such line, want %q", params, want)
		}
	}
	nobody := w.newClient(proxyPath)
	if status := nobody.notify("notifications/cancelled", `{"requestId":"sessionless"}`); status != 202 || !w.logs.Has("unknown request sessionless") {
		t.Errorf("without a session: got %d, want 202 and a line", status)
	}
	a.do("ping", "")
	if got := s.got("notifications/cancelled"); len(got) > 0 {
		t.Errorf("at the server: got %q, want nothing", got)
	}
	select {
	case <-theirs.done:
		t.Errorf("another client's request: got an end, want it to go on")
	default:
	}
}

// A call that waits for its server to connect is cancelled, too, and never starts.
func TestCancelQueued(t *testing.T) {
	s := newServer("echo")
	dialled, open := make(chan struct{}, 10), make(chan struct{})
	s.dial = func(ctx context.Context) error {
		dialled <- struct{}{}
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return errors.New("too late")
		}
	}
	w := newWorld(t, func(o *setup) { o.config.ListDeadline = 20 * time.Millisecond },
		place{"ok", overHTTP, newServer("echo"), ""}, place{"s", overPipe, s, ""})
	c := w.dial(proxyPath)
	receive(t, "the connection", dialled)
	call := c.start(`1`, "tools/call", `{"name":"s__echo"}`)
	mcptest.Eventually(t, "the call", func() bool { return w.edge.Tracked() == 1 })
	c.notify("notifications/cancelled", `{"requestId":1}`)
	c.wait(call)
	if call.result+call.err != "" {
		t.Errorf("the cancelled request: got %s%s, want no response", call.result, call.err)
	}
	close(open)
	after := c.call("s__echo")
	if after.result == "" {
		t.Errorf("the next call: got error %s, want a result", after.err)
	}
	if got := s.got("tools/call"); len(got) != 1 {
		t.Errorf("at the server: got %d calls, want 1: the cancelled one never starts", len(got))
	}
	if got := s.got("notifications/cancelled"); len(got) > 0 {
		t.Errorf("at the server: got %q, want no word of what it never saw", got)
	}
}

// Whichever of response and cancellation comes first wins; nothing follows it.
func TestCancelRacesResponse(t *testing.T) {
	for _, transport := range transports {
		s := newServer("echo")
		w := newWorld(t, func(o *setup) { o.quiet = true }, place{"s", transport, s, ""})
		c := w.dial(proxyPath)
		c.call("s__echo")
		cancelled := 0
		for range 100 {
			a := c.beginCall("s__echo")
			if status := c.notify("notifications/cancelled", `{"requestId":`+a.id+`}`); status != 202 {
				t.Fatalf("%s: got status %d, want 202", transport, status)
			}
			c.wait(a)
			if a.err != "" {
				t.Errorf("%s: got error %s, want a result or nothing", transport, a.err)
			}
			if a.result == "" {
				cancelled++
			}
		}
		t.Logf("%s: %d of 100 were cancelled", transport, cancelled)
		if len(c.surplus) > 0 {
			t.Errorf("%s: got surplus %q, want none", transport, c.surplus)
		}
		w.stop()
	}
}

// The end of a session cancels what it has in flight, and only that.
func TestLeavingCancels(t *testing.T) {
	for _, transport := range transports {
		s := newServer("hang", "echo")
		started, ended := hanging(s)
		w := newWorld(t, nil, place{"s", transport, s, ""})
		a, b := w.dial(proxyPath), w.dial(proxyPath)
		a.beginCall("s__hang")
		stays := b.beginCall("s__hang")
		receive(t, "the call", started)
		receive(t, "the call", started)
		a.leave()
		receive(t, "the cancellation", ended)
		select {
		case <-stays.done:
			t.Errorf("%s: the other client's call: got an end, want it to go on", transport)
		case r := <-ended:
			t.Errorf("%s: got call %s ended, want only the one of the session that ended", transport, r.ID)
		default:
		}
		if got := b.call("s__echo"); got.result == "" {
			t.Errorf("%s: got %s, want a result: the server serves the other client", transport, got.err)
		}
		if n := w.edge.Sessions(); n != 1 {
			t.Errorf("%s: got %d sessions, want 1", transport, n)
		}
		w.stop()
	}
}

// A connection that closes is no cancellation in the eras with sessions.
func TestClosedConnectionDoesNotCancel(t *testing.T) {
	s := newServer("hang", "echo")
	started, ended := hanging(s)
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	c := w.dial(proxyPath)
	gone := w.newClient(proxyPath)
	gone.header = c.header.Clone()
	gone.start(`"x"`, "tools/call", `{"name":"s__hang"}`)
	receive(t, "the call", started)
	gone.close()
	c.call("s__echo")
	select {
	case <-ended:
		t.Errorf("got the call cancelled, want it to go on")
	default:
	}
	c.notify("notifications/cancelled", `{"requestId":"x"}`)
	receive(t, "the cancellation", ended)
}

// The server's own time limits send a cancellation, too.
func TestTimeoutCancels(t *testing.T) {
	s := newServer("hang", "busy")
	started, ended := hanging(s)
	on := s.on
	s.on = func(r *request) bool {
		if r.name() == "busy" { // progress is a sign of life
			for i := range 8 {
				time.Sleep(20 * time.Millisecond) // shorter than the limit, in all longer
				r.progress(`"progress":` + string(rune('1'+i)))
			}
			r.result(`{"content":[]}`)
			return true
		}
		return on(r)
	}
	w := newWorld(t, func(o *setup) { o.config.Timeout = 100 * time.Millisecond }, place{"s", overHTTP, s, ""})
	c := w.dial(proxyPath)
	a := c.call("s__hang")
	receive(t, "the call", started)
	r := receive(t, "the cancellation", ended)
	if want := `"data":{"server":"s","reason":"timeout","retryable":true}`; !strings.Contains(a.err, want) || !strings.Contains(a.err, `"code":-32000`) {
		t.Errorf("got %s %s, want -32000 with %s", a.result, a.err, want)
	}
	mcptest.Eventually(t, "the cancellation", func() bool { return len(s.got("notifications/cancelled")) > 0 })
	if got := s.got("notifications/cancelled")[0]; string(jsonrpc.Get([]byte(got), "requestId")) != string(r.ID) {
		t.Errorf("cancellation: got %s, want request %s", got, r.ID)
	}
	if a := c.call("s__busy"); a.result == "" {
		t.Errorf("a call with progress: got %s, want a result", a.err)
	}
}

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
