//go:build unix && !aix && !solaris

package atomicfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
)

func TestTryLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	var files [2]*os.File
	for i := range files {
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	if err := atomicfile.TryLock(files[0]); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.TryLock(files[1]); !errors.Is(err, atomicfile.ErrLocked) {
		t.Errorf("a locked file: got %v, want ErrLocked", err)
	}
	files[0].Close()
	if err := atomicfile.TryLock(files[1]); err != nil {
		t.Errorf("after it was closed: got %v", err)
	}
	files[1].Close()
	if err := atomicfile.TryLock(files[1]); err == nil || errors.Is(err, atomicfile.ErrLocked) {
		t.Errorf("a closed file: got %v, want another error than ErrLocked", err)
	}
}

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
