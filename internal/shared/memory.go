package shared

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is a State in this process. Create it with NewMemory.
type Memory struct {
	mu       sync.Mutex
	revision uint64
	entries  map[string]*stored
	changed  chan struct{} // closed at the next change
}

// stored is an entry with the timer of its expiry.
type stored struct {
	Entry
	expiry *time.Timer // nil = it stays
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory { return &Memory{entries: map[string]*stored{}, changed: make(chan struct{})} }

// Get implements State.
func (m *Memory) Get(_ context.Context, key string) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[key]; e != nil && e.Value != nil {
		return e.Entry, nil
	}
	return Entry{Key: key}, nil
}

// Put implements State.
func (m *Memory) Put(_ context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	if err := Check(key, value); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.revisionOf(key) != revision {
		return 0, ErrConflict
	}
	e := m.store(key, value)
	if ttl > 0 {
		e.expiry = time.AfterFunc(ttl, func() { _ = m.Delete(context.Background(), key, e.Revision) })
	}
	return e.Revision, nil
}

// Delete implements State.
func (m *Memory) Delete(_ context.Context, key string, revision uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision == 0 || m.revisionOf(key) != revision {
		return ErrConflict
	}
	m.store(key, nil)
	return nil
}

// Watch implements State.
func (m *Memory) Watch(ctx context.Context, prefix string, f func(Entry)) error {
	seen := uint64(0)
	for first := true; ctx.Err() == nil; first = false {
		m.mu.Lock()
		var changes []Entry
		for _, e := range m.entries {
			if e.Revision > seen && strings.HasPrefix(e.Key, prefix) && (e.Value != nil || !first) {
				changes = append(changes, e.Entry)
			}
		}
		seen = m.revision
		changed := m.changed
		m.mu.Unlock()
		slices.SortFunc(changes, func(a, b Entry) int { return int(a.Revision) - int(b.Revision) })
		for _, e := range changes {
			f(e)
		}
		if first {
			f(Entry{})
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// Connected implements State.
func (m *Memory) Connected() bool { return true }

// revisionOf returns the revision of the entry of a key; 0 if there is none.
func (m *Memory) revisionOf(key string) uint64 {
	if e := m.entries[key]; e != nil && e.Value != nil {
		return e.Revision
	}
	return 0
}

// store replaces an entry.
func (m *Memory) store(key string, value []byte) *stored {
	if old := m.entries[key]; old != nil && old.expiry != nil {
		old.expiry.Stop()
	}
	m.revision++
	e := &stored{Entry: Entry{Key: key, Value: value, Revision: m.revision, Created: time.Now()}}
	m.entries[key] = e
	if len(m.entries) > 2*maxDeleted {
		m.forget()
	}
	close(m.changed)
	m.changed = make(chan struct{})
	return e
}

// maxDeleted is the number of deleted entries kept so that watches see them.
const maxDeleted = 10_000

// forget drops the oldest deleted entries beyond maxDeleted.
func (m *Memory) forget() {
	deleted := slices.DeleteFunc(slices.Collect(maps.Values(m.entries)), func(e *stored) bool { return e.Value != nil })
	slices.SortFunc(deleted, func(a, b *stored) int { return int(b.Revision) - int(a.Revision) })
	for _, e := range deleted[min(maxDeleted, len(deleted)):] {
		delete(m.entries, e.Key)
	}
}

// Check returns an error for a key or value that no State stores.
func Check(key string, value []byte) error {
	valid := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '/'
	}
	switch {
	case key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return !valid(r) }) ||
		slices.Contains(strings.Split(key, "/"), ""):
		return fmt.Errorf("%q is not a key of the shared state", key)
	case len(value) == 0 || len(value) > maxValue:
		return fmt.Errorf("the value of %s has %d bytes; 1 to %d can be shared", key, len(value), maxValue)
	}
	return nil
}
