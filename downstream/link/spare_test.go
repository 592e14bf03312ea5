package link

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// Memory of a large message serves one that follows and fits, once, and goes to the collector when none does.
func TestSpares(t *testing.T) {
	percent := debug.SetGCPercent(-1) // each collection ages what is kept
	defer debug.SetGCPercent(percent)
	var s spares
	large := s.allocate(8 << 20)
	large[0] = 'x'
	s.keep(large)
	if b := s.allocate(1 << 20); b[0] == 'x' {
		t.Error("a message of an eighth of the size: got the memory, want other memory")
	}
	if b := s.allocate(4 << 20); b[0] != 'x' || len(b) != 4<<20 {
		t.Errorf("a message of half the size: got %d bytes of other memory, want the memory", len(b))
	}
	if b := s.allocate(4 << 20); b[0] == 'x' {
		t.Error("another: got memory that is in use")
	}
	kept := func() (count, bytes int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.list), s.bytes
	}
	for range 2 * spareCount {
		s.keep(make([]byte, 1<<20))
	}
	if count, bytes := kept(); count != spareCount || bytes != spareCount<<20 {
		t.Errorf("got %d pieces of %d bytes, want %d of 1 MiB", count, bytes, spareCount)
	}
	s.keep(make([]byte, spareBytes))
	s.keep(make([]byte, spareBytes+1))
	s.keep(make([]byte, 100)) // not worth it
	if count, bytes := kept(); count != 1 || bytes != spareBytes {
		t.Errorf("got %d pieces of %d bytes, want the one of %d", count, bytes, spareBytes)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		if count, bytes := kept(); count == 0 && bytes == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("after some collections: got memory kept, want none")
		}
	}
}
