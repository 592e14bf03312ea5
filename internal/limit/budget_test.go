package limit

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestBudgetOfBytes(t *testing.T) {
	b := NewBudget(Bounds{Requests: 10, Total: 100, Own: 60, Floor: 10}, nil)
	reserve, spare, request := b.Reserve, b.ReserveSpare, b.Enter
	steps := []struct {
		caller string
		n      int
		do     func(string, int) bool // nil releases
		want   bool
	}{
		{"a", 31, spare, false}, // half of its own bound
		{"a", 30, spare, true},
		{"a", 31, reserve, false}, // its own bound
		{"a", 31, request, false},
		{"a", 30, request, true},
		{"b", 40, reserve, true},
		{"c", 11, reserve, false}, // the total
		{"c", 11, request, false},
		{"c", 10, reserve, true}, // the floor
		{"c", 1, reserve, false},
		{"a", 30, nil, false},
		{"b", 20, reserve, true},
		{"b", 1, reserve, false},
	}
	for i, s := range steps {
		if s.do == nil {
			b.Release(s.caller, s.n)
			continue
		}
		if got := s.do(s.caller, s.n); got != s.want {
			t.Errorf("step %d: got %d bytes of %q accepted %v, want %v", i, s.n, s.caller, got, s.want)
		}
	}
	b.Charge("b", 1000)
	b.Leave("a", 30)
	b.Release("b", 1060)
	b.Release("c", 10)
	wantEmpty(t, b)
}

func wantEmpty(t *testing.T, b *Budget) {
	t.Helper()
	if b.Held() != 0 || b.InFlight() != 0 {
		t.Errorf("got %d bytes held and %d requests in flight after all was released, want none", b.Held(), b.InFlight())
	}
	if n := len(b.by); n != 0 {
		t.Errorf("got %d callers that hold nothing, want none", n)
	}
}

// flood enters until it is refused and returns how often it was not.
func flood(b *Budget, caller string) (n int) {
	for b.Enter(caller, 0) {
		n++
	}
	return n
}

// One caller alone may have all requests. It locks nobody out, gets nothing beyond its half while others ask, and
// loses nothing that it has.
func TestBudgetShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(Bounds{Requests: 1000}, nil)
		if got := flood(b, "a"); got != 1000 {
			t.Errorf("a caller alone: got %d requests, want 1000", got)
		}
		if got := flood(b, "b"); got != 490 {
			t.Errorf("a second caller: got %d requests, want 490 of its half of 500, the rest is kept", got)
		}
		if got := flood(b, "c"); got != 10 {
			t.Errorf("a third caller: got %d requests, want the 10 that are kept", got)
		}
		for range 600 {
			b.Leave("a", 0)
		}
		if got := flood(b, "a"); got != 100 {
			t.Errorf("the first while others ask: got %d requests more, want 100, which makes its half", got)
		}
		for range 490 {
			b.Leave("b", 0)
		}
		if b.Enter("a", 0) {
			t.Error("the first at its half, just after others asked: got accepted, want refused")
		}
		time.Sleep(askTime)
		if got := flood(b, "a"); got != 490 {
			t.Errorf("the first when nobody else asks any more: got %d requests, want 490, which makes 1000", got)
		}
		for range 990 {
			b.Leave("a", 0)
		}
		for range 10 {
			b.Leave("c", 0)
		}
		wantEmpty(t, b)
	})
}

// A share may be smaller than half. A caller that has it before others ask keeps what it has.
func TestBudgetOfSmallShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(Bounds{Requests: 1000, Share: 300}, nil)
		if got := flood(b, "a"); got != 1000 {
			t.Errorf("a caller alone: got %d requests, want 1000", got)
		}
		if got := flood(b, "b"); got != 300 {
			t.Errorf("a second caller: got %d requests, want its share of 300", got)
		}
		for range 800 {
			b.Leave("a", 0)
		}
		if got := flood(b, "a"); got != 100 {
			t.Errorf("the first while others ask: got %d requests more, want 100, which makes its share", got)
		}
		if got := NewBudget(Bounds{Requests: 10, Share: 300}, nil); got.share != 5 {
			t.Errorf("a share beyond half of 10 requests: got %d, want 5", got.share)
		}
	})
}

// The requests in flight that one caller may have beside others fit into its share of memory by default.
func TestDefaultShare(t *testing.T) {
	b := Default().Bounds()
	if got := int64(b.Share) * inFlight; b.Share < 1000 || got > b.Own {
		t.Errorf("got a share of %d requests, which take %d MiB; want 1000 at least and no more than %d MiB",
			b.Share, got>>20, b.Own>>20)
	}
}

func TestBudgetOfFewRequests(t *testing.T) {
	for requests, want := range map[int][2]int{1: {1, 1}, 2: {2, 1}, 3: {3, 1}, 4: {4, 2}} {
		b := NewBudget(Bounds{Requests: requests}, nil)
		if first, second := flood(b, "a"), flood(b, "b"); first != want[0] || second != want[1] {
			t.Errorf("of %d: got %d and %d requests, want %v", requests, first, second, want)
		}
	}
}

func TestBudgetUnderConcurrency(t *testing.T) {
	b := NewBudget(Bounds{Requests: 20, Total: 1 << 20, Own: 1 << 20}, nil)
	var most, now atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		caller := fmt.Sprint(i % 3)
		wg.Go(func() {
			for range 1000 {
				if b.Enter(caller, 7) {
					if n := now.Add(1); n > most.Load() {
						most.Store(n)
					}
					if rand.IntN(4) == 0 {
						time.Sleep(time.Microsecond)
					}
					now.Add(-1)
					b.Leave(caller, 7)
				}
			}
		})
	}
	wg.Wait()
	if most.Load() > 30 {
		t.Errorf("got %d at once, want 30 at most", most.Load())
	}
	wantEmpty(t, b)
}
