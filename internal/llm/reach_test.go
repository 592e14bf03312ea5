package llm

import (
	"testing"
	"time"
)

func TestReach(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	refused, busy := &Error{Kind: Unreachable, unconnected: true, Message: "refused"}, &Error{Kind: Server}
	want := func(r *Reach, at time.Time, leave, probe bool) {
		t.Helper()
		if p, err := r.enter(at); p != probe || err == nil != leave {
			t.Errorf("got probe %t, error %v, want probe %t, leave %t", p, err, probe, leave)
		}
	}
	r := &Reach{}
	want(r, now, true, false)
	r.leave(now, false, busy)
	want(r, now, true, false) // an answer, if only an error
	r.leave(now, false, refused)
	want(r, now.Add(downFor-1), false, false)
	want(r, now.Add(downFor), true, true)
	want(r, now.Add(downFor), false, false) // one at a time
	r.leave(now.Add(downFor), true, refused)
	want(r, now.Add(2*downFor-1), false, false)
	want(r, now.Add(2*downFor), true, true)
	r.leave(now.Add(2*downFor), true, errSlow) // the caller went away: nothing was learned
	want(r, now.Add(2*downFor), true, true)
	r.leave(now.Add(2*downFor), true, nil)
	want(r, now.Add(2*downFor), true, false)
	want(r, now.Add(2*downFor), true, false)
}
