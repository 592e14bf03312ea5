package edge

import (
	"sync"
	"time"
)

const (
	yieldTimeout = time.Minute      // for calls of a caller to keep another client from being asked
	otherTurn    = 30 * time.Second // for others to be asked, after which the caller may be asked again
)

// turns let callers take turns at servers that do not say which call a question is about: a call that waits for its
// user keeps all others from being asked there. A minute after the first such call of a caller began to wait, all of
// them end, and for a while no call of the caller is asked anything, whatever its server. There is one entry for each
// caller with a call that another one waits for. The zero value is ready. It is safe for concurrent use.
type turns struct {
	mu       sync.Mutex
	byCaller map[string]*turn
}

// turn is that of a caller whose calls keep another client from being asked.
type turn struct {
	calls map[*mrtr]struct{} // the calls; nil when the turn is over
}

// yield tells that a call that waits for input keeps another client from being asked.
func (ts *turns) yield(t *mrtr, since time.Time) {
	caller := t.x.Caller.ID
	ts.mu.Lock()
	defer ts.mu.Unlock()
	of := ts.byCaller[caller]
	switch {
	case of == nil:
		if ts.byCaller == nil {
			ts.byCaller = map[string]*turn{}
		}
		ts.byCaller[caller] = &turn{calls: map[*mrtr]struct{}{t: {}}}
		time.AfterFunc(time.Until(since.Add(yieldTimeout)), func() { ts.end(caller) })
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
	if of := ts.byCaller[t.x.Caller.ID]; of != nil {
		delete(of.calls, t)
	}
}

// over reports whether it is the turn of others.
func (ts *turns) over(caller string) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	of := ts.byCaller[caller]
	return of != nil && of.calls == nil
}

// end ends the turn of a caller and, if calls still wait, begins that of others.
func (ts *turns) end(caller string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	of := ts.byCaller[caller]
	if len(of.calls) == 0 {
		delete(ts.byCaller, caller)
		return
	}
	for t := range of.calls {
		t.x.abort(errYielded)
	}
	of.calls = nil
	time.AfterFunc(otherTurn, func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		delete(ts.byCaller, caller)
	})
}
