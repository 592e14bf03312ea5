package proxy_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// finish brings everything to its end and compares what came with what had to.
func (m *model) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle()
	for _, q := range m.questions {
		if q.at != nil && !q.answered && !q.at.left && len(q.replies) == 0 {
			m.answer(q)
		}
		if !q.disturbed {
			m.wait(fmt.Sprintf("the answer to question %d", q.q), func() bool { return len(q.replies) > 0 })
		}
	}
	m.wait("the cancellations", func() bool {
		return !slices.ContainsFunc(m.calls, func(c *modelCall) bool {
			return c.mustEnd && !c.cut && !c.actor.left && c.response == "" && m.cancellations(c) == 0
		})
	})
	m.wait("the end of all calls", func() bool {
		all := true
		for _, c := range m.calls {
			if c.request != nil && c.response == "" {
				m.respond(c, c.n%2 == 0)
			}
			all = all && (c.done() || c.actor.left || c.cancelled && c.actor.lines != nil)
		}
		return all
	})
	for _, c := range m.calls {
		m.checkCall(c)
	}
	for _, q := range m.questions {
		m.checkQuestion(q)
	}
	m.checkAnnouncements()
	m.checkNotes()
	for _, a := range m.actors {
		m.checkStreams(a)
	}
	m.unlocked(m.checkRest)
}

func (m *model) wrong(format string, args ...any) { m.v.Errorf(format, args...) }

func (m *model) checkCall(c *modelCall) {
	c.actor.mu.Lock()
	result, rpcErr := c.answer.result, c.answer.err
	c.actor.mu.Unlock()
	got := result + rpcErr
	what := fmt.Sprintf("call %d of %s to server %d (cancelled %t, cut %t, left %t)", c.n, c.actor.name, c.server, c.cancelled, c.cut, c.actor.left)
	switch {
	case got == "" && !c.cancelled && !c.actor.left:
		m.wrong("%s: got no response, want %s", what, c.response)
	case got != "" && c.mustEnd && !c.cut:
		m.wrong("%s: got %s, want no response: it was cancelled while it waited for its server", what, got)
	case got != "" && got != c.response && !(c.cut && strings.Contains(rpcErr, `"code":-32000`)) && !(c.actor.left && (strings.Contains(rpcErr, `"code":-32000`) || strings.Contains(rpcErr, "session has ended"))):
		m.wrong("%s: got %s, want %s", what, got, c.response)
	}
	if c.mustEnd && !c.cut && !c.actor.left && m.cancellations(c) != 1 {
		m.wrong("%s: got %d cancellations at the server, want 1", what, m.cancellations(c))
	}
	if c.actor.left && c.request != nil {
		r := c.request
		m.wait("the end at the server of "+what, func() bool { return r.ctx.Err() != nil })
	}
}

func (m *model) checkQuestion(q *question) {
	what := fmt.Sprintf("question %d of call %d", q.q, q.call.n)
	want := fmt.Sprintf(`{"q":%d}`, q.q)
	for _, reply := range q.replies {
		if fine := reply == want && q.answered || reply == "" && q.disturbed || strings.Contains(reply, "-32601") && (q.refuse || q.doubt || q.disturbed); !fine {
			m.wrong("%s: got the answer %s, want %s", what, reply, want)
		}
	}
	for i, s := range m.servers {
		for _, value := range q.reports {
			n := 0
			for _, p := range s.got("notifications/progress") {
				if strings.Contains(p, quote(value)) {
					n++
					if token := string(jsonrpc.Get([]byte(p), "progressToken")); token != "1" {
						m.wrong("%s: got progress under the token %s, want the server's own", what, token)
					}
				}
			}
			if wants := i == q.call.server; wants != (n == 1) {
				m.wrong("%s: got the progress %q at server %d %d times, want it once at server %d", what, value, i, n, q.call.server)
			}
		}
	}
}

// heardOf returns the numbers of a server's announcements as a client heard them.
func heardOf(a *actor, server int) (ks []int) {
	for _, raw := range a.heard() {
		msg, _ := jsonrpc.Parse([]byte(raw))
		if msg.Method == "notifications/announce" && string(jsonrpc.Get(msg.Params, "server")) == fmt.Sprint(server) {
			k := 0
			_, _ = fmt.Sscan(string(jsonrpc.Get(msg.Params, "k")), &k) // it is ours
			ks = append(ks, k)
		}
	}
	return ks
}

