package usage

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
)

// document is the file.
type document struct {
	Version int               `json:"version"`
	Key     []byte            `json:"key"`
	Callers map[term]*learned `json:"callers"`
}

// learned is a caller in the file.
type learned struct {
	Used  int64                    `json:"used"`
	Tools map[string]map[term]mark `json:"tools"`
}

const documentVersion = 1

// MarshalJSON writes a mark as [weight, day].
func (m mark) MarshalJSON() ([]byte, error) {
	return json.Marshal([2]float64{math.Round(m.Weight*1000) / 1000, float64(m.Day)})
}

// UnmarshalJSON reads what MarshalJSON writes. Weights out of range, and days to come, count as none.
func (m *mark) UnmarshalJSON(raw []byte) error {
	var pair [2]float64
	if err := json.Unmarshal(raw, &pair); err != nil {
		return err
	}
	if day := pair[1]; pair[0] >= 0 && pair[0] <= maxWeight && day >= 0 && day <= float64(today()+1) {
		*m = mark{pair[0], int(day)}
	}
	return nil
}

// adopt merges newer entries of a file with the same key, within the bounds. s.mu is held, or nobody else uses s.
func (s *Store) adopt(doc document) {
	if string(doc.Key) != string(s.key) {
		return
	}
	day := today()
	for id, l := range doc.Callers {
		if l == nil || s.callers[id] == nil && len(s.callers) == maxCallers {
			continue
		}
		c := s.caller(id)
		c.used = max(c.used, l.Used)
		for tool, marks := range l.Tools {
			if len(tool) > maxName || len(marks) > maxTerms || c.tools[tool] == nil && len(c.tools) == maxTools {
				continue
			}
			if c.tools[tool] == nil {
				c.tools[tool] = map[term]mark{}
			}
			for t, m := range marks {
				if m.at(day) > max(c.tools[tool][t].at(day), least) {
					c.tools[tool][t] = m
				}
			}
			c.bound(tool, day)
		}
	}
}

func check(doc document) error {
	if doc.Version != documentVersion || len(doc.Key) != sha256.Size {
		return fmt.Errorf("it has version %d and a key of %d bytes, want version %d", doc.Version, len(doc.Key), documentVersion)
	}
	return nil
}

// merge adopts the entries of other processes and returns all entries.
func (s *Store) merge(others *document) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if others != nil {
		s.adopt(*others)
	}
	doc := document{Version: documentVersion, Key: s.key, Callers: map[term]*learned{}}
	for id, c := range s.callers {
		doc.Callers[id] = &learned{c.used, c.tools}
	}
	return json.Marshal(doc)
}
