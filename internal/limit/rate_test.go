package limit

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// clock is a time that tests move.
type clock struct{ at time.Time }

func newClock() *clock                { return &clock{time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)} }
func (c *clock) now() time.Time       { return c.at }
func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }
func (c *clock) rate(n int) *Rate     { return New(RateConfig{Requests: n, Per: time.Minute}, c.now) }
func allow(r *Rate, id string) bool   { ok, _ := r.Allow(id); return ok }
func wait(r *Rate, id string) time.Duration {
	_, d := r.Allow(id)
	return d
}

func TestRateSlides(t *testing.T) {
	c := newClock()
	r := c.rate(3)
	for i := range 3 {
		if !allow(r, "a") {
			t.Fatalf("call %d: got it refused, want it accepted", i+1)
		}
		c.pass(10 * time.Second)
	}
	if got, want := wait(r, "a"), 30*time.Second; got != want {
		t.Errorf("call 4 at 30 s: got a wait of %v, want %v", got, want)
	}
	for range 100 {
		allow(r, "a") // refused calls do not count
	}
	if !allow(r, "b") {
		t.Error("another caller: got refused, want accepted")
	}
	c.pass(30*time.Second - 1)
	if got := wait(r, "a"); got != 1 {
		t.Errorf("just before the first call leaves the window: got a wait of %v, want 1ns", got)
	}
	c.pass(1)
	if !allow(r, "a") {
		t.Error("when the first call has left the window: got refused, want accepted")
	}
	if got, want := wait(r, "a"), 10*time.Second; got != want {
		t.Errorf("the next call: got a wait of %v, want %v", got, want)
	}
}

func TestRateDefaults(t *testing.T) {
	c := newClock()
	r := New(DefaultRate(), c.now)
	for i := range 100 {
		if !allow(r, "a") {
			t.Fatalf("call %d: got refused, want 100 per minute", i+1)
		}
	}
	if got := wait(r, "a"); got != time.Minute {
		t.Errorf("call 101: got a wait of %v, want 1m", got)
	}
	if !r.Applies("process_query") || r.Applies("run") {
		t.Error("Applies: want it for process_query only")
	}
	for _, cfg := range []RateConfig{{Per: time.Minute}, {Requests: 1}, {Requests: -1, Per: time.Minute}} {
		r := New(cfg, c.now)
		for range 2 {
			if !allow(r, "a") {
				t.Errorf("%+v: got a limit, want none", cfg)
			}
		}
	}
}

func TestRateIsExactUnderConcurrency(t *testing.T) {
	c := newClock()
	r := c.rate(100)
	var accepted atomic.Int64
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for range 100 {
				if allow(r, "a") {
					accepted.Add(1)
				}
			}
		})
	}
	calls.Wait()
	if got := accepted.Load(); got != 100 {
		t.Errorf("got %d accepted calls, want 100", got)
	}
}

func TestRateForgets(t *testing.T) {
	c := newClock()
	r := c.rate(1)
	for i := range 1000 {
		allow(r, fmt.Sprint(i))
	}
	c.pass(time.Minute)
	for range 1000 {
		allow(r, "a")
	}
	if len(r.byID) != 1 || r.recent.Len() != 1 {
		t.Errorf("got %d callers remembered, want 1", len(r.byID))
	}
}

func TestRateIsBounded(t *testing.T) {
	c := newClock()
	r := c.rate(2)
	r.most = 3
	for _, id := range []string{"a", "a", "b", "c"} {
		if !allow(r, id) {
			t.Fatalf("%s: got refused, want accepted", id)
		}
		c.pass(time.Second)
	}
	if !allow(r, "d") {
		t.Error("a new caller among active ones: got refused, want accepted")
	}
	if len(r.byID) != 3 || r.byID["a"] != nil {
		t.Errorf("got %d callers with %v, want three without the one that called longest ago", len(r.byID), r.byID)
	}
	for _, id := range []string{"b", "c", "d"} {
		for i, want := range []bool{true, false} {
			if got := allow(r, id); got != want {
				t.Errorf("%s, call %d after the others: got %t, want %t", id, i+1, got, want)
			}
		}
	}
}

// TestRateAgainstModel compares with a list of all accepted calls.
func TestRateAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		n := rapid.IntRange(1, 5).Draw(t, "requests")
		r := c.rate(n)
		var accepted []time.Time
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			c.pass(time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds")) * time.Second)
			inWindow := 0
			for _, at := range accepted {
				if c.at.Sub(at) < time.Minute {
					inWindow++
				}
			}
			ok, retry := r.Allow("a")
			if want := inWindow < n; ok != want || ok == (retry > 0) || retry > time.Minute {
				t.Fatalf("with %d of %d calls in the window: got %t and %v, want %t", inWindow, n, ok, retry, want)
			}
			if ok {
				accepted = append(accepted, c.at)
			}
		}
	})
}

func TestMessage(t *testing.T) {
	for d, want := range map[time.Duration]string{
		12 * time.Second:        "Rate limit exceeded: retry in 12 seconds",
		11*time.Second + 1:      "Rate limit exceeded: retry in 12 seconds",
		time.Millisecond:        "Rate limit exceeded: retry in 1 second",
		0:                       "Rate limit exceeded: retry in 1 second",
		1500 * time.Millisecond: "Rate limit exceeded: retry in 2 seconds",
	} {
		if got := Message(d); got != want {
			t.Errorf("Message(%v): got %q, want %q", d, got, want)
		}
	}
}

func TestConfigure(t *testing.T) {
	c := newClock()
	r := c.rate(1)
	allow(r, "a")
	r.Configure(RateConfig{Requests: 1, Per: time.Minute, Tools: []string{"run"}})
	if allow(r, "a") || !r.Applies("run") {
		t.Error("the same limit for other tools: want what was counted to count still")
	}
	r.Configure(RateConfig{Requests: 2, Per: time.Minute})
	if got := []bool{allow(r, "a"), allow(r, "a"), allow(r, "a")}; !slices.Equal(got, []bool{true, true, false}) {
		t.Error("another limit: want two more calls accepted")
	}
	r.Configure(RateConfig{})
	if !allow(r, "a") || r.Applies("run") {
		t.Error("no limit: want every call accepted")
	}
}
