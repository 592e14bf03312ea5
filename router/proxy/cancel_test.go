package proxy_test

import (
	"context"
	"errors"
	"slices"
	"strings"
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

// A cancellation goes to the server that handles the request, with the server's id for it and all that the client said;
// the client gets no response.
func TestCancel(t *testing.T) {
	for _, transport := range transports {
		s := newServer("hang")
		started, ended := hanging(s)
		w := newWorld(t, nil, place{"s", transport, s, ""})
		c, other := w.dial(proxyPath), w.dial(proxyPath)
		call := c.start(`7`, "tools/call", `{"name":"s__hang"}`)
		text, theirs := c.start(`"7"`, "tools/call", `{"name":"s__hang"}`), other.start(`7`, "tools/call", `{"name":"s__hang"}`)
		for range 3 {
			receive(t, "the call", started)
		}
		c.notify("notifications/cancelled", `{"requestId":7,"reason":"b\u00f6red","future":{"n":9007199254740993}}`)
		r := receive(t, "the end of the call", ended)
		mcptest.Eventually(t, "the cancellation", func() bool { return len(s.got("notifications/cancelled")) > 0 })
		if c.wait(call); call.result+call.err+call.refused != "" || call.status != 200 {
			t.Errorf("%s: got %d %s%s%s, want 200 and no response", transport, call.status, call.result, call.err, call.refused)
		}
		want := `{"requestId":` + string(r.ID) + `,"reason":"b\u00f6red","future":{"n":9007199254740993}}`
		if got := s.got("notifications/cancelled"); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: got %q at the server, want %s", transport, got, want)
		}
		for _, left := range []*answer{text, theirs} {
			select {
			case <-left.done:
				t.Errorf("%s: got the end of another request, want it to go on", transport)
			default:
			}
		}
		w.stop()
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
	const why = "bored"
	c.notify("notifications/cancelled", `{"requestId":1,"reason":"`+why+`"}`)
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
	got := strings.Join(s.got("notifications/cancelled"), "\n") // the router may give up a list meanwhile
	if strings.Contains(got, why) {
		t.Errorf("at the server: got %s, want no word of what it never saw", got)
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
