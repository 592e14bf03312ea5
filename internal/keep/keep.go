// Package keep writes what a store learns to a file that processes may share. [File.Open] reads what was written before
// and starts the one goroutine that writes; [File.Changed] asks it to, some time later, and does not wait for a disk;
// [File.Close] writes what is not written yet and waits for the goroutine. The file is written whole, by renaming, once
// the store has taken over what others have written since. Of processes that write at the same moment the last one
// wins.
package keep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
)

// MaxFile bounds a file that is read, in bytes.
const MaxFile = 16 << 20

// delay is how long what has changed may wait to be written.
const delay = 2 * time.Second

// File is where a store keeps documents of a type. The exported fields are set before Open and do not change.
type File[D any] struct {
	Folder string // made if need be; without one nothing is written
	Name   string // of the file in it
	What   string // "what was learned of results", for the log
	Log    *slog.Logger
	Check  func(D) error                     // says why a document that was read cannot be used
	Merge  func(*D) (json.RawMessage, error) // takes over what others wrote, unless it is nil; returns what to write

	changed atomic.Bool   // since it was written
	wake    chan struct{} // when something has changed
	closing chan struct{}
	once    sync.Once
	done    sync.WaitGroup
}

// Open returns what was written before, or nil. A file that cannot be read is logged and counts as none.
func (f *File[D]) Open() *D {
	f.wake, f.closing = make(chan struct{}, 1), make(chan struct{})
	if f.Folder == "" {
		return nil
	}
	doc, err := f.read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.Log.Warn(f.What+" cannot be read and is learned anew", "file", f.path(), "error", err)
	}
	f.done.Go(f.work)
	return doc
}

// Changed has the file written.
func (f *File[D]) Changed() {
	f.changed.Store(true)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Close writes what is not written yet; later changes are not written.
func (f *File[D]) Close() {
	f.once.Do(func() { close(f.closing) })
	f.done.Wait()
}

func (f *File[D]) work() {
	defer f.write()
	for {
		select {
		case <-f.closing:
			return
		case <-f.wake:
		}
		select {
		case <-f.closing:
			return
		case <-time.After(delay):
			f.write()
		}
	}
}

func (f *File[D]) write() {
	if !f.changed.Swap(false) {
		return
	}
	others, _ := f.read() // a damaged file was logged by Open
	content, err := f.Merge(others)
	if err == nil {
		err = os.MkdirAll(f.Folder, 0o700)
	}
	if err == nil {
		err = atomicfile.Write(f.path(), content)
	}
	if err != nil {
		f.Log.Warn(f.What+" cannot be kept", "file", f.path(), "error", err)
	}
}

func (f *File[D]) read() (*D, error) {
	raw, err := atomicfile.Read(f.path(), MaxFile)
	if err != nil {
		return nil, err
	}
	var doc D
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("decoding it: %w", err)
	}
	if err := f.Check(doc); err != nil {
		return nil, err
	}
	return &doc, nil
}

func (f *File[D]) path() string { return filepath.Join(f.Folder, f.Name) }
