// Package shapes learns what the results of tools look like, for tools that do not say: paths and types, and never a
// value. Names of fields that do not look like identifiers, or that look like data, such as ids and dates, count as
// values and become [name]. A name that only one object had may be data, too: it is neither told nor written.
//
// Processes may share a file: each keeps what the others have learned of tools that it has learned nothing of.
//
// Open reads what was learned before; Learn takes a result and Hint returns what is known of a tool. All methods of a
// Store may be called from any goroutine and none waits for a disk; a nil Store learns and knows nothing. One goroutine
// learns and one writes the file; Close waits for both. What comes faster than it can be learned is not learned.
package shapes

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/keep"
	"github.com/agenticnexus/agenticnexus/internal/safe"
)

// Bounds of a Store.
const (
	maxTools     = 2000    // those unused for longest are forgotten
	maxSize      = 2 << 20 // bytes of all types as text, with names that are not told yet
	maxResult    = 1 << 20 // bytes of a result; from longer ones nothing is learned
	maxQueue     = 64      // results that wait
	maxQueued    = 4 << 20 // bytes of them
	maxArguments = 20      // names of an example
)

// Tool is what tells a tool from others, and from itself before it changed.
type Tool struct {
	Server, Name string
	Input        json.RawMessage // its inputSchema; nothing is known of a tool that has another one
}

func (t Tool) version() string {
	sum := sha256.Sum256(t.Input)
	return hex.EncodeToString(sum[:8])
}

type key struct{ server, name string }

// entry is what is known of a tool.
type entry struct {
	Server    string   `json:"server"`
	Name      string   `json:"tool"`
	Version   string   `json:"version"`
	Arguments []string `json:"arguments,omitempty"` // names that the tool accepted last
	Result    Shape    `json:"result"`

	used    uint64
	text    string // of the known part
	size    int    // of the text of all
	learned bool   // by this Store: it knows more than the file
}

// Hint is what a planner may be told about a tool.
type Hint struct {
	Result    string   // a type
	Arguments []string // names of arguments that the tool accepted
}

// Store knows shapes.
type Store struct {
	file  keep.File[document]
	log   *slog.Logger
	queue chan lesson
	done  sync.WaitGroup

	mu     sync.Mutex
	known  map[key]*entry
	clock  uint64 // counts uses
	queued int    // bytes in the queue
	size   int    // of all entries
	closed bool
}

// lesson is a result to learn from.
type lesson struct {
	tool              Tool
	arguments, result json.RawMessage
}

// Open returns a Store that keeps what it learns in a file of a folder; without a folder it ends with the process. A
// file that cannot be read is logged and counts as empty.
func Open(folder string, logger *slog.Logger) *Store {
	s := &Store{log: logger, queue: make(chan lesson, maxQueue), known: map[key]*entry{}}
	s.file = keep.File[document]{Folder: folder, Name: "shapes.json", What: "what was learned of results", Log: logger,
		Check: check, Merge: s.merge}
	if doc := s.file.Open(); doc != nil {
		s.adopt(*doc)
	}
	s.done.Go(s.work)
	return s
}

// Learn takes over a successful call; without a result it learns the names of the arguments. It does not keep either
// for longer than it takes to read them.
func (s *Store) Learn(t Tool, arguments, result json.RawMessage) {
	if s == nil || len(result)+len(arguments) > maxResult {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(result) + len(arguments)
	if s.closed || s.queued+n > maxQueued {
		return
	}
	select {
	case s.queue <- lesson{t, arguments, result}:
		s.queued += n
	default:
	}
}

// Hint returns what is known of a tool, and false if that is nothing.
func (s *Store) Hint(t Tool) (Hint, bool) {
	if s == nil {
		return Hint{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.known[key{t.Server, t.Name}]
	if e == nil || e.Version != t.version() {
		return Hint{}, false
	}
	s.clock++
	e.used = s.clock
	return Hint{e.text, e.Arguments}, true
}

// Close writes what is not written yet. The Store learns no more.
func (s *Store) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	closing := !s.closed
	s.closed = true
	s.mu.Unlock()
	if closing {
		close(s.queue)
	}
	s.done.Wait()
	s.file.Close()
}

// work learns until the queue is closed.
func (s *Store) work() {
	for l := range s.queue {
		s.take(l)
	}
}

// take learns from one result.
func (s *Store) take(l lesson) {
	defer safe.Recover(s.log, "learning the shape of a result", func(error) {})
	room := maxNodes
	var shape Shape
	var err error
	if len(l.result) > 0 {
		shape, err = read(jsontext.NewDecoder(bytes.NewReader(l.result), jsontext.AllowDuplicateNames(true)), 0, &room)
	}
	names := argumentNames(l.arguments)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued -= len(l.result) + len(l.arguments)
	if err != nil {
		return
	}
	k, version := key{l.tool.Server, l.tool.Name}, l.tool.version()
	e := s.known[k]
	switch {
	case e == nil:
		e = &entry{Server: k.server, Name: k.name, Version: version, Result: shape}
		s.known[k] = e
	case e.Version != version: // another tool by the same name
		e.Version, e.Result = version, shape
	default:
		e.Result.merge(shape)
		if count(e.Result) > maxNodes {
			e.Result = shape
		}
	}
	before := e.text
	s.measure(e)
	if before != e.text || !slices.Equal(names, e.Arguments) {
		s.file.Changed()
	}
	e.Arguments, e.learned = names, true
	s.clock++
	e.used = s.clock
	for len(s.known) > maxTools || s.size > maxSize {
		s.forget()
	}
}

// measure brings the text and the size of an entry up to date.
func (s *Store) measure(e *entry) {
	s.size -= e.size
	e.text, e.size = "", 0
	if len(e.Result.Types) > 0 {
		known := e.Result.known()
		e.text, e.size = known.String(), len(e.Result.String())
	}
	s.size += e.size
}

// forget drops the tool that was unused for longest.
func (s *Store) forget() {
	var oldest *entry
	for _, e := range s.known {
		if oldest == nil || e.used < oldest.used {
			oldest = e
		}
	}
	s.size -= oldest.size
	delete(s.known, key{oldest.Server, oldest.Name})
}

// argumentNames returns the names of arguments, sorted, without those that look like data.
func argumentNames(arguments json.RawMessage) []string {
	var object map[string]json.RawMessage
	if json.Unmarshal(arguments, &object) != nil {
		return nil
	}
	var names []string
	for name := range object {
		if !isData(name) {
			names = append(names, strings.Clone(name))
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxArguments)]
}
