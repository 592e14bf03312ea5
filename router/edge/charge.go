package edge

import (
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// charge is a number of bytes charged to a caller until end. The zero value charges nothing.
type charge struct {
	mu    sync.Mutex
	bytes int
	ended bool
}

// set changes the number of bytes. It reports false, and changes nothing, if the caller holds too much. It leaves at
// least half of the caller's memory limit for messages.
func (c *charge) set(budget *limit.Budget, caller string, bytes int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	more := bytes - c.bytes
	switch {
	case c.ended || more == 0:
		return true
	case more < 0:
		budget.Release(caller, -more)
	case !budget.ReserveSpare(caller, more):
		return false
	}
	c.bytes = bytes
	return true
}

// end releases the bytes. Later calls of set charge nothing.
func (c *charge) end(budget *limit.Budget, caller string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes > 0 {
		budget.Release(caller, c.bytes)
	}
	c.bytes, c.ended = 0, true
}
