package shapes

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
)

// document is the file.
type document struct {
	Version int      `json:"version"`
	Tools   []*entry `json:"tools"`
}

const documentVersion = 1

// load reads the file.
func (s *Store) load() {
	doc, err := readFile(s.file)
	switch {
	case err == nil:
		s.adopt(doc)
	case !errors.Is(err, fs.ErrNotExist):
		s.log.Warn("what was learned of results cannot be read and is learned anew", "file", s.file, "error", err)
	}
}

// adopt takes over what a file knows of tools that this Store has learned nothing of, as far as there is room.
func (s *Store) adopt(doc document) {
	for _, e := range doc.Tools[:min(len(doc.Tools), maxTools)] {
		if e == nil || count(e.Result) > maxNodes || !e.Result.clean(0) || slices.ContainsFunc(e.Arguments, isData) {
			continue
		}
		k := key{e.Server, e.Name}
		old := s.known[k]
		if old != nil && old.learned {
			continue
		}
		if old != nil {
			e.used = old.used
			s.size -= old.size
		} else if len(s.known) == maxTools {
			continue
		}
		s.known[k] = e
		if s.measure(e); s.size > maxSize {
			s.size -= e.size
			delete(s.known, k)
		}
	}
}

func readFile(name string) (doc document, err error) {
	raw, err := atomicfile.Read(name, maxFile)
	if err != nil {
		return doc, err
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return doc, fmt.Errorf("decoding it: %w", err)
	}
	if doc.Version != documentVersion {
		return doc, fmt.Errorf("it has version %d, want %d", doc.Version, documentVersion)
	}
	return doc, nil
}

// clean reports whether a shape that was read is one that could have been learned.
func (s *Shape) clean(depth int) bool {
	for _, name := range s.Types {
		switch name {
		case "string", "integer", "number", "boolean", "null", "array", "object":
		default:
			return false
		}
	}
	for _, f := range s.Fields {
		if isData(f.Name) || !f.clean(depth+1) {
			return false
		}
	}
	for _, inner := range []*Shape{s.Items, s.Values} {
		if inner != nil && !inner.clean(depth+1) {
			return false
		}
	}
	return depth <= maxDepth+1
}

// save writes the file if something has changed, with what others have written since. Of processes that write at the
// same moment the last one wins.
func (s *Store) save() {
	s.mu.Lock()
	changed := s.changed
	s.mu.Unlock()
	if s.file == "" || !changed {
		return
	}
	others, damaged := readFile(s.file) // it was told when the Store was opened
	s.mu.Lock()
	if damaged == nil {
		s.adopt(others)
	}
	s.changed = false
	doc := document{Version: documentVersion}
	for _, e := range s.known {
		known := *e
		known.Result = e.Result.known()
		doc.Tools = append(doc.Tools, &known)
	}
	slices.SortFunc(doc.Tools, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Name, b.Name))
	})
	raw, err := json.Marshal(doc)
	s.mu.Unlock()
	if err == nil {
		err = replace(s.file, raw)
	}
	if err != nil {
		s.log.Warn("what was learned of results cannot be kept", "file", s.file, "error", err)
	}
}

// replace writes the file in its folder.
func replace(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("making the state folder: %w", err)
	}
	if err := atomicfile.Write(name, content); err != nil {
		return fmt.Errorf("writing what was learned: %w", err)
	}
	return nil
}
