package cluster

import (
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/lru"
)

const (
	// maxSenders bounds the processes whose requests are known; those that were heard of longest ago are forgotten.
	maxSenders = 256
	// maxLate bounds by how many numbers a request may come later than others of its sender.
	maxLate = 64 << 10
)

// received tells which requests of other processes came before, so that nobody who has recorded one can repeat it. Each
// process numbers its requests. It takes 8 KiB for each.
type received struct {
	mu sync.Mutex
	by *lru.Cache[string, *numbers]
}

// numbers are those of the requests of one process. Those far below the highest count as received.
type numbers struct {
	highest uint64
	bits    [maxLate / 64]uint64 // of the last maxLate numbers
}

func newReceived() received { return received{by: lru.New[string, *numbers](maxSenders, maxSenders)} }

// first reports whether a request comes for the first time. The sender is authentic.
func (r *received) first(sender string, number uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, known := r.by.Get(sender)
	if !known {
		of = &numbers{}
		r.by.Put(sender, of, 1)
	}
	return of.add(number)
}

// add reports whether a number is new.
func (s *numbers) add(number uint64) bool {
	if number < s.highest && s.highest-number >= maxLate {
		return false
	}
	for n := max(s.highest, number-min(number, maxLate)); n < number; n++ {
		word, bit := s.at(n + 1)
		*word &^= bit
	}
	s.highest = max(s.highest, number)
	word, bit := s.at(number)
	added := *word&bit == 0
	*word |= bit
	return added
}

func (s *numbers) at(n uint64) (word *uint64, bit uint64) {
	return &s.bits[n%maxLate/64], 1 << (n % 64)
}
