package main

import "testing"

func TestGrowth(t *testing.T) {
	for live, want := range map[uint64]int{0: 800, 1 << 20: 800, 4 << 20: 400, 5 << 20: 300, 8 << 20: 200, 16 << 20: 100, 1 << 30: 100} {
		if got := growth(live); got != want {
			t.Errorf("%d bytes live: got %d %%, want %d", live, got, want)
		}
	}
}
