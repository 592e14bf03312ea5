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
