package proxy_test

import (
	"strings"
	"testing"
	"time"
)

// A list that no server gives in time is an error, never an empty list, whoever's time is over first.
func TestSlowLists(t *testing.T) {
	for _, transport := range []string{overHTTP, overPipe} {
		slow, ignorant := filled(1), newServer()
		slow.on = func(r *request) bool {
			if strings.HasSuffix(r.Method, "list") {
				<-r.ctx.Done()
			}
			return false
		}
		w := newWorld(t, func(o *setup) { o.config.ListDeadline = 100 * time.Millisecond }, place{"slow", transport, slow, ""})
		with := newWorld(t, func(o *setup) { o.config.ListDeadline = 100 * time.Millisecond },
			place{"slow", transport, slow, ""}, place{"ignorant", transport, ignorant, ""})
		c, both, single := w.dial(proxyPath), with.dial(proxyPath), w.dial("/servers/slow/mcp")
		for _, kind := range kinds {
			for range 2 { // also where the answer is known from the last time
				a := c.do(kind[0], "")
				if !strings.Contains(a.err, `"code":-32000`) || !strings.Contains(a.err, `"reason":"timeout"`) || !strings.Contains(a.err, `"server":"slow"`) {
					t.Errorf("%s %s: got %s %s, want -32000 timeout", transport, kind[0], a.result, a.err)
				}
			}
			if a := both.do(kind[0], ""); a.err != "" || !strings.Contains(a.result, `:[]`) {
				t.Errorf("%s %s, with a server that answers: got %s %s, want its list", transport, kind[0], a.result, a.err)
			}
		}
		if a := single.call("nope"); strings.Contains(a.err, "Unknown tool") {
			t.Errorf("%s: a tool of a server that cannot be listed: got %s, want the server to tell", transport, a.err)
		}
		w.stop()
		with.stop()
	}
}
