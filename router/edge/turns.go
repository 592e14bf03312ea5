package edge

import (
	"sync"
	"time"
)

const (
	yieldTimeout = time.Minute      // for calls of a caller to keep another client from being asked
	otherTurn    = 30 * time.Second // for others to be asked, after which the caller may be asked again
)

// turns let callers take turns at a server that does not say which call a question is about: a call that waits for its
// user keeps all others from being asked there. A minute after the first such call of a caller began to wait, all of
// them end, and for a while the server may ask the caller nothing. There is one entry for each caller and server with a
// call that another one waits for. The zero value is ready. It is safe for concurrent use.
type turns struct {
	mu sync.Mutex
	at map[turnAt]*turn
}

type turnAt struct{ caller, server string }

// turn is that of a caller whose calls keep another client from being asked by a server.
type turn struct {
	calls map[*mrtr]struct{} // the calls; nil when the turn is over
}

// yield tells that a call that waits for input keeps another client from being asked by a server.
func (ts *turns) yield(t *mrtr, server string, since time.Time) {
	here := turnAt{t.x.Caller.ID, server}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	of := ts.at[here]
	switch {
	case of == nil:
		if ts.at == nil {
			ts.at = map[turnAt]*turn{}
		}
		ts.at[here] = &turn{calls: map[*mrtr]struct{}{t: {}}}
		time.AfterFunc(time.Until(since.Add(yieldTimeout)), func() { ts.end(here) })
	case of.calls == nil:
		t.x.abort(errYielded)
	default:
		of.calls[t] = struct{}{}
	}
}

// withdraw tells that a call no longer waits.
func (ts *turns) withdraw(t *mrtr) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, of := range ts.at {
		delete(of.calls, t)
	}
}

// over reports whether it is the turn of others at a server.
func (ts *turns) over(caller, server string) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	of := ts.at[turnAt{caller, server}]
	return of != nil && of.calls == nil
}

// end ends a turn and, if calls still wait, begins that of others.
func (ts *turns) end(here turnAt) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	of := ts.at[here]
	if len(of.calls) == 0 {
		delete(ts.at, here)
		return
	}
	for t := range of.calls {
		t.x.abort(errYielded)
	}
	of.calls = nil
	time.AfterFunc(otherTurn, func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		delete(ts.at, here)
	})
}
