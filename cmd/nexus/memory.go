package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

const (
	containerShare = 0.9 // of a container's memory; the rest is for what the Go runtime does not count

	// leastGrowth is how much a small heap grows until it is collected. By default it only doubles, and a fifth of
	// the cost of a forwarded call is collecting what calls leave behind.
	leastGrowth = 16 << 20
	mostPercent = 800 // of growth, and how precisely it is set
	stepPercent = 50
)

// tuneMemory sets how often the collector runs and where it stops the heap from growing, unless the environment does.
func tuneMemory() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if most := limit.ContainerLimit(os.DirFS("/")); most > 0 {
		debug.SetMemoryLimit(int64(containerShare * float64(most)))
	}
	if os.Getenv("GOGC") == "" {
		followHeap(100)
	}
}

// followHeap sets the growth for the heap as it is now, percent being the present one, and again after each
// collection.
func followHeap(percent int) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if wanted := growth(sample[0].Value.Uint64()); wanted != percent {
		debug.SetGCPercent(wanted)
		percent = wanted
	}
	mark := new(*byte) // is collected next time; small values without pointers might not be
	runtime.AddCleanup(mark, followHeap, percent)
}

// growth returns by how many percent a heap may grow: 100, but leastGrowth at least.
func growth(live uint64) int {
	percent := min(leastGrowth*100/max(live, 1), mostPercent)
	return max(100, int(percent/stepPercent*stepPercent))
}
