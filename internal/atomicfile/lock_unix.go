//go:build unix && !aix && !solaris

package atomicfile

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lookAgain is the time between two attempts to get a lock.
const lookAgain = 20 * time.Millisecond

// TryLock locks an open file until it is closed or the process ends. The error is ErrLocked if the file is locked
// already, in this process or in another, and errors.ErrUnsupported if its file system has no locks.
func TryLock(f *os.File) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrLocked
		case errors.Is(err, syscall.EINVAL): // some file systems refuse locks with it
			return errors.ErrUnsupported
		default:
			return err
		}
	}
}

// Lock keeps others that lock the same file out, in this process and in others, until unlock is called or the process
// ends. It makes the file, which stays. It waits until ctx ends. It does not order accesses to memory.
func Lock(ctx context.Context, name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return lock(ctx, f)
}

// LockFolder is Lock for a folder, which it opens only. A file system without such locks is not locked.
func LockFolder(ctx context.Context, name string) (unlock func(), err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if unlock, err = lock(ctx, f); err != nil && ctx.Err() == nil {
		return func() {}, nil
	}
	return unlock, err
}

// lock waits for the lock of a file, and closes the file if it gets none.
func lock(ctx context.Context, f *os.File) (unlock func(), err error) {
	for {
		err = TryLock(f)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, ErrLocked) {
			f.Close()
			return nil, err
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		}
	}
}

// keepOwner gives a file the owner of another, as far as this process may.
func keepOwner(f *os.File, like os.FileInfo) {
	if stat, ok := like.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(stat.Uid), int(stat.Gid))
	}
}

// Writable returns an error if files cannot be made in a folder. It makes none.
func Writable(folder string) error { return unix.Access(folder, unix.W_OK|unix.X_OK) }
