package shared_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const clusterKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// replica is a ring that runs until the test ends or its stop is called.
func replica(t *testing.T, s shared.State) (r *shared.Ring, stop func()) {
	t.Helper()
	r, err := shared.OpenRing(t.Context(), s, clusterKey)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx, slog.New(slog.DiscardHandler)) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return r, stop
}

// TestRing follows two replicas for days: each opens what the other has sealed, for as long as a session lives.
func TestRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := shared.NewMemory()
		defer m.Close()
		a, _ := replica(t, m)
		b, stop := replica(t, m)
		type seal struct {
			id  uint32
			key string
			at  time.Time
		}
		var seals []seal
		signed := map[string]time.Time{} // last, by key
		used := map[uint32]time.Time{}   // last
		first, _ := a.First("x")
		for hour := range 24 * 6 {
			if hour == 60 { // a replica starts anew
				stop()
				b, _ = replica(t, m)
			}
			for _, r := range []*shared.Ring{a, b} {
				id, key := r.Newest("x")
				seals = append(seals, seal{id, string(key), time.Now()})
				used[id] = time.Now()
				keys := r.Keys("y")
				signed[string(keys[0])] = time.Now()
				for key, last := range signed {
					accepted := slices.ContainsFunc(keys, func(k []byte) bool { return string(k) == key })
					if age := time.Since(last); age <= 25*time.Hour && !accepted || age > 75*time.Hour && accepted {
						t.Fatalf("hour %d: a key that was last used %s ago is accepted: %t", hour, age, accepted)
					}
				}
			}
			for _, s := range seals {
				for name, r := range map[string]*shared.Ring{"a": a, "b": b} {
					key, known := r.Key("x", s.id)
					age := time.Since(s.at)
					if age <= 25*time.Hour && (!known || string(key) != s.key) {
						t.Fatalf("hour %d: %s does not know key %d, with which something was sealed %s ago", hour, name, s.id, age)
					}
					if age := time.Since(used[s.id]); age > 75*time.Hour && known && s.id != first {
						t.Fatalf("hour %d: %s still knows key %d, last used %s ago", hour, name, s.id, age)
					}
				}
				if time.Since(s.at) > 110*time.Hour {
					seals = seals[1:]
				}
			}
			time.Sleep(time.Hour)
		}
		if len(used) != 6 || len(signed) != 6 {
			t.Errorf("got %d keys for ids and %d for MACs in 6 days, want 6", len(used), len(signed))
		}
		if id, _ := b.First("x"); id != first {
			t.Errorf("the first key has changed from %d to %d", first, id)
		}
	})
}

// gate is a State that can be cut off from reading.
type gate struct {
	shared.State
	shut atomic.Bool
}

func (g *gate) Get(ctx context.Context, key string) (shared.Entry, error) {
	if g.shut.Load() {
		return shared.Entry{}, shared.ErrUnreachable
	}
	return g.State.Get(ctx, key)
}

// TestRingSettles checks that nobody seals with a key before the others know it.
func TestRingSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := shared.NewMemory()
		defer m.Close()
		a, _ := replica(t, m)
		time.Sleep(10 * time.Second) // b reads later than a
		g := &gate{State: m}
		b, _ := replica(t, g)
		old, _ := a.Newest("x")
		for range int(25 * time.Hour / time.Second) {
			time.Sleep(time.Second)
			id, _ := a.Newest("x")
			g.shut.Store(true)
			if _, known := b.Key("x", id); !known {
				t.Fatal("a seals with a key that b has not read")
			}
			g.shut.Store(false)
			if id != old {
				return
			}
		}
		t.Error("no second key")
	})
}

// TestRingLost checks that a replica stores its keys again if the store has lost them.
func TestRingLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := shared.NewMemory()
		defer m.Close()
		a, _ := replica(t, m)
		id, key := a.First("x")
		e, _ := m.Get(t.Context(), "keys")
		if err := m.Delete(t.Context(), "keys", e.Revision); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		b, _ := replica(t, m)
		if other, otherKey := b.First("x"); other != id || string(otherKey) != string(key) {
			t.Errorf("got key %d, want %d", other, id)
		}
		if _, other := a.First("y"); string(other) == string(key) {
			t.Error("two uses have the same key")
		}
	})
}

// A ring of another version serves.
func TestRing_Versions(t *testing.T) {
	const key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	for name, entry := range map[string]string{
		"newer": `[{"id":7,"key":"` + key + `","created":"2026-01-02T03:04:05Z","uses":["x"],"later":{"a":1}}]`,
		"older": `[{"id":7,"key":"` + key + `"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			m := shared.NewMemory()
			t.Cleanup(m.Close)
			if _, err := m.Put(t.Context(), "keys", []byte(entry), 0, 0); err != nil {
				t.Fatal(err)
			}
			r, err := shared.OpenRing(t.Context(), m, "")
			if err != nil {
				t.Fatal(err)
			}
			if id, _ := r.First("x"); id != 7 {
				t.Errorf("got the first key %d, want 7", id)
			}
		})
	}
}

// TestOpenRingErrors checks the lines that OpenRing fails with.
func TestOpenRingErrors(t *testing.T) {
	other := strings.Repeat("ab", 32)
	for _, row := range []struct{ name, stored, given, value, want string }{
		{name: "not 32 bytes", given: "abcd", want: "openssl rand -hex 32"},
		{name: "not a key", given: "?", want: "openssl rand -hex 32"},
		{name: "another key", stored: clusterKey, given: other, want: "another NEXUS_CLUSTER_KEY"},
		{name: "no key", stored: clusterKey, want: "set NEXUS_CLUSTER_KEY"},
		{name: "a key too many", given: clusterKey, stored: "none", want: "run without NEXUS_CLUSTER_KEY"},
		{name: "same key", stored: clusterKey, given: clusterKey},
		{name: "same key in base64", stored: clusterKey, given: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
		{name: "no JSON", value: "x", want: "not a ring"},
		{name: "no keys", value: "[]", want: "not a ring"},
		{name: "short key", value: `[{"id":1,"key":"AAAA"}]`, want: "not a ring"},
		{name: "only sealed", value: "\x01", given: clusterKey, want: "another NEXUS_CLUSTER_KEY"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := shared.NewMemory()
			t.Cleanup(m.Close)
			if row.stored != "" {
				if _, err := shared.OpenRing(t.Context(), m, strings.TrimPrefix(row.stored, "none")); err != nil {
					t.Fatal(err)
				}
			}
			if row.value != "" {
				if _, err := m.Put(t.Context(), "keys", []byte(row.value), 0, 0); err != nil {
					t.Fatal(err)
				}
			}
			_, err := shared.OpenRing(t.Context(), m, row.given)
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
			if e, _ := m.Get(t.Context(), "keys"); row.stored == clusterKey && strings.Contains(string(e.Value), `"key"`) {
				t.Error("the stored ring can be read")
			}
		})
	}
}

// ahead is a State whose clock is ahead by an hour.
type ahead struct{ shared.State }

func (a ahead) Get(ctx context.Context, key string) (shared.Entry, error) {
	e, err := a.State.Get(ctx, key)
	e.Created = e.Created.Add(time.Hour)
	return e, err
}

// The ring tells the store's time, also between two readings of it.
func TestRingNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := shared.NewMemory()
		defer m.Close()
		r, _ := replica(t, ahead{m})
		for range 5 {
			time.Sleep(7 * time.Second)
			if got := time.Until(r.Now()); got != time.Hour {
				t.Errorf("got a time ahead by %v, want 1h", got)
			}
		}
	})
}
