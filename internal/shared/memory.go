package shared

import (
	"context"
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
	watches  map[*watch]struct{}
	closed   bool
}

// stored is an entry with the timer of its expiry.
type stored struct {
	Entry
	expiry *time.Timer // nil = it stays
}

// watch is one call of Watch.
type watch struct {
	prefix  string
	pending map[string]change // the last change of each key that the call has not passed on
	wake    chan struct{}     // has room for one
}

// change is a change of an entry. Its revision differs from that of an entry that was deleted.
type change struct {
	Entry
	revision uint64
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	return &Memory{entries: map[string]*stored{}, watches: map[*watch]struct{}{}}
}

// Get implements State.
func (m *Memory) Get(_ context.Context, key string) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[key]; e != nil {
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
	m.drop(key)
	e := &stored{Entry: Entry{Key: key, Value: value, Revision: m.revision + 1, Created: time.Now()}}
	if ttl > 0 && !m.closed {
		e.expiry = time.AfterFunc(ttl, func() { _ = m.Delete(context.Background(), key, e.Revision) })
	}
	m.entries[key] = e
	m.tell(e.Entry)
	return e.Revision, nil
}

// Delete implements State.
func (m *Memory) Delete(_ context.Context, key string, revision uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision == 0 || m.revisionOf(key) != revision {
		return ErrConflict
	}
	m.drop(key)
	m.tell(Entry{Key: key})
	return nil
}

// Watch implements State.
func (m *Memory) Watch(ctx context.Context, prefix string, f func(Entry)) error {
	w := &watch{prefix: prefix, pending: map[string]change{}, wake: make(chan struct{}, 1)}
	m.mu.Lock()
	for _, e := range m.entries {
		w.add(change{e.Entry, e.Revision})
	}
	m.watches[w] = struct{}{}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.watches, w)
		m.mu.Unlock()
	}()
	for first := true; ctx.Err() == nil; first = false {
		m.mu.Lock()
		changes := slices.Collect(maps.Values(w.pending))
		w.pending = map[string]change{}
		m.mu.Unlock()
		slices.SortFunc(changes, func(a, b change) int { return int(a.revision) - int(b.revision) })
		for _, c := range changes {
			if !first || c.Value != nil {
				f(c.Entry)
			}
		}
		if first {
			f(Entry{})
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// Connected implements State.
func (m *Memory) Connected() bool { return true }

// Close stops the expiry of entries.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, e := range m.entries {
		if e.expiry != nil {
			e.expiry.Stop()
		}
	}
}

// revisionOf returns the revision of the entry of a key; 0 if there is none.
func (m *Memory) revisionOf(key string) uint64 {
	if e := m.entries[key]; e != nil {
		return e.Revision
	}
	return 0
}

// drop removes an entry without telling the watches.
func (m *Memory) drop(key string) {
	if e := m.entries[key]; e != nil && e.expiry != nil {
		e.expiry.Stop()
	}
	delete(m.entries, key)
}

// tell counts a change and passes it to the watches.
func (m *Memory) tell(e Entry) {
	m.revision++
	for w := range m.watches {
		w.add(change{e, m.revision})
	}
}

// add notes a change of a key that the watch covers.
func (w *watch) add(c change) {
	if !strings.HasPrefix(c.Key, w.prefix) {
		return
	}
	w.pending[c.Key] = c
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