func (m *model) checkAnnouncements() {
	for i := range m.servers {
		m.announce(i) // the last one shows that nothing is on its way any more
		for _, a := range m.actors {
			var must, may []int
			for _, s := range m.said[i] {
				if s.to != a && s.to != nil {
					continue
				}
				may = append(may, s.k)
				if s.to != nil && s.at == m.restarts[i] && !a.left {
					must = append(must, s.k)
				}
			}
			has := func() bool {
				heard := heardOf(a, i)
				return !slices.ContainsFunc(must, func(k int) bool { return !slices.Contains(heard, k) })
			}
			m.wait(fmt.Sprintf("the announcements %v of server %d to reach %s, which heard %v", must, i, a.name, heardOf(a, i)), has)
			heard := heardOf(a, i)
			for n, k := range heard {
				if !slices.Contains(may, k) || n > 0 && heard[n-1] >= k {
					m.wrong("%s: got the announcements %v of server %d, want among %v, in order", a.name, heard, i, may)
					break
				}
			}
		}
	}
}

// notesAt returns the numbers of a client's notifications as a server has got them.
func (m *model) notesAt(server int, a *actor) (ks []int) {
	for _, p := range m.servers[server].got("notifications/note") {
		if jsonrpc.Text(jsonrpc.Get([]byte(p), "client")) == a.name {
			k := 0
			_, _ = fmt.Sscan(string(jsonrpc.Get([]byte(p), "k")), &k) // it is ours
			ks = append(ks, k)
		}
	}
	return ks
}

func (m *model) checkNotes() {
	for i := range m.servers {
		for _, a := range m.actors {
			ks := func() []int { return m.notesAt(i, a) }
			if m.restarts[i] == 0 && !a.left {
				m.wait(fmt.Sprintf("%d notifications of %s at server %d", a.notes, a.name, i), func() bool { return len(ks()) >= a.notes })
				if len(ks()) != a.notes {
					m.wrong("server %d: got the notifications %v of %s, want each of %d once", i, ks(), a.name, a.notes)
				}
			}
			got := ks()
			for n := 1; n < len(got); n++ {
				if got[n-1] >= got[n] {
					m.wrong("server %d: got the notifications %v of %s, want them in order and each once", i, got, a.name)
					break
				}
			}
		}
	}
}

// checkStreams looks at all that a client received.
func (m *model) checkStreams(a *actor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.surplus) > 0 {
		m.wrong("%s: got the responses %q, want nothing that nobody waits for", a.name, a.surplus)
	}
	seen := map[int][]int{} // progress by call
	look := func(raw string, on *modelCall) {
		msg, _ := jsonrpc.Parse([]byte(raw))
		switch msg.Method {
		case "notifications/progress":
			n, k := -1, 0
			_, _ = fmt.Sscanf(jsonrpc.Text(jsonrpc.Get(msg.Params, "message")), "n%d", &n) // it is ours
			_, _ = fmt.Sscan(string(jsonrpc.Get(msg.Params, "progress")), &k)
			if n < 0 || m.calls[n].actor != a || on != nil && on.n != n || string(jsonrpc.Get(msg.Params, "progressToken")) != m.calls[n].token {
				m.wrong("%s: got %s, which is not for it", a.name, raw)
				return
			}
			seen[n] = append(seen[n], k)
		case "notifications/announce":
			if on != nil {
				m.wrong("%s: got %s on the stream of call %d, want it on its own", a.name, raw, on.n)
			}
		case "sampling/createMessage", "notifications/cancelled":
		default:
			m.wrong("%s: got %s, which nobody sent", a.name, raw)
		}
	}
	for _, raw := range a.loose {
		look(raw, nil)
	}
	for _, c := range m.calls {
		if c.actor != a {
			continue
		}
		for _, raw := range c.answer.notes {
			look(raw, c)
		}
		got := seen[c.n]
		want := c.progress
		if c.token == "" {
			want = 0
		}
		whole := !c.cancelled && !c.cut && !a.left
		inOrder := true
		for i, k := range got {
			inOrder = inOrder && (k == i+1 || !whole && k <= want && (i == 0 || k > got[i-1]))
		}
		if !inOrder || whole && len(got) != want {
			m.wrong("call %d of %s: got the progress %v, want 1 to %d", c.n, a.name, got, want)
		}
	}
}

// checkRest ends all sessions and looks for what they left.
func (m *model) checkRest() {
	mcptest.Eventually(m.v, "the end of all requests", func() bool { return m.w.edge.Tracked() == 0 })
	for _, a := range m.clients {
		a.leave()
	}
	mcptest.Eventually(m.v, "the end of all sessions", func() bool { return m.w.edge.Sessions() == 0 })
	for i, s := range m.servers {
		mcptest.Eventually(m.v, fmt.Sprintf("the end of the sessions with server %d", i), func() bool { return len(s.all()) <= 1 })
	}
}
