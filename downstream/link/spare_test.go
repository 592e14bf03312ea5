package link

import "testing"

// Memory of a large message serves one of a similar size that follows, once.
func TestAllocate_ReusesMemory(t *testing.T) {
	const tries = 100 // a collection, or the race detector, may drop some
	for range tries {
		large := allocate(8<<20 - 1)
		large[0] = 'x'
		free(large)
		again := allocate(7<<20 + 1)
		if again[0] != 'x' {
			continue
		}
		if len(again) != 7<<20+1 {
			t.Errorf("got %d bytes, want %d", len(again), 7<<20+1)
		}
		if b := allocate(8 << 20); b[0] == 'x' {
			t.Error("got memory that is in use")
		}
		return
	}
	t.Error("got no memory reused")
}
