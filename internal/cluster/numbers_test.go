package cluster

import (
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// What is nobody's, or this replica's own, cannot be settled; the error says no more.
func TestSettle_Nobody(t *testing.T) {
	r := New(Config{Leases: shared.NewMemory(), Log: slog.New(slog.DiscardHandler)})
	if peer, err := r.settle(t.Context(), 0); peer != nil || err == nil || err.Error() != ErrUnavailable.Error() {
		t.Errorf("got %v (%v), want %v", peer, err, ErrUnavailable)
	}
}

// Each number is new once, in any order within the bound; what comes too late counts as received.
func TestNumbers(t *testing.T) {
	s := &numbers{}
	for from := uint64(0); from < 10*maxLate; from += maxLate / 4 {
		for _, i := range rand.Perm(maxLate / 4) {
			if n := from + uint64(i); !s.add(n) || s.add(n) {
				t.Fatalf("number %d is not new once", n)
			}
		}
	}
	for _, row := range []struct {
		number uint64
		fresh  bool
	}{{9 * maxLate, false}, {100 * maxLate, true}, {99*maxLate + 1, true}, {99 * maxLate, false}, {99*maxLate + 1, false},
		{1<<64 - 1, true}, {1<<64 - 2, true}, {100*maxLate + 1, false}, {1<<64 - 1, false}} {
		if got := s.add(row.number); got != row.fresh {
			t.Errorf("number %d: got %t, want %t", row.number, got, row.fresh)
		}
	}
}
