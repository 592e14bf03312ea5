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
	leastGrowth = 32 << 20

	mostPercent  = 800 // of growth
	leastPercent = 20
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

// heap is what the last collection has found, in bytes.
type heap struct {
	live  uint64 // what the runtime counts growth from: live objects, stacks and globals
	reads uint64 // of live objects, what a collection reads
}

func readHeap() heap {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
		{Name: "/gc/scan/heap:bytes"},
	}
	metrics.Read(samples)
	live := uint64(0)
	for _, s := range samples[:3] {
		live += s.Value.Uint64()
	}
	return heap{live: live, reads: samples[3].Value.Uint64()}
}

// followHeap sets the growth for the heap as it is now, percent being the present one, and again after each
// collection.
func followHeap(percent int) {
	wanted := growth(readHeap())
	step := max(percent/8, 5) // setting it stops the program for a moment
	if wanted < percent-step || wanted > percent+step {
		debug.SetGCPercent(wanted)
		percent = wanted
	}
	mark := new(*byte) // is collected next time; small values without pointers might not be
	runtime.AddCleanup(mark, followHeap, percent)
}

// growth returns by how many percent a heap may grow: by what a collection of it reads, but by leastGrowth at least,
// and by no more than 100 beyond that. Bytes of messages cost a collection nothing. By default a heap full of them
// would grow by as much again, for no gain.
func growth(h heap) int {
	live := max(h.live, 1)
	room := max(leastGrowth, min(h.reads, live))
	return int(max(leastPercent, min(room*100/live, mostPercent)))
}
