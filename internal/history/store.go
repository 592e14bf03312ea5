package history

import "sync"

// store keeps entries and details. Its writes come from one goroutine.
type store interface {
	// write keeps a batch, and drops what is older than the id oldest.
	write(batch []record, oldest uint64) error
	detail(id uint64) ([]byte, error) // nil if there is none
	close()
}

// memory is a store that ends with the process.
type memory struct {
	mu      sync.Mutex
	oldest  uint64
	details map[uint64][]byte
}

func newMemory() *memory { return &memory{details: map[uint64][]byte{}} }

func (m *memory) write(batch []record, oldest uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range batch {
		if m.oldest == 0 {
			m.oldest = r.entry.ID
		}
		if r.whole != nil {
			m.details[r.entry.ID] = r.whole
		}
	}
	for ; m.oldest < oldest; m.oldest++ {
		delete(m.details, m.oldest)
	}
	return nil
}

func (m *memory) detail(id uint64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.details[id], nil
}

func (m *memory) close() {}
