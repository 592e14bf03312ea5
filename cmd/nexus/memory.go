package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

const (
	containerShare = 0.9 // of a container's memory; the rest is for memory that the Go runtime does not count

	// leastGrowth is the growth of a small heap between collections. By default a small heap only doubles, and
	// collecting garbage is a fifth of the cost of a forwarded call.
	leastGrowth = 32 << 20

	mostPercent  = 800 // of growth
	leastPercent = 20
)

// tuneMemory sets the memory limit and the frequency of garbage collections, unless the environment sets them.
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

// heap has the result of the last collection, in bytes.
type heap struct {
	live  uint64 // the base of growth: live objects, stacks and globals
	reads uint64 // the part of the live objects that a collection scans
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

// followHeap sets the growth for the current heap, now and after each collection. percent is the current setting.
func followHeap(percent int) {
	wanted := growth(readHeap())
	step := max(percent/8, 5) // setting it stops the program for a moment
	if wanted < percent-step || wanted > percent+step {
		debug.SetGCPercent(wanted)
		percent = wanted
	}
	mark := new(*byte) // collected by the next cycle; small values without pointers might not be
	runtime.AddCleanup(mark, followHeap, percent)
}

// growth returns the percentage by which a heap may grow: by the bytes that a collection scans, at most by its size,
// and at least by leastGrowth. Message bytes are not scanned. By default a heap full of them would double without
// saving any work.
func growth(h heap) int {
	live := max(h.live, 1)
	room := max(leastGrowth, min(h.reads, live))
	return int(max(leastPercent, min(room*100/live, mostPercent)))
}
