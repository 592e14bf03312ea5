package execution

import (
	"sync"

	"github.com/agenticnexus/agenticnexus/downstream"
)

// reading charges a response to its caller while it is read.
type reading struct {
	hold downstream.Hold // nil = no charge

	mu       sync.Mutex
	total    int
	releases []func()
	over     bool
}

// reserve implements downstream.Request.Reserve. A response read again after a failed attempt is charged once.
func (r *reading) reserve(total int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false
	}
	if r.hold == nil || total <= r.total {
		return true
	}
	release, ok := r.hold(total - r.total)
	if ok {
		r.total = total
		r.releases = append(r.releases, release)
	}
	return ok
}

// end releases the charges.
func (r *reading) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	for _, release := range r.releases {
		release()
	}
}
