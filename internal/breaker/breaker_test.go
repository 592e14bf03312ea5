package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/breaker"
)

// fail has a call fail that began after all others had ended.
func fail(b *breaker.Breaker, unreached bool) (opens bool) {
	return b.Failed(b.Failures(), unreached)
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b breaker.Breaker
		state := func(want string) {
			t.Helper()
			if got := b.State(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		for range 4 {
			if fail(&b, true) {
				t.Error("it opened before the fifth failure")
			}
		}
		state(breaker.Closed)
		if !fail(&b, true) {
			t.Error("it did not open at the fifth failure")
		}
		for _, pause := range []time.Duration{1, 2, 4, 8, 8} { // seconds
			state(breaker.Open)
			ok, wait := b.Allow()
			if refused, _ := b.Refuses(); ok || !refused || wait < pause*time.Second || wait > pause*time.Second*6/5 {
				t.Errorf("got ok %t and a wait of %v, want a pause of about %d s", ok, wait, pause)
			}
			time.Sleep(wait)
			state(breaker.HalfOpen)
			if ok, _ := b.Allow(); !ok {
				t.Error("no call may try after the pause")
			}
			if ok, wait := b.Allow(); ok || wait > time.Second {
				t.Errorf("got ok %t and a wait of %v for a second call, want one a second", ok, wait)
			}
			if fail(&b, true) {
				t.Error("it reports twice that it opens")
			}
		}
		b.Succeeded()
		state(breaker.Closed)
		if ok, _ := b.Allow(); !ok {
			t.Error("a call is refused after a success")
		}
	})
}

// Only failures without a success between them open it.
func TestBreaker_SuccessStartsAnew(t *testing.T) {
	var b breaker.Breaker
	for range 2 {
		for range 4 {
			if fail(&b, false) {
				t.Fatal("it opened after four failures in a row")
			}
		}
		b.Succeeded()
	}
}

// Calls that fail together count once.
func TestBreaker_OneLoss(t *testing.T) {
	var b breaker.Breaker
	before := b.Failures()
	for range 20 {
		b.Failed(before, false)
	}
	if got := b.State(); got != breaker.Closed || b.Failures() != 1 {
		t.Errorf("got %s after %d failures, want closed after 1", got, b.Failures())
	}
}

// A connection lets the next call try at once if it was connections that failed, and only then.
func TestBreaker_Reached(t *testing.T) {
	for _, unreached := range []bool{true, false} {
		var b breaker.Breaker
		for range 5 {
			fail(&b, unreached)
		}
		b.Reached()
		if ok, _ := b.Allow(); ok != unreached {
			t.Errorf("connections failed: %t; got a call let through: %t", unreached, ok)
		}
	}
}
