package link

import (
	"runtime"
	"slices"
	"sync"
)

const (
	spareSize  = 64 << 10 // minimum size of reused memory
	spareSlack = 4 << 10  // extra bytes, so that a slightly larger message fits, too
	spareFit   = 4        // maximum ratio of memory to message size
	spareBytes = 96 << 20 // maximum total
	spareCount = 16
	spareAge   = 2 // garbage collections until memory is released
)

// spares keeps the memory of large messages for reuse during a few garbage collections. It is safe for concurrent
// use; the zero value is empty.
type spares struct {
	mu    sync.Mutex
	list  []spare // oldest first
	bytes int
	aging bool
}

// spare is unreferenced memory.
type spare struct {
	b   []byte
	age int // garbage collections since it was added
}

// memory is shared by all sessions.
var memory spares

// allocate returns n bytes with arbitrary content.
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

// keep adds unused memory. The oldest memory is released to make room.
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

// ageLater schedules age after the next garbage collection.
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
