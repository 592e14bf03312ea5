package execution

import "sync/atomic"

// Budget counts what a query uses: bytes of the results that it holds, or calls. It may be used from any goroutine; nil
// has no bound.
type Budget struct {
	most int64
	used atomic.Int64
}

// NewBudget returns a Budget of so much.
func NewBudget(most int64) *Budget { return &Budget{most: most} }

// take reports whether there is room for so much more, and if so counts it.
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
