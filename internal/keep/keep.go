// Package keep writes the entries of a store to a file that processes may share. [File.Open] reads the file and starts
// the goroutine that writes; [File.Changed] schedules a write and never waits for a disk; [File.Close] writes pending
// changes and waits for the goroutine. Before each write the store merges the entries of other processes; the file is
// then replaced atomically. Of simultaneous writes the last one wins.
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

// delay is the time from a change to its write.
const delay = 2 * time.Second

// File is a store's file with one document of type D. The exported fields are set before Open and do not change.
type File[D any] struct {
	Folder string // created if missing; "" writes nothing
	Name   string // of the file in it
	What   string // "what was learned of results", for the log
	Log    *slog.Logger
	Check  func(D) error                     // returns why a document from the file cannot be used
	Merge  func(*D) (json.RawMessage, error) // merges the document of others, unless nil; returns the document to write

	changed atomic.Bool   // since the last write
	wake    chan struct{} // signals a change
	closing chan struct{}
	once    sync.Once
	done    sync.WaitGroup
}

// Open returns the document in the file, or nil. An unreadable file is logged and counts as missing.
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

// Changed schedules a write.
func (f *File[D]) Changed() {
	f.changed.Store(true)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Close writes pending changes. Later changes are not written.
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
