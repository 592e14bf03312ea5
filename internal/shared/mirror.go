package shared

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	maxConflicts  = 30
	conflictPause = 5 * time.Millisecond // grows with each conflict
)

// Mirror is a copy of some entries of a State that follows their changes. What it holds can be read without waiting,
// also while the State cannot be reached. Own changes are in it at once. It is safe for concurrent use; Close ends it.
type Mirror struct {
	state State
	end   context.CancelFunc
	work  sync.WaitGroup

	mu      sync.Mutex
	entries map[string]Entry
	own     map[string]uint64       // revisions that Put stored and the watch has not reported
	reports map[string]uint64       // how often the watch has reported each key; they stay, some per server or caller
	changed chan struct{}           // closed at the next change
	follow  func(before, now Entry) // see Follow; nil = nobody follows
}

// OpenMirror returns a Mirror of the entries whose keys begin with one of the prefixes, once it has them all. The error
// means that ctx ended before.
func OpenMirror(ctx context.Context, state State, prefixes ...string) (*Mirror, error) {
	m := &Mirror{
		state: state, entries: map[string]Entry{}, own: map[string]uint64{}, reports: map[string]uint64{},
		changed: make(chan struct{}),
	}
	watching, end := context.WithCancel(context.WithoutCancel(ctx))
	m.end = end
	begun := make(chan struct{}, len(prefixes))
	for _, prefix := range prefixes {
		m.work.Go(func() {
			_ = state.Watch(watching, prefix, func(e Entry) { // until the Mirror or the State is closed
				if e.Key == "" {
					begun <- struct{}{}
				} else {
					m.report(e)
				}
			})
		})
	}
	for range prefixes {
		select {
		case <-begun:
		case <-ctx.Done():
			m.Close()
			return nil, fmt.Errorf("reading the shared state: %w", cmp.Or(context.Cause(ctx), ErrUnreachable))
		}
	}
	return m, nil
}

// Close ends the Mirror. Its entries can still be read.
func (m *Mirror) Close() {
	m.end()
	m.work.Wait()
}

// report takes over an entry from the watch.
func (m *Mirror) report(e Entry) {
	m.mu.Lock()
	m.reports[e.Key]++
	tell := m.apply(e)
	m.mu.Unlock()
	tell()
}

// Follow calls f with each entry that others change from now on, before and after it, when the Mirror holds it. Some of
// the Mirror's own changes are among them. Calls may be concurrent and must not block. There is one f.
func (m *Mirror) Follow(f func(before, now Entry)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.follow = f
}

// reported returns how often the watch has reported a key.
func (m *Mirror) reported(key string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reports[key]
}

// apply takes over an entry, unless a later own one is known. mu is held. What follows the Mirror is told by a call of
// tell, without mu.
func (m *Mirror) apply(e Entry) (tell func()) {
	before, follow := m.entries[e.Key], m.follow
	switch {
	case e.Revision == 0:
		delete(m.entries, e.Key)
	case e.Revision < m.own[e.Key]:
		return func() {}
	default:
		m.entries[e.Key] = e
	}
	delete(m.own, e.Key)
	m.wake()
	if follow == nil || before.Revision == e.Revision {
		return func() {}
	}
	return func() { follow(before, e) }
}

func (m *Mirror) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Entry returns the entry of a key. Its revision is 0 if there is none. One that cannot be opened has a revision and no
// value.
func (m *Mirror) Entry(key string) Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[key]
	e.Key = key
	return e
}

// Entries returns the entries whose keys begin with prefix, in order of their keys.
func (m *Mirror) Entries(prefix string) (out []Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(m.entries)) {
		if strings.HasPrefix(key, prefix) {
			out = append(out, m.entries[key])
		}
	}
	return out
}

// Wait waits until an entry has another revision, at most until ctx ends.
func (m *Mirror) Wait(ctx context.Context, key string, revision uint64) error {
	for {
		m.mu.Lock()
		now, changed := m.entries[key].Revision, m.changed
		m.mu.Unlock()
		if now != revision {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Put is Put of the State. After ErrConflict it refreshes the entry.
func (m *Mirror) Put(
	ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration,
) (uint64, error) {
	reports := m.reported(key)
	stored, err := m.state.Put(ctx, key, value, revision, ttl)
	if errors.Is(err, ErrConflict) || err == nil && !m.put(Entry{Key: key, Value: value, Revision: stored}, reports) {
		_ = m.Refresh(ctx, key) // else the next conflict does it
	}
	return stored, err
}

// put takes over an own entry, unless a later one is known. It reports false if the watch has reported since that there
// is none: that may be from before or after the entry was stored.
func (m *Mirror) put(e Entry, reports uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.entries[e.Key].Revision
	if known == 0 && m.reports[e.Key] != reports {
		return false
	}
	if known < e.Revision {
		m.entries[e.Key] = e
		m.own[e.Key] = e.Revision
		m.wake()
	}
	return true
}

// Delete is Delete of the State. After ErrConflict it refreshes the entry.
func (m *Mirror) Delete(ctx context.Context, key string, revision uint64) error {
	err := m.state.Delete(ctx, key, revision)
	switch {
	case err == nil:
		m.mu.Lock()
		if m.entries[key].Revision <= revision { // else others have stored it again
			m.apply(Entry{Key: key})
		}
		m.mu.Unlock()
	case errors.Is(err, ErrConflict):
		_ = m.Refresh(ctx, key) // else the next conflict does it
	}
	return err
}

// Refresh takes over an entry as the State reads it, which may be old, unless the watch reports it meanwhile.
func (m *Mirror) Refresh(ctx context.Context, key string) error {
	reports := m.reported(key)
	e, err := m.state.Get(ctx, key)
	if err != nil && !errors.Is(err, ErrUnreadable) {
		return err
	}
	tell := func() {}
	m.mu.Lock()
	if m.reports[key] == reports {
		tell = m.apply(e)
	}
	m.mu.Unlock()
	tell()
	return nil
}

// Update changes an entry, which stays. edit returns the next value for the present one, which is nil if there is none
// or it cannot be opened; the same value changes nothing. edit is called again after changes by others. An error means
// that nothing has changed, except after ErrUnreachable.
func (m *Mirror) Update(ctx context.Context, key string, edit func(value []byte) ([]byte, error)) error {
	for conflicts := 1; ; conflicts++ {
		e := m.Entry(key)
		value, err := edit(e.Value)
		if err != nil || bytes.Equal(value, e.Value) {
			return err
		}
		if _, err = m.Put(ctx, key, value, e.Revision, 0); !errors.Is(err, ErrConflict) || conflicts == maxConflicts {
			return err
		}
		select {
		case <-time.After(time.Duration(conflicts) * conflictPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
