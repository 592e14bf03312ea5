package pins

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
)

const (
	fileName        = "pins.json"
	documentVersion = 1
	maxFile         = 1 << 30 // bytes of a file that is read
	lockTime        = 5 * time.Second
)

// file is the file of pins. Without a folder there is none. Changes are merged under a lock.
type file struct {
	folder string
	last   os.FileInfo // as it was read or written last
}

func (f *file) path() string { return filepath.Join(f.folder, fileName) }

// String implements keeper.
func (f *file) String() string { return f.path() }

// merge implements keeper. After a failed write, it returns what should have been written.
func (f *file) merge(
	ctx context.Context, known *document, servers []string, change func(*document, string),
) (doc *document, damage string, err error) {
	err = f.locked(ctx, func() error {
		if doc, damage, err = f.load(known); err != nil || len(servers) == 0 {
			return err
		}
		for _, server := range servers {
			change(doc, server)
		}
		return f.write(doc)
	})
	return doc, damage, err
}

// locked calls use while no other process uses the file. Where files cannot be locked, it calls use anyway.
func (f *file) locked(ctx context.Context, use func() error) error {
	if f.folder == "" {
		return use()
	}
	_ = os.MkdirAll(f.folder, 0o700) // writing reports the error
	// The process may be about to end, which must not keep it from writing.
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), lockTime,
		fmt.Errorf("another process holds %s.lock", f.path()))
	defer cancel()
	unlock, err := atomicfile.Lock(ctx, f.path()+".lock")
	switch {
	case err == nil:
		defer unlock()
	case ctx.Err() != nil:
		return err
	}
	return use()
}

// load reads the file. If there is none, it returns what is known. A damaged file is kept under another name, the
// damage is described, and what is known is written in its place; if that is nothing, no list counts as the first one.
func (f *file) load(known *document) (doc *document, damage string, err error) {
	f.last, _ = os.Stat(f.path()) // nil without one
	raw, err := atomicfile.Read(f.path(), maxFile)
	switch {
	case f.folder == "", errors.Is(err, fs.ErrNotExist):
		return known, "", nil
	case err != nil:
		return nil, "", err
	}
	doc = &document{}
	if err = json.Unmarshal(raw, doc); err == nil && !doc.valid() {
		err = errors.New("it is not a list of pins of this version")
	}
	if err == nil {
		return doc, "", nil
	}
	known.Lost = known.Lost || len(known.Servers) == 0
	aside := f.path() + ".damaged-" + time.Now().UTC().Format("20060102T150405.000")
	kept := "it is kept as " + aside
	if failed := os.Rename(f.path(), aside); failed != nil {
		kept = failed.Error()
	} else if err := f.write(known); err != nil {
		kept += ", but a new one cannot be written: " + err.Error()
	}
	damage = fmt.Sprintf("the pins of tools in %s are damaged (%v); %s", f.path(), err, kept)
	if known.Lost {
		damage += "; no tool counts as approved until: " + ApproveCommand("SERVER", "")
	}
	return known, damage, nil
}

// Names returns the names of the tools in the pins that a state folder has, by server; nil if they cannot be read.
func Names(folder string) map[string][]string {
	var doc document
	raw, err := atomicfile.Read(filepath.Join(folder, fileName), maxFile)
	if err != nil || json.Unmarshal(raw, &doc) != nil {
		return nil
	}
	all := make(map[string][]string, len(doc.Servers))
	for server, p := range doc.Servers {
		if p != nil {
			all[server] = slices.Collect(maps.Keys(p.Tools))
		}
	}
	return all
}

// write replaces the file.
func (f *file) write(doc *document) error {
	if f.folder == "" {
		return errors.New("there is no state folder; set state to a writable folder")
	}
	doc.Version = documentVersion
	content, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		return err
	}
	if err := atomicfile.Write(f.path(), content); err != nil {
		return err
	}
	f.last, _ = os.Stat(f.path())
	return nil
}

// changed implements keeper: the file is not the one that was read or written last.
func (f *file) changed() bool {
	now, err := os.Stat(f.path())
	if f.folder == "" || err != nil {
		return false
	}
	return f.last == nil || !os.SameFile(now, f.last) || now.Size() != f.last.Size() ||
		!now.ModTime().Equal(f.last.ModTime())
}
