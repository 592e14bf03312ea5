package execution

import "sync/atomic"

// Budget limits what a query uses: bytes of results held, or calls. It is safe for concurrent use. A nil Budget has
// no limit.
type Budget struct {
	most int64
	used atomic.Int64
}

// NewBudget returns a Budget with the given limit.
func NewBudget(most int64) *Budget { return &Budget{most: most} }

// take reserves n. It reports false, and reserves nothing, if less than n is left.
func (b *Budget) take(n int) bool {
	if b == nil {
		return true
	}
	for {
		used := b.used.Load()
		if used+int64(n) > b.most {
			return false
		}
		if b.used.CompareAndSwap(used, used+int64(n)) {
			return true
		}
	}
}
