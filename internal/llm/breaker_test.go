package llm

import (
	"testing"
	"time"
)

func TestBreaker(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	refused, busy := &Error{Kind: Unreachable, unconnected: true, Message: "refused"}, &Error{Kind: Server}
	want := func(r *Breaker, at time.Time, leave, probe bool) {
		t.Helper()
		if p, err := r.allow(at); p != probe || err == nil != leave {
			t.Errorf("got probe %t, error %v, want probe %t, leave %t", p, err, probe, leave)
		}
	}
	r := &Breaker{}
	want(r, now, true, false)
	r.done(now, false, busy)
	want(r, now, true, false) // an answer, if only an error
	r.done(now, false, refused)
	want(r, now.Add(downFor-1), false, false)
	want(r, now.Add(downFor), true, true)
	want(r, now.Add(downFor), false, false) // one at a time
	r.done(now.Add(downFor), true, refused)
	want(r, now.Add(2*downFor-1), false, false)
	want(r, now.Add(2*downFor), true, true)
	r.done(now.Add(2*downFor), true, errSlow) // the caller went away: nothing was learned
	want(r, now.Add(2*downFor), true, true)
	r.done(now.Add(2*downFor), true, nil)
	want(r, now.Add(2*downFor), true, false)
	want(r, now.Add(2*downFor), true, false)
}
