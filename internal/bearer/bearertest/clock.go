package bearertest

import (
	"sync"
	"time"
)

// Clock is a time that a test sets. It may be used from any goroutine.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock returns a Clock that stands at the present.
func NewClock() *Clock { return &Clock{at: time.Now()} }

// Now returns its time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Pass moves it on.
func (c *Clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}
