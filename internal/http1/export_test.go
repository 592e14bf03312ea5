package http1

import "time"

// SetSweep changes how often idle connections are looked at, and returns what undoes it.
func SetSweep(d time.Duration) (undo func()) {
	before := sweepTime
	sweepTime = d
	return func() { sweepTime = before }
}
