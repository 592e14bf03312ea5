// Package shapes learns the types of the results of tools without an outputSchema: paths and types, never values. Of
// texts it learns whether they are JSON or lines, and their form, such as "[x] x.x": marks without words and numbers.
// Field names that are not identifiers, or that look like data, such as ids and dates, count as values and become
// [name]. A name that only one object had may also be data: it is neither returned nor written.
//
// Processes may share a file: each keeps the entries of others for tools that it has not learned. The file is replaced
// atomically; of simultaneous writes the last one wins.
//
// [Open] reads the file, [Store.Learn] learns from a result, and [Store.Hint] returns what is known about a tool.
// Methods are safe for concurrent use and never wait for a disk. A nil Store learns and knows nothing. One goroutine
// learns and one writes the file; [Store.Close] waits for both. Results that arrive faster than they can be learned
// are dropped.
package shapes

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/safe"
)

// Bounds of a Store.
const (
	maxTools     = 2000    // the least recently used are dropped
	maxSize      = 2 << 20 // bytes of all types as text, including names that are not returned yet
	maxResult    = 1 << 20 // bytes of a result; longer ones are skipped
	maxQueue     = 64      // results that wait
	maxQueued    = 4 << 20 // bytes of them
	maxArguments = 20      // names of an example
)

// Tool identifies a tool and its version.
type Tool struct {
	Server, Name string
	Input        json.RawMessage // its inputSchema; a changed schema discards earlier results
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

// Hint has the learned types of a tool, for a planner.
type Hint struct {
	Result    string   // a type
	Arguments []string // names of arguments that the tool accepted
}

// Store knows shapes.
type Store struct {
	folder  string // of the file; "" writes nothing
	log     *slog.Logger
	queue   chan lesson
	done    sync.WaitGroup // the goroutines that learn and write
	dirty   chan struct{}  // holds a signal after a change; closed when nothing is learned any more
	closing chan struct{}

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

// Open returns a Store with a file in a folder; without a folder nothing outlives the process. An unreadable file is
// logged and counts as empty.
func Open(folder string, logger *slog.Logger) *Store {
	s := &Store{
		folder: folder, log: logger,
		queue: make(chan lesson, maxQueue), dirty: make(chan struct{}, 1), closing: make(chan struct{}),
		known: map[key]*entry{},
	}
	doc, err := s.read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		logger.Warn("what was learned of results cannot be read and is learned anew", "file", s.path(), "error", err)
	}
	s.adopt(doc)
	s.done.Go(s.work)
	s.done.Go(s.write)
	return s
}

// Learn learns from a successful call; without a result it learns only the argument names. It keeps neither after
// reading them.
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

// Close writes pending changes. Later calls of Learn do nothing.
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
		close(s.closing)
	}
	s.done.Wait()
}

// work learns until the queue is closed.
func (s *Store) work() {
	defer close(s.dirty)
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
		shape, err = read(newDecoder(l.result), 0, &room)
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
		select {
		case s.dirty <- struct{}{}:
		default:
		}
	}
	e.Arguments, e.learned = names, true
	s.clock++
	e.used = s.clock
	for len(s.known) > maxTools || s.size > maxSize {
		s.forget()
	}
}

func newDecoder(value []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true))
}

// measure updates the text and the size of an entry.
func (s *Store) measure(e *entry) {
	s.size -= e.size
	e.text, e.size = "", 0
	if len(e.Result.Types) > 0 {
		known := e.Result.known()
		e.text, e.size = known.String(), len(e.Result.String())
	}
	s.size += e.size
}

// forget drops the least recently used tool.
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
