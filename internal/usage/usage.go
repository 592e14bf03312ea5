// Package usage learns which tools have answered the questions of a caller, so that a search may prefer them for
// similar questions. It keeps no question and no name of a caller: of a question the stems of its words as keyed
// hashes, and of a caller a hash, too. Whoever reads the file with its key can still test a guessed word. What was
// learned loses half of its weight in 30 days, and is told to the same caller alone.
//
// [Open] reads what was learned before; [Store.Learn] takes a question that was answered and [Store.Liked] returns what
// is known about another. All methods of a Store may be called from any goroutine and none waits for a disk; a nil
// Store learns and knows nothing. One goroutine writes the file, whole and by renaming; [Store.Close] waits for it. Of
// processes that share a file each takes over what the others have learned when it writes.
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
)

// Bounds of a Store: some 10 MB.
const (
	maxCallers  = 64  // the one unused for longest is forgotten,
	maxTools    = 100 // of a caller; the one with the least weight,
	maxTerms    = 32  // of a tool; the one with the least weight
	maxAsked    = 24  // terms of a question; the first count
	maxAnswered = 8   // tools of one question; from more nothing is learned
	maxName     = 512 // bytes of the name of a tool; of longer ones nothing is learned
	maxWeight   = 16
)

const (
	halfLife = 30.0 // days
	least    = 0.05 // weights below count as none
)

// term is the keyed hash of a stem or of a caller.
type term uint64

// mark is how often a term led to a tool, decayed.
type mark struct {
	Weight float64
	Day    int // of the last time, since 1970
}

// at returns the weight on a day.
func (m mark) at(day int) float64 {
	return m.Weight * math.Exp2(-max(float64(day-m.Day), 0)/halfLife)
}

// caller is what was learned from the questions of one.
type caller struct {
	tools map[string]map[term]mark
	used  int64 // the last question, in seconds since 1970
}

// Store knows which tools have answered. Use [Open].
type Store struct {
	file keep.File[document]
	key  []byte

	mu      sync.Mutex
	callers map[term]*caller
}

// Open returns a Store that keeps what it learns in a file of a folder; without a folder it ends with the process. A
// file that cannot be read is logged and counts as empty.
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

// Close writes what is not written yet. The Store is written no more.
func (s *Store) Close() {
	if s != nil {
		s.file.Close()
	}
}

// Learn takes over that the tools have answered a question of a caller.
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

// Liked returns the tools that have answered similar questions of a caller, with how much speaks for each: above 0 and
// less than 1, the more of the question's words led to the tool, the oftener, and the less to others.
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

// caller returns what was learned from one, in place of the one unused for longest if there are too many. s.mu is held.
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

// bound forgets what is beyond the bounds after something was learned about a tool: its weakest terms, and the weakest
// of the others.
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

// terms returns the hashes of the words of a question that say what it is about.
func (s *Store) terms(question string) (terms []term) {
	for _, w := range search.Words(question) {
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
