package shared_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

func mirror(t *testing.T, state shared.State) *shared.Mirror {
	t.Helper()
	m, err := shared.OpenMirror(t.Context(), state, "a/", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// Mirrors of one State hold its entries, own changes at once, and lose no update.
func TestMirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := shared.NewMemory()
		for _, key := range []string{"a/x", "b", "c"} {
			if _, err := state.Put(t.Context(), key, []byte(key), 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		one, other := mirror(t, state), mirror(t, state)
		if got := one.Entries(""); len(got) != 2 || string(got[0].Value) != "a/x" || string(one.Entry("b").Value) != "b" {
			t.Fatalf("got %v", got)
		}
		var wg sync.WaitGroup
		for _, m := range []*shared.Mirror{one, other} {
			for range 10 {
				wg.Go(func() {
					err := m.Update(t.Context(), "a/y", func(v []byte) ([]byte, error) { return append(v[:len(v):len(v)], '1'), nil })
					if err != nil || len(m.Entry("a/y").Value) == 0 {
						t.Errorf("got %v, %v", m.Entry("a/y"), err)
					}
				})
			}
		}
		wg.Wait()
		synctest.Wait()
		for _, m := range []*shared.Mirror{one, other} {
			if got := string(m.Entry("a/y").Value); got != "11111111111111111111" {
				t.Errorf("got %s, want 20 updates", got)
			}
		}
		revision := one.Entry("a/y").Revision
		if err := one.Delete(t.Context(), "a/y", revision); err != nil || one.Entry("a/y").Revision != 0 {
			t.Errorf("got %v, %v", one.Entry("a/y"), err)
		}
		if err := other.Wait(t.Context(), "a/y", revision); err != nil || other.Entry("a/y").Value != nil {
			t.Errorf("got %v, %v", other.Entry("a/y"), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := one.Wait(ctx, "b", one.Entry("b").Revision); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the context", err)
		}
	})
}

// overtaken is a State that others change while an operation of its replica is on its way.
type overtaken struct {
	*shared.Memory
	before, after func() // the operation; nil = nothing
}

// change lets others change the State, and the watches report that.
func change(f *func()) {
	if now := *f; now != nil {
		*f = nil
		now()
		synctest.Wait()
	}
}

func (s *overtaken) Get(ctx context.Context, key string) (shared.Entry, error) {
	change(&s.before)
	defer change(&s.after)
	return s.Memory.Get(ctx, key)
}

func (s *overtaken) Put(
	ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration,
) (uint64, error) {
	change(&s.before)
	defer change(&s.after)
	return s.Memory.Put(ctx, key, value, revision, ttl)
}

func (s *overtaken) Delete(ctx context.Context, key string, revision uint64) error {
	change(&s.before)
	defer change(&s.after)
	return s.Memory.Delete(ctx, key, revision)
}

// A Mirror does not take what an operation has stored or read for the present entry if others have changed it since.
func TestMirror_Overtaken(t *testing.T) {
	for name, c := range map[string]struct {
		present string // the value before the operation; empty = none
		before  string // what others store before the State performs it; "-" removes it, empty changes nothing
		after   string // the same before the answer arrives
		do      func(m *shared.Mirror, revision uint64) error
		want    string
	}{
		"stored, then removed":        {after: "-", do: putOwn},
		"stored, then changed":        {after: "theirs", do: putOwn, want: "theirs"},
		"removed, then stored":        {present: "old", before: "-", do: putNew, want: "own"},
		"removed, stored and removed": {present: "old", before: "-", after: "-", do: putNew},
		"changed over":                {present: "old", do: putOwn, want: "own"},
		"deleted, then stored":        {present: "old", after: "theirs", do: remove, want: "theirs"},
		"read, then changed":          {present: "old", after: "theirs", do: refresh, want: "theirs"},
		"read, then removed":          {present: "old", after: "-", do: refresh},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				state := &overtaken{Memory: shared.NewMemory()}
				theirs := func(value string) func() {
					return func() {
						e, err := state.Memory.Get(t.Context(), "a/x")
						if value == "-" && err == nil {
							err = state.Memory.Delete(t.Context(), "a/x", e.Revision)
						} else if value != "" {
							_, err = state.Memory.Put(t.Context(), "a/x", []byte(value), e.Revision, 0)
						}
						if err != nil {
							t.Error(err)
						}
					}
				}
				theirs(c.present)()
				m := mirror(t, state)
				state.before, state.after = theirs(c.before), theirs(c.after)
				if err := c.do(m, m.Entry("a/x").Revision); err != nil {
					t.Error(err)
				}
				for range 2 {
					if got := m.Entry("a/x"); string(got.Value) != c.want {
						t.Errorf("got %q, want %q", got.Value, c.want)
					}
					synctest.Wait()
				}
			})
		})
	}
}

func putOwn(m *shared.Mirror, revision uint64) error {
	_, err := m.Put(context.Background(), "a/x", []byte("own"), revision, 0)
	return err
}

func putNew(m *shared.Mirror, _ uint64) error { return putOwn(m, 0) }

func remove(m *shared.Mirror, revision uint64) error {
	return m.Delete(context.Background(), "a/x", revision)
}

func refresh(m *shared.Mirror, _ uint64) error { return m.Refresh(context.Background(), "a/x") }

// silent is a State whose watches get nothing.
type silent struct{ *shared.Memory }

func (silent) Watch(ctx context.Context, _ string, _ func(shared.Entry)) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestOpenMirror_Unreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if m, err := shared.OpenMirror(ctx, silent{shared.NewMemory()}, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v", m, err)
		}
	})
}
