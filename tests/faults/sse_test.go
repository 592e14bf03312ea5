package faults

import (
	"io"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
	"github.com/agenticnexus/agenticnexus/tests/network"
)

// sseFaults are those of a server over HTTP+SSE, which says everything on one stream.
func sseFaults() []fault {
	const lost, fine = "-32000 outcome_unknown, then result", "result, then result"
	// through calls a tool that takes a while through a network in which something happens meanwhile.
	through := func(tool string, happen func(n *remote)) func(w *world) string {
		return func(w *world) string {
			return w.behind(w.serveSSE(subject, &mcptest.Server{}), ample).meanwhile(tool, happen)
		}
	}
	killed := func(n *remote) { n.Stop() }
	return []fault{
		{name: "HTTP+SSE: half an event, then the stream ends", outcome: lost, run: onStream(func(m mcptest.Message, write func(string), end func()) {
			raw := "data: " + m.Response(`{"content":[]}`)
			write(raw[:len(raw)/2])
			end()
		})},
		{name: "HTTP+SSE: the stream ends before the response", outcome: lost, run: onStream(func(_ mcptest.Message, _ func(string), end func()) { end() })},
		{name: "HTTP+SSE: an event of 128 MiB", outcome: "-32000 too_large, then result", run: onStream(func(_ mcptest.Message, write func(string), _ func()) {
			write("data: ")
			flood(writer(write))
		})},
		{name: "HTTP+SSE: invalid messages before the response", outcome: fine, run: onStream(func(m mcptest.Message, write func(string), _ func()) {
			say("invalid", m, func(line string) { write("data: " + strings.TrimSuffix(line, "\n") + "\n\n") })
		})},
		{name: "HTTP+SSE: responses with wrong, unknown and repeated ids", outcome: fine, run: onStream(func(m mcptest.Message, write func(string), _ func()) {
			say("ids", m, func(line string) { write("data: " + strings.TrimSuffix(line, "\n") + "\n\n") })
		})},
		{name: "HTTP+SSE: 404 for the session: the server was restarted", outcome: fine, run: func(w *world) string {
			s := &mcptest.Server{}
			w.start(nil, w.serveSSE(subject, s))
			w.ready()
			s.Forget()
			return w.write("write", 0).Outcome() + ", then " + w.write("slow", 0).Outcome()
		}},
		{name: "HTTP+SSE: the server is killed while it writes", outcome: lost, run: through("slow", killed)},
		{name: "HTTP+SSE: the server is killed while it reads", outcome: "-32000 unavailable, then result", run: through("wait", killed)},
		{name: "HTTP+SSE: a connection that is reset in the middle of a call", outcome: lost,
			run: through("slow", func(n *remote) { n.Disturb(network.Toxic{Kind: "reset_peer", Attributes: `"timeout":0`}) })},
		{name: "HTTP+SSE: a half-open connection: nothing comes through any more", outcome: "-32000 timeout, then result", run: func(w *world) string {
			return w.behind(w.serveSSE(subject, &mcptest.Server{}), short).meanwhile("slow", func(n *remote) { n.Disturb(network.Toxic{Kind: "timeout", Attributes: `"timeout":0`}) })
		}},
		{name: "HTTP+SSE: a server that accepts connections and freezes", outcome: "-32000 unavailable", run: func(w *world) string {
			w.start(nil, w.frozen(downstream.TransportSSE))
			return w.write("write", 0).Outcome()
		}},
	}
}

// onStream calls write while the subject misbehaves on its stream, and again when it no longer does.
func onStream(misbehave func(m mcptest.Message, write func(raw string), end func())) func(w *world) string {
	return func(w *world) string {
		s := &mcptest.Server{}
		s.OnSSE = func(m mcptest.Message, write func(string), end func()) bool {
			if m.Method != "tools/call" || !w.broken.Load() {
				return false
			}
			if err := w.ledger.Add(m.Key()); err != nil {
				w.t.Error(err)
			}
			misbehave(m, write, end)
			return true
		}
		w.start(nil, w.serveSSE(subject, s))
		w.ready()
		return w.brokenWrite()
	}
}

// writer writes by a function.
type writer func(raw string)

var _ io.Writer = writer(nil)

// Write implements io.Writer.
func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}
