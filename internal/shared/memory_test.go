package shared_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// stored is a State whose entries all have one value.
type stored struct {
	*shared.Memory
	value []byte
}

func (s stored) Get(context.Context, string) (shared.Entry, error) {
	return shared.Entry{Key: "keys", Value: s.value, Revision: 1, Created: time.Now()}, nil
}

// TestMemoryClose checks that Close leaves nothing that still acts.
func TestMemoryClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := shared.NewMemory()
		for i, key := range []string{"before", "after"} {
			if i == 1 {
				m.Close()
			}
			if _, err := m.Put(t.Context(), key, []byte("1"), 0, time.Second); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		for _, key := range []string{"before", "after"} {
			if e, _ := m.Get(t.Context(), key); e.Revision == 0 {
				t.Errorf("%s: expired after Close", key)
			}
		}
	})
}

// BenchmarkMemory measures a change among other entries, with a watch.
func BenchmarkMemory(b *testing.B) {
	for _, others := range []int{0, 100_000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			m := shared.NewMemory()
			defer m.Close()
			for i := range others {
				if _, err := m.Put(b.Context(), fmt.Sprintf("other/%d", i), []byte("1"), 0, time.Hour); err != nil {
					b.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(b.Context())
			begun, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				_ = m.Watch(ctx, "", func(e shared.Entry) {
					if e.Key == "" {
						close(begun)
					}
				})
			}()
			<-begun
			for b.Loop() {
				r, err := m.Put(b.Context(), "k", []byte("1"), 0, time.Minute)
				if err == nil {
					err = m.Delete(b.Context(), "k", r)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			cancel()
			<-ended
		})
	}
}
