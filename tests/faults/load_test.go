package faults

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// loadFaults happen again and again while clients call.
func loadFaults() []fault {
	const defined = "every call ends in result, unavailable, disconnected or outcome_unknown, then result"
	return []fault{
		{name: "20 restarts of a server under load", outcome: defined, run: func(w *world) string {
			s := &mcptest.Server{}
			n := w.behind(w.serve(subject, s), ample)
			w.start(nil, n.server)
			w.ready()
			return w.underLoad(20, func() {
				s.Forget()
				n.Restart()
			})
		}},
		{name: "5 kills of a stdio server under load", outcome: defined, run: func(w *world) string {
			w.start(nil, w.child(""))
			w.ready()
			return w.underLoad(5, func() {
				if r := w.call("pid", "{}"); r.Text() != "" {
					var pid int
					_, _ = fmt.Sscan(r.Text(), &pid)
					_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone already
				}
			})
		}},
	}
}

// callers is how many clients call at once under load.
const callers = 4

// underLoad lets a thing happen n times, each time after some calls have got results again, and returns what
// came of the calls.
func (w *world) underLoad(n int, happen func()) string {
	var results, wrong atomic.Int64
	stop := w.load(func(r mcptest.Reply) {
		switch r.Outcome() {
		case "result":
			results.Add(1)
		case "-32000 unavailable", "-32000 disconnected", "-32000 outcome_unknown":
		default:
			if wrong.Add(1) == 1 {
				w.t.Errorf("a call: got %s %s (%v), want one of the defined outcomes", r.Outcome(), r.Error, r.Err)
			}
		}
	})
	for range n {
		before := results.Load()
		w.wait("results", func() bool { return results.Load() >= before+callers })
		happen()
	}
	stop()
	if wrong.Load() > 0 {
		return fmt.Sprintf("%d calls end otherwise", wrong.Load())
	}
	w.ready()
	return "every call ends in result, unavailable, disconnected or outcome_unknown, then " + w.write("write", 0).Outcome()
}

// load has clients write for a little while each time, again and again, until stop is called. each gets what
// came of a call.
func (w *world) load(each func(r mcptest.Reply)) (stop func()) {
	var wg sync.WaitGroup
	var stopped atomic.Bool
	for range callers {
		wg.Go(func() {
			for !stopped.Load() {
				each(w.write("slow", 5))
			}
		})
	}
	return func() {
		stopped.Store(true)
		wg.Wait()
	}
}
