package main

import (
	"os"
	"runtime/debug"

	"github.com/agenticnexus/agenticnexus/router/limit"
)

const (
	// ballastBytes is memory that nothing is ever written to. It takes up none of the machine's, but the
	// collector, which runs when the heap has doubled, counts it: a small heap is collected a third as often
	// as by default, and a large one, most of which are large results, no less. What a forwarded call leaves
	// behind is short-lived, and a fifth of a call's cost was collecting it.
	ballastBytes = 16 << 20

	containerShare = 0.9 // of a container's memory; the rest is for what the Go runtime does not count
)

// tuneMemory sets how often the collector runs and where it stops the heap from growing, unless the
// environment does. What it returns must be kept alive.
func tuneMemory() (ballast []byte) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	if most := limit.ContainerLimit(os.DirFS("/")); most > 0 {
		debug.SetMemoryLimit(int64(containerShare * float64(most)))
	}
	if os.Getenv("GOGC") != "" {
		return nil
	}
	return make([]byte, ballastBytes)
}
