package shared_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// sealed returns a sealed State and the one below it.
func sealed(t testing.TB) (*shared.Memory, shared.State) {
	t.Helper()
	m := shared.NewMemory()
	t.Cleanup(m.Close)
	ring, err := shared.OpenRing(t.Context(), m, clusterKey)
	if err != nil {
		t.Fatal(err)
	}
	return m, shared.Sealed(m, ring)
}

// TestSealed checks that a value opens only as it was stored, under its key and with the cluster's keys.
func TestSealed(t *testing.T) {
	const secret = "a refresh token"
	for _, row := range []struct {
		name   string
		key    string // under which the value is found; "" = "a"
		change func(value []byte) []byte
		opens  bool
	}{
		{name: "as stored", opens: true},
		{name: "moved to another key", key: "b"},
		{name: "last byte changed", change: func(v []byte) []byte { v[len(v)-1] ^= 1; return v }},
		{name: "nonce changed", change: func(v []byte) []byte { v[5] ^= 1; return v }},
		{name: "unknown key", change: func(v []byte) []byte { v[0] ^= 1; return v }},
		{name: "cut", change: func(v []byte) []byte { return v[:len(v)-1] }},
		{name: "only a key", change: func(v []byte) []byte { return v[:4] }},
		{name: "plain", change: func([]byte) []byte { return []byte("x") }},
		{name: "of another cluster", change: func([]byte) []byte {
			m, s := sealed(t)
			_, _ = s.Put(t.Context(), "a", []byte(secret), 0, 0)
			e, _ := m.Get(t.Context(), "a")
			return e.Value
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, s := sealed(t)
			revision, err := s.Put(t.Context(), "a", []byte(secret), 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			e, _ := m.Get(t.Context(), "a")
			if strings.Contains(string(e.Value), secret) {
				t.Error("the value can be read")
			}
			key, value := "a", []byte(string(e.Value))
			if row.change != nil {
				value = row.change(value)
			}
			if row.key != "" {
				key, revision = row.key, 0
			}
			if revision, err = m.Put(t.Context(), key, value, revision, 0); err != nil {
				t.Fatal(err)
			}
			got, err := s.Get(t.Context(), key)
			if row.opens != (err == nil) || row.opens != (string(got.Value) == secret) ||
				err != nil && (!errors.Is(err, shared.ErrUnreadable) || got.Value != nil) {
				t.Errorf("got %q, %v", got.Value, err)
			}
			if got.Revision != revision {
				t.Errorf("got revision %d, want %d, which a Put needs", got.Revision, revision)
			}
		})
	}
}

// FuzzSealed checks that no value from the store is taken for one that was sealed.
func FuzzSealed(f *testing.F) {
	m, s := sealed(f)
	if _, err := s.Put(f.Context(), "a", []byte("secret"), 0, 0); err != nil {
		f.Fatal(err)
	}
	e, _ := m.Get(f.Context(), "a")
	f.Add(e.Value)
	f.Add(e.Value[:len(e.Value)-1])
	f.Add([]byte("\x01"))
	f.Fuzz(func(t *testing.T, value []byte) {
		before, _ := m.Get(t.Context(), "a")
		if _, err := m.Put(t.Context(), "a", value, before.Revision, 0); err != nil {
			return // none that can be stored
		}
		got, err := s.Get(t.Context(), "a")
		if original := string(value) == string(e.Value); original != (err == nil) || original != (got.Value != nil) {
			t.Errorf("got %q, %v", got.Value, err)
		}
		ring, err := shared.OpenRing(t.Context(), stored{m, value}, "")
		if err == nil {
			ring.First("x") // does not panic
		}
	})
}

// BenchmarkSealed measures storing and reading a value of a session.
func BenchmarkSealed(b *testing.B) {
	_, s := sealed(b)
	value, revision := []byte(strings.Repeat("x", 1024)), uint64(0)
	for b.Loop() {
		var err error
		if revision, err = s.Put(b.Context(), "session/a", value, revision, 0); err != nil {
			b.Fatal(err)
		}
		if _, err = s.Get(b.Context(), "session/a"); err != nil {
			b.Fatal(err)
		}
	}
}
