// Package history keeps the last queries and calls of the router, for its operators.
//
// [Open] returns a [Log], which is in a file of the state folder and outlives the process. Without a folder, or while
// another process has the file, it is in memory. [Log.Add] takes an entry and never waits: one goroutine, which the Log
// owns, indexes and stores the entries. What finds its queue full, because the disk is slow, is dropped and counted.
// [Log.Find] and [Log.Each] read the index, which is in memory; [Log.Detail] reads the store.
//
// The number, the bytes and the age of entries are bounded. Queries and calls have half of the room each, and every
// caller has an equal part of each half; what some do not need is for the others. The oldest entry of who has too much
// goes first, so that nobody drives out what others have done. What is too old is not shown, and leaves the file within
// ten minutes. A nil *Log keeps nothing. All methods may be called from any goroutine.
package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/size"
)

// Config bounds the history.
type Config struct {
	Entries  int           `yaml:"entries"` // queries and calls; 0 = no history
	Bytes    size.Bytes    `yaml:"bytes"`
	Age      time.Duration `yaml:"age"`
	Contents bool          `yaml:"contents"` // questions, arguments, results and answers
}

// Default returns the documented defaults.
func Default() Config {
	return Config{Entries: 10_000, Bytes: 64 << 20, Age: 7 * 24 * time.Hour, Contents: true}
}

// Kinds of entries.
const (
	KindQuery = "query"
	KindCall  = "call"
)

// OutcomeOK is the outcome of what succeeded.
const OutcomeOK = "ok"

// Entry is the account of a query or a call.
type Entry struct {
	ID       uint64    `json:"id"` // ascending; Add sets it
	Kind     string    `json:"kind"`
	At       time.Time `json:"at"` // when it began
	Caller   string    `json:"caller,omitempty"`
	Outcome  string    `json:"outcome"`
	Duration float64   `json:"duration_ms"`
	Text     string    `json:"text,omitempty"` // the question, cut
	Error    string    `json:"error,omitempty"`
	TraceID  string    `json:"trace_id,omitempty"`
	Bytes    int       `json:"bytes,omitempty"` // of the result of a call
	Attempts int       `json:"attempts,omitempty"`
	Uses     []Use     `json:"uses,omitempty"`
	Models   []Tokens  `json:"models,omitempty"`
}

// Use is how often an entry called a tool.
type Use struct {
	Server string  `json:"server"`
	Tool   string  `json:"tool"`
	Calls  int     `json:"calls"`
	Failed int     `json:"failed,omitempty"`
	Time   float64 `json:"ms"` // of all calls together
}

// Tokens is what an entry cost at a model.
type Tokens struct {
	Model  string `json:"model"`
	For    string `json:"for"` // planner or synthesizer
	Input  int    `json:"input_tokens"`
	Output int    `json:"output_tokens"`
	Calls  int    `json:"calls"`
}

// Bounds of what is not stored yet, of which calls have half; how long queries and calls wait for others to be stored
// with; and how often entries are dropped that are too old.
const (
	maxQueued      = 16 << 10
	maxQueuedBytes = 16 << 20
	queryTime      = 250 * time.Millisecond
	callTime       = time.Second
	sweepTime      = 10 * time.Minute
)

// Log is the history.
type Log struct {
	logger *slog.Logger
	store  store
	index  index
	memory string // why it is in memory only; empty = it is in a file

	queue   queue
	failing bool     // the last write failed; belongs to the goroutine, as the next
	gone    []uint64 // ids that the next write drops; what the store has not is not in it
	quit    chan struct{}
	done    chan struct{}
}

// queue has what is not stored yet. The goroutine takes all of it at a time, so that most entries wake nobody.
type queue struct {
	filled chan struct{} // has a token once there is something,
	query  chan struct{} // something other than calls,
	many   chan struct{} // and much

	mu      sync.Mutex
	waiting []record
	entries int // waiting, or being stored
	bytes   int
	dropped int
}

// record is an entry in the queue.
type record struct {
	call  Call
	entry *whole // nil for a call
	size  int
}

// whole is an entry with its detail, which are encoded by the goroutine.
type whole struct {
	Entry
	detail            any // nil = none
	summary, detailed []byte
}

// encode writes the JSON of an entry. A detail that cannot be encoded is left out.
func (w *whole) encode() {
	w.summary, _ = json.Marshal(&w.Entry) // texts, numbers and times
	if w.detail != nil {
		w.detailed, _ = json.Marshal(w.detail)
	}
}

// Bytes that an entry and a call take in the queue beside their texts.
const (
	entrySize = 512
	callSize  = 256
)

// Open returns the history in a folder, "" for memory only. It is nil if cfg keeps no entries.
func Open(folder string, cfg Config, logger *slog.Logger) *Log {
	if cfg.Entries <= 0 {
		return nil
	}
	memory := "there is no state folder"
	if folder != "" {
		file, found, err := openFile(folder, logger)
		if err == nil {
			return start(file, found, cfg, "", logger)
		}
		memory = err.Error()
	}
	logger.Info("the history is kept in memory only", "reason", memory)
	return start(newMemory(), nil, cfg, memory, logger)
}

