//go:build unix && !aix && !solaris

package atomicfile_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
)

func TestLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	var wg sync.WaitGroup
	var held atomic.Int32
	for range 20 {
		wg.Go(func() {
			unlock, err := atomicfile.Lock(t.Context(), name)
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			if n := held.Add(1); n != 1 {
				t.Errorf("%d have the lock at once", n)
			}
			held.Add(-1)
		})
	}
	wg.Wait()

	unlock, err := atomicfile.Lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	cancel(stop)
	if _, err := atomicfile.Lock(ctx, name); !errors.Is(err, stop) {
		t.Errorf("got %v, want the cause", err)
	}
	if _, err := atomicfile.Lock(t.Context(), filepath.Join(name, "below")); err == nil {
		t.Error("want an error for a name that cannot be")
	}
}
