// Package usage learns which tools answered the questions of a caller, so that a search may prefer them for similar
// questions. It keeps keyed hashes of word stems and of callers, but no questions and no names of callers. Whoever
// reads the file, which has the key, can still test guessed words. Weights halve every 30 days. Each caller gets only
// its own entries.
//
// [Open] reads the file, [Store.Learn] learns from an answered question, and [Store.Liked] returns the tools for
// another question. Methods are safe for concurrent use and never wait for a disk. A nil Store learns and knows
// nothing. One goroutine replaces the file atomically; [Store.Close] waits for it. Before each write a process merges
// the entries of others that share the file.
package usage

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/keep"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/segment"
)

// Bounds of a Store: some 10 MB.
const (
	maxCallers  = 64  // the least recently used is dropped
	maxTools    = 100 // of a caller; the one with the least weight is dropped
	maxTerms    = 32  // of a tool; the one with the least weight is dropped
	maxAsked    = 24  // terms of a question; the first count
	maxAnswered = 8   // tools of a question; a question with more is skipped
	maxName     = 512 // bytes of a tool name; tools with longer names are skipped
	maxWeight   = 16
)

const (
	halfLife = 30.0 // days
	least    = 0.05 // weights below count as none
)

// term is the keyed hash of a stem or of a caller.
type term uint64

// mark is the decayed number of times that a term led to a tool.
type mark struct {
	Weight float64
	Day    int // of the last time, since 1970
}

// at returns the weight on a day.
func (m mark) at(day int) float64 {
	return m.Weight * math.Exp2(-max(float64(day-m.Day), 0)/halfLife)
}

// caller has the entries of one caller.
type caller struct {
	tools map[string]map[term]mark
	used  int64 // the last question, in seconds since 1970
}

// Store has the tools that answered questions, by caller. Use [Open].
type Store struct {
	file keep.File[document]
	key  []byte

	mu      sync.Mutex
	callers map[term]*caller
}

// Open returns a Store with a file in a folder; without a folder nothing outlives the process. An unreadable file is
// logged and counts as empty.
func Open(folder string, logger *slog.Logger) *Store {
	s := &Store{key: make([]byte, sha256.Size), callers: map[term]*caller{}}
	_, _ = rand.Read(s.key) // it never fails
	s.file = keep.File[document]{Folder: folder, Name: "usage.json", What: "what was learned of the use of tools",
		Log: logger, Check: check, Merge: s.merge}
	if doc := s.file.Open(); doc != nil {
		s.key = doc.Key
		s.adopt(*doc)
	}
	return s
}

// Close writes pending changes. Later changes are not written.
func (s *Store) Close() {
	if s != nil {
		s.file.Close()
	}
}

// Learn records that tools answered a question of a caller.
func (s *Store) Learn(from, question string, tools []string) {
	if s == nil || len(tools) > maxAnswered {
		return
	}
	terms := s.terms(question)
	if len(terms) == 0 {
		return
	}
	day := today()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.caller(s.hash("caller ", from))
	c.used = time.Now().Unix()
	for _, tool := range tools {
		if len(tool) > maxName {
			continue
		}
		marks := c.tools[tool]
		if marks == nil {
			marks = map[term]mark{}
			c.tools[strings.Clone(tool)] = marks
		}
		for _, t := range terms {
			marks[t] = mark{min(marks[t].at(day)+1, maxWeight), day}
		}
		c.bound(tool, day)
	}
	s.file.Changed()
}

// Liked returns the tools that answered similar questions of a caller, with a score between 0 and 1. The score grows
// with the share of the question's words that led to the tool, with their counts, and with how specific they are to
// the tool.
func (s *Store) Liked(from, question string) map[string]float64 {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.callers[s.hash("caller ", from)]
	if c == nil {
		return nil
	}
	terms, day, liked := s.terms(question), today(), map[string]float64{}
	for _, t := range terms {
		all := 0.0
		for _, marks := range c.tools {
			all += marks[t].at(day)
		}
		if all < least {
			continue
		}
		for tool, marks := range c.tools {
			if w := marks[t].at(day); w >= least {
				liked[tool] += w / (1 + w) * w / all / float64(len(terms))
			}
		}
	}
	return liked
}

// caller returns the entries of a caller. It adds a missing caller, and drops the least recently used if there are too
// many. s.mu is held.
func (s *Store) caller(id term) *caller {
	if c := s.callers[id]; c != nil {
		return c
	}
	if len(s.callers) == maxCallers {
		delete(s.callers, slices.MinFunc(slices.Sorted(maps.Keys(s.callers)), func(a, b term) int {
			return cmp.Compare(s.callers[a].used, s.callers[b].used)
		}))
	}
	c := &caller{tools: map[string]map[term]mark{}}
	s.callers[id] = c
	return c
}

// bound enforces the bounds after a tool was learned: it drops the tool's weakest terms and the caller's weakest tools.
func (c *caller) bound(tool string, day int) {
	marks := c.tools[tool]
	for len(marks) > maxTerms {
		delete(marks, slices.MinFunc(slices.Sorted(maps.Keys(marks)), func(a, b term) int {
			return cmp.Compare(marks[a].at(day), marks[b].at(day))
		}))
	}
	if len(c.tools) <= maxTools {
		return
	}
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(c.tools)), func(name string) bool { return name == tool })
	delete(c.tools, slices.MinFunc(others, func(a, b string) int {
		return cmp.Compare(c.weight(a, day), c.weight(b, day))
	}))
}

func (c *caller) weight(tool string, day int) (sum float64) {
	for _, m := range c.tools[tool] {
		sum += m.at(day)
	}
	return sum
}

// terms returns the hashes of the significant words of a question.
func (s *Store) terms(question string) (terms []term) {
	for _, w := range segment.Words(question) {
		if len(terms) == maxAsked {
			break
		}
		if len(w) == 1 || search.IsStopWord(w) {
			continue
		}
		if t := s.hash("stem ", search.Stem(w)); !slices.Contains(terms, t) {
			terms = append(terms, t)
		}
	}
	return terms
}

func (s *Store) hash(kind, text string) term {
	var buf [128]byte
	sum := sha256.Sum256(append(append(append(buf[:0], s.key...), kind...), text...))
	return term(binary.BigEndian.Uint64(sum[:]))
}

// today counts the days since 1970.
func today() int { return int(time.Now().Unix() / (24 * 60 * 60)) }
