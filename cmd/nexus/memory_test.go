package main

import (
	"testing"
	"time"
)

func TestGrowth(t *testing.T) {
	const mib = 1 << 20
	rows := []struct {
		name        string
		live, reads uint64
		rate        uint64 // bytes allocated a second
		want        int    // percent
	}{
		{"nothing", 0, 0, 0, 800},
		{"a small heap", 1 * mib, 1 * mib, 0, 800},
		{"half of the least growth", 16 * mib, 16 * mib, 0, 200},
		{"the least growth", 32 * mib, 32 * mib, 0, 100},
		{"a large heap that is all read", 1024 * mib, 1024 * mib, 0, 100},
		{"a heap with messages", 160 * mib, 80 * mib, 0, 50},
		{"a heap of few objects and one large message", 64 * mib, 4 * mib, 0, 50},
		{"a heap of messages alone", 1024 * mib, 1 * mib, 0, 20},
		{"what is read now is more than what was live", 32 * mib, 64 * mib, 0, 100},
		{"some load", 32 * mib, 32 * mib, 48 * mib, 150},
		{"little load", 32 * mib, 32 * mib, 16 * mib, 100},
		{"much load", 64 * mib, 60 * mib, 1024 * mib, 150},
		{"load and a large heap", 160 * mib, 40 * mib, 1024 * mib, 25},
	}
	for _, row := range rows {
		last := heap{allocated: 7, at: time.Unix(0, 0)}
		now := heap{live: row.live, reads: row.reads, allocated: 7 + row.rate/2, at: last.at.Add(time.Second / 2)}
		if got := growth(last, now); got != row.want {
			t.Errorf("%s: got %d %%, want %d", row.name, got, row.want)
		}
		if got := growth(heap{}, now); row.rate == 0 && got != row.want {
			t.Errorf("%s, at the start: got %d %%, want %d", row.name, got, row.want)
		}
	}
	soon := time.Unix(0, 1000)
	if got := growth(heap{at: time.Unix(0, 0)}, heap{live: 32 * mib, allocated: mib, at: soon}); got != 100 {
		t.Errorf("1 MiB in 1 µs: got %d %%, want 100", got)
	}
}
