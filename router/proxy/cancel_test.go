package proxy_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

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
		for range 30 {
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
		t.Logf("%s: %d of 30 were cancelled", transport, cancelled)
		if len(c.surplus) > 0 {
			t.Errorf("%s: got surplus %q, want none", transport, c.surplus)
		}
		w.stop()
	}
}
