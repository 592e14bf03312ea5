package main

import "testing"

func TestGrowth(t *testing.T) {
	const mib = 1 << 20
	rows := []struct {
		name        string
		live, reads uint64
		want        int // percent
	}{
		{"nothing", 0, 0, 800},
		{"a small heap", 1 * mib, 1 * mib, 800},
		{"half of the least growth", 16 * mib, 16 * mib, 200},
		{"the least growth", 32 * mib, 32 * mib, 100},
		{"a large heap that is all read", 1024 * mib, 1024 * mib, 100},
		{"a heap with messages", 160 * mib, 80 * mib, 50},
		{"a heap of few objects and one large message", 64 * mib, 4 * mib, 50},
		{"a heap of messages alone", 1024 * mib, 1 * mib, 20},
		{"what is read now is more than what was live", 32 * mib, 64 * mib, 100},
	}
	for _, row := range rows {
		if got := growth(heap{row.live, row.reads}); got != row.want {
			t.Errorf("%s: got %d %%, want %d", row.name, got, row.want)
		}
	}
}