func start(s store, found []stored, cfg Config, memory string, logger *slog.Logger) *Log {
	l := &Log{
		logger: logger, store: s, memory: memory,
		index: index{cfg: cfg, shares: map[shareKey]*share{}, series: map[Series]*series{}},
		queue: queue{filled: make(chan struct{}, 1), query: make(chan struct{}, 1), many: make(chan struct{}, 1)},
		quit:  make(chan struct{}), done: make(chan struct{}),
	}
	l.gone = l.index.add(time.Now(), found)
	go l.run()
	return l
}

// Add keeps an entry and its detail, which is encoded later and must not change any more. size estimates its bytes.
func (l *Log) Add(e Entry, detail any, size int) {
	if l == nil {
		return
	}
	l.queue.add(record{entry: &whole{Entry: e, detail: detail}, size: size + entrySize})
}

// AddCall keeps a call.
func (l *Log) AddCall(c Call) {
	if l == nil {
		return
	}
	l.queue.add(record{call: c, size: len(c.Tool) + callSize})
}

func (q *queue) add(r record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	part := 1
	if r.entry == nil {
		part = 2 // they come by the thousand
	}
	if q.entries >= maxQueued/part || q.bytes+r.size > maxQueuedBytes/part {
		q.dropped++
		return
	}
	q.entries++
	q.bytes += r.size
	q.waiting = append(q.waiting, r)
	if len(q.waiting) == 1 {
		signal(q.filled)
	}
	if len(q.waiting) == maxQueued/4 {
		signal(q.many)
	}
	if r.entry != nil {
		signal(q.query)
	}
}

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// take returns what waits; the next entries use the memory of done.
func (q *queue) take(done []record) (batch []record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch, q.waiting = q.waiting, done[:0]
	return batch
}

// stored makes room for others than a batch.
func (q *queue) stored(batch []record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.entries -= len(batch)
	for i := range batch {
		q.bytes -= batch[i].size
	}
	clear(batch) // for the garbage collector
}

// Dropped returns how many entries were not kept because the queue was full.
func (l *Log) Dropped() int {
	if l == nil {
		return 0
	}
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return l.queue.dropped
}

// MemoryOnly returns why the history ends with the process; empty if it does not.
func (l *Log) MemoryOnly() string { return l.memory }

// ErrNoDetail is the error for an entry whose detail was not stored, or is gone.
var ErrNoDetail = errors.New("the details of this entry are not there: it is too old, or the disk refused them")

// Detail returns the detail of an entry, as JSON.
func (l *Log) Detail(id uint64) (json.RawMessage, error) {
	if _, kept := l.Get(id); !kept {
		return nil, ErrNoDetail
	}
	detail, err := l.store.detail(id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the history: %w", err)
	case detail == nil:
		return nil, ErrNoDetail
	}
	return detail, nil
}

// Close stores what is queued and closes the file. The error is that of ctx, if storing takes longer.
func (l *Log) Close(ctx context.Context) error {
	if l == nil {
		return nil
	}
	close(l.quit)
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("storing the history: %w", ctx.Err())
	}
}

// run stores what is queued until quit, and then the rest.
func (l *Log) run() {
	defer close(l.done)
	defer l.store.close()
	sweep := time.NewTicker(sweepTime)
	defer sweep.Stop()
	var batch []record
	for ending := false; !ending; {
		select {
		case <-l.queue.filled:
			ending = l.pause()
		case <-sweep.C:
		case <-l.quit:
			ending = true
		}
		batch = l.queue.take(batch)
		l.write(batch)
		l.queue.stored(batch)
	}
}

// pause waits for more entries, unless there are many; it is true if the Log is being closed.
func (l *Log) pause() (ending bool) {
	timer := time.NewTimer(callTime)
	defer timer.Stop()
	query := l.queue.query
	for {
		select {
		case <-timer.C:
			return false
		case <-l.queue.many:
			return false
		case <-query:
			timer.Reset(queryTime)
			query = nil
		case <-l.quit:
			return true
		}
	}
}

// write encodes, stores and indexes a batch. Without one it drops what is too old.
func (l *Log) write(batch []record) {
	if len(batch) == 0 {
		if l.gone = append(l.gone, l.index.add(time.Now(), nil)...); len(l.gone) == 0 {
			return
		}
	}
	slices.Sort(l.gone)
	next := l.index.next()
	kept := make([]stored, len(batch))
	for i := range batch {
		kept[i] = l.index.keep(&batch[i], next+uint64(i))
	}
	err := l.store.write(batch, kept, l.gone)
	if err == nil {
		l.gone = nil
	}
	for i := range kept {
		kept[i].lost = err != nil
	}
	l.gone = append(l.gone, l.index.add(time.Now(), kept)...) // last: what is listed has its details
	switch {
	case err != nil && !l.failing:
		l.logger.Warn("the history cannot be stored; entries without details are kept in memory", "error", err)
	case err == nil && l.failing:
		l.logger.Info("the history is stored again")
	}
	l.failing = err != nil
}
