package shapes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
)

const (
	maxFile    = 16 << 20        // bytes of a file that is read
	writeDelay = 2 * time.Second // from a change to its write
)

// document is the file.
type document struct {
	Version int      `json:"version"`
	Tools   []*entry `json:"tools"`
}

const documentVersion = 1

// adopt adds entries of a file for tools that this Store has not learned, as far as there is room.
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

// clean reports whether a shape from a file could have been learned.
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
	return depth <= maxDepth+1 && s.Text.clean(depth)
}

// write writes the file after changes, some time later and at the latest when the Store is closed.
func (s *Store) write() {
	for range s.dirty {
		select {
		case <-s.closing:
		case <-time.After(writeDelay):
		}
		if err := s.replace(); err != nil {
			s.log.Warn("what was learned of results cannot be kept", "file", s.path(), "error", err)
		}
	}
}

// replace merges the entries of other processes and replaces the file.
func (s *Store) replace() error {
	if s.folder == "" {
		return nil
	}
	others, _ := s.read() // a damaged file was logged by Open
	content, err := s.merge(others)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(s.path(), content)
}

// read returns the content of the file; without a folder it is empty.
func (s *Store) read() (doc document, err error) {
	if s.folder == "" {
		return document{}, nil
	}
	raw, err := atomicfile.Read(s.path(), maxFile)
	if err != nil {
		return document{}, err
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return document{}, fmt.Errorf("decoding it: %w", err)
	}
	if doc.Version != documentVersion {
		return document{}, fmt.Errorf("it has version %d, want %d", doc.Version, documentVersion)
	}
	return doc, nil
}

func (s *Store) path() string { return filepath.Join(s.folder, "shapes.json") }

// merge adopts the entries of other processes and returns all entries.
func (s *Store) merge(others document) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adopt(others)
	doc := document{Version: documentVersion}
	for _, e := range s.known {
		known := *e
		known.Result = e.Result.known()
		doc.Tools = append(doc.Tools, &known)
	}
	slices.SortFunc(doc.Tools, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Name, b.Name))
	})
	return json.Marshal(doc)
}
