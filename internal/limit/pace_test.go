package limit

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// paced returns a Budget whose callers have one turn at a time beyond 1 MiB a second.
func paced() *Budget {
	return NewBudget(Bounds{Requests: 100, Total: 1 << 30, Own: 1 << 30, Pace: 1 << 20, Turns: 1}, nil)
}

// wantWait takes a turn and checks how long that took.
func wantWait(t *testing.T, b *Budget, caller string, want time.Duration) (done func()) {
	t.Helper()
	began := time.Now()
	done = b.Turn(t.Context(), caller)
	if got := time.Since(began); got != want {
		t.Errorf("%s: got a wait of %v for a turn, want %v", caller, got, want)
	}
	return done
}

// A caller that moves many bytes takes turns while others ask. Others do not.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := paced()
		b.Charge("a", 10<<20)
		wantWait(t, b, "a", 0)
		wantWait(t, b, "a", 0) // it is alone
		wantWait(t, b, "b", 0)
		first := wantWait(t, b, "a", 0)
		wantWait(t, b, "b", 0)
		wantWait(t, b, "b", 0)
		time.AfterFunc(turnTime/2, first)
		second := wantWait(t, b, "a", turnTime/2) // the first has ended
		third := wantWait(t, b, "a", turnTime)    // the second goes on
		third()
		third()
		wantWait(t, b, "a", 0)
		second() // its turn has ended before
		ctx, cancel := context.WithTimeout(t.Context(), turnTime/2)
		defer cancel()
		began := time.Now()
		b.Turn(ctx, "a")()
		if got := time.Since(began); got != turnTime/2 {
			t.Errorf("got a wait of %v for a turn, want %v, until the context ends", got, turnTime/2)
		}
		time.Sleep(askTime) // nobody else asks any more
		b.Charge("a", 10<<20)
		wantWait(t, b, "a", 0)
		wantWait(t, b, "a", 0)
		time.Sleep(paceMost)
		wantWait(t, b, "b", 0)
		wantWait(t, b, "a", 0)
		wantWait(t, b, "a", 0) // what it has moved is over
		time.Sleep(turnTime)
	})
}

// Of many requests that wait for a turn at once, none waits longer than turnWait.
func TestTurn_LongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := paced()
		b.Charge("a", 10<<20)
		b.Turn(t.Context(), "b")
		const requests = 100
		began, waits := time.Now(), make(chan time.Duration, requests)
		for range requests {
			go func() {
				b.Turn(t.Context(), "a") // for turnTime
				waits <- time.Since(began)
			}()
		}
		longest := time.Duration(0)
		for range requests {
			longest = max(longest, <-waits)
		}
		if longest != turnWait {
			t.Errorf("got a wait of %v for the last turn, want %v", longest, turnWait)
		}
		time.Sleep(turnTime)
	})
}

// All bytes of messages count, also of those that are refused, but not of small ones.
func TestTurn_Counts(t *testing.T) {
	const large = 64 << 10
	for name, tc := range map[string]struct {
		move func(b *Budget)
		want bool
	}{
		"small messages": {func(b *Budget) { b.Charge("a", freeBytes) }, false},
		"requests":       {func(b *Budget) { b.Enter("a", large) }, true},
		"results":        {func(b *Budget) { b.Reserve("a", large) }, true},
		"queued":         {func(b *Budget) { b.ReserveSpare("a", large) }, true},
		"charged":        {func(b *Budget) { b.Charge("a", large) }, true},
		"refused":        {func(b *Budget) { b.Reserve("a", 2<<30) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := paced()
				b.Charge("c", 10<<20) // somebody is ahead, so that it is noted who asks
				for range 10 {
					tc.move(b)
				}
				b.Turn(t.Context(), "b")
				began := time.Now()
				b.Turn(t.Context(), "a")
				b.Turn(t.Context(), "a")
				if got := time.Since(began) > 0; got != tc.want {
					t.Errorf("got a wait for the second turn: %v, want %v", got, tc.want)
				}
				time.Sleep(turnTime)
			})
		})
	}
}

// Callers are forgotten once what they have moved is over.
func TestTurn_Forgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := paced()
		for i := range 1000 {
			b.Charge(fmt.Sprint(i), 2*freeBytes)
			time.Sleep(10 * time.Millisecond)
		}
		if got, most := len(b.pace.by), int(2*paceMost/(10*time.Millisecond)); got > most {
			t.Errorf("got %d callers remembered, want %d at most", got, most)
		}
		for i := range 2 * maxMovers {
			b.Charge(fmt.Sprint("flood", i), 2*freeBytes)
		}
		if got := len(b.pace.by); got != maxMovers {
			t.Errorf("got %d callers remembered at once, want %d", got, maxMovers)
		}
	})
}
