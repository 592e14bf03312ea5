package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

const (
	containerShare = 0.9 // of a container's memory; the rest is for memory that the Go runtime does not count

	// leastGrowth is the growth of a small heap between collections. By default a small heap only doubles, and
	// collecting garbage is a fifth of the cost of a forwarded call.
	leastGrowth = 32 << 20

	// Under load the heap grows by what is allocated in busyTime, up to busyHeap. A collection occupies the processors
	// for some 50 ms, and requests wait for them.
	busyTime  = time.Second
	busyHeap  = 160 << 20
	leastTime = 100 * time.Millisecond // collections in quick succession do not mean load

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
		followHeap(pace{percent: 100})
	}
}

// heap describes the heap after a collection. Sizes are in bytes.
type heap struct {
	live      uint64 // the base of growth: live objects, stacks and globals
	reads     uint64 // the part of the live objects that a collection scans
	allocated uint64 // since the start of the program
	at        time.Time
}

func readHeap() heap {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
		{Name: "/gc/scan/heap:bytes"}, {Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	live := uint64(0)
	for _, s := range samples[:3] {
		live += s.Value.Uint64()
	}
	return heap{live: live, reads: samples[3].Value.Uint64(), allocated: samples[4].Value.Uint64(), at: time.Now()}
}

// pace is the current growth, and the heap after the last collection.
type pace struct {
	percent int
	last    heap
}

// followHeap sets the growth for the current heap, now and after each collection.
func followHeap(p pace) {
	now := readHeap()
	wanted := growth(p.last, now)
	step := max(p.percent/8, 5) // setting it stops the program for a moment
	if wanted < p.percent-step || wanted > p.percent+step {
		debug.SetGCPercent(wanted)
		p.percent = wanted
	}
	p.last = now
	mark := new(*byte) // collected by the next cycle; small values without pointers might not be
	runtime.AddCleanup(mark, followHeap, p)
}

// growth returns the percentage by which a heap may grow: by the bytes that a collection scans, at most by its size,
// and at least by leastGrowth, or more under load. Message bytes are not scanned. By default a heap full of them would
// double without saving any work. last is the heap after the collection before; it is zero at the start.
func growth(last, now heap) int {
	live := max(now.live, 1)
	room := max(leastGrowth, min(now.reads, live))
	if live < busyHeap && !last.at.IsZero() {
		took := max(now.at.Sub(last.at), leastTime)
		busy := float64(now.allocated-last.allocated) * busyTime.Seconds() / took.Seconds()
		room = max(room, uint64(min(busy, float64(busyHeap-live))))
	}
	return int(max(leastPercent, min(room*100/live, mostPercent)))
}
