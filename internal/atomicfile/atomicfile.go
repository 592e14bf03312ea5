// Package atomicfile writes files whole, with [Write] and [Replace], and reads them within a bound, with [Read]. Those
// that read and then write one take turns with [Lock] or [LockFolder]; [TryLock] does not wait.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrLocked is the error of TryLock for a file that is locked already.
var ErrLocked = errors.New("the file is locked")

// Write makes or replaces a file that only its owner can read. Whoever opens the file finds the old or the new content,
// also after a crash. The folder must be there. Concurrent writers do not mix; the last one wins.
func Write(name string, content []byte) error { return write(name, content, nil) }

// Replace is Write for a file of somebody else: the file keeps its mode and, where the process may set it, its owner.
func Replace(name string, content []byte) error {
	info, err := os.Stat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return write(name, content, info)
}

// write writes a file like the one before, if there is one.
func write(name string, content []byte, before os.FileInfo) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*") // mode 0600
	if err != nil {
		return err
	}
	if before != nil {
		keepOwner(f, before) // first: it may change the mode
		err = f.Chmod(before.Mode().Perm())
	}
	if err == nil {
		_, err = f.Write(content)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// Read reads a file of at most so many bytes.
func Read(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(content)) > most:
		return nil, fmt.Errorf("the file is longer than %d bytes", most)
	}
	return content, nil
}
