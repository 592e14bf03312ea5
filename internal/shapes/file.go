package shapes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
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

func check(doc document) error {
	if doc.Version != documentVersion {
		return fmt.Errorf("it has version %d, want %d", doc.Version, documentVersion)
	}
	return nil
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
	return depth <= maxDepth+1
}

// merge adopts the entries of other processes and returns all entries.
func (s *Store) merge(others *document) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if others != nil {
		s.adopt(*others)
	}
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
