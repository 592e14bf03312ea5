package history

import "sync"

// store stores entries and details. Only one goroutine writes.
type store interface {
	// write stores a batch, which may be empty, and deletes entries by ascending ids. kept holds the stored form of
	// each record.
	write(batch []record, kept []stored, gone []uint64) error
	detail(id uint64) ([]byte, error) // nil if there is none
	close()
}

// memory is a store that is lost with the process.
type memory struct {
	mu      sync.Mutex
	details map[uint64][]byte
}

func newMemory() *memory { return &memory{details: map[uint64][]byte{}} }

func (m *memory) write(batch []record, _ []stored, gone []uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range batch {
		if r.entry != nil && r.entry.detailed != nil {
			m.details[r.entry.ID] = r.entry.detailed
		}
	}
	for _, id := range gone {
		delete(m.details, id)
	}
	return nil
}

func (m *memory) detail(id uint64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.details[id], nil
}

func (m *memory) close() {}
