package link

import (
	"runtime"
	"slices"
	"sync"
)

const (
	spareSize  = 64 << 10 // from which the memory of a message is used again
	spareSlack = 4 << 10  // beyond a message, so that the next one fits if it is a little larger
	spareFit   = 4        // times the size of a message, that the memory for it may be
	spareBytes = 96 << 20 // kept at most
	spareCount = 16
	spareAge   = 2 // collections that memory is kept for
)

// spares keeps the memory of large messages that have passed for those that follow, for a few collections. It is
// safe for concurrent use; the zero value is empty.
type spares struct {
	mu    sync.Mutex
	list  []spare // the oldest first
	bytes int
	aging bool
}

// spare is memory that nothing else refers to.
type spare struct {
	b   []byte
	age int // collections since it was kept
}

// memory is shared by all sessions, for the results of all pass through one heap.
var memory spares

// allocate returns n bytes with any content.
func (s *spares) allocate(n int) []byte {
	if n < spareSize {
		return make([]byte, n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	best := -1
	for i := range s.list {
		if size := cap(s.list[i].b); size >= n && size <= spareFit*n && (best < 0 || size < cap(s.list[best].b)) {
			best = i
		}
	}
	if best < 0 {
		return make([]byte, n, n+spareSlack)
	}
	return s.takeLocked(best)[:n]
}

func (s *spares) takeLocked(i int) []byte {
	b := s.list[i].b
	s.bytes -= cap(b)
	s.list = slices.Delete(s.list, i, i+1)
	return b
}

// keep takes memory that is not used any more. What was kept longest makes room for it.
func (s *spares) keep(b []byte) {
	if cap(b) < spareSize || cap(b) > spareBytes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.list) == spareCount || s.bytes+cap(b) > spareBytes {
		s.takeLocked(0)
	}
	s.list = append(s.list, spare{b: b[:0]})
	s.bytes += cap(b)
	if !s.aging {
		s.aging = true
		s.ageLater()
	}
}

// ageLater has age called after the next collection.
func (s *spares) ageLater() {
	mark := new(*byte) // small values without pointers might not be collected
	runtime.AddCleanup(mark, (*spares).age, s)
}

func (s *spares) age() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		s.list[i].age++
	}
	for len(s.list) > 0 && s.list[0].age >= spareAge {
		s.takeLocked(0)
	}
	if s.aging = len(s.list) > 0; s.aging {
		s.ageLater()
	}
}
