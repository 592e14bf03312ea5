// Package history keeps the last queries and calls of the router, for its operators.
//
// [Open] returns a [Log], which is in a file of the state folder and outlives the process. Without a folder, or while
// another process has the file, it is in memory. [Log.Add] takes an entry and never waits: one goroutine, which the Log
// owns, indexes and stores the entries. What finds its queue full, because the disk is slow, is dropped and counted.
// [Log.Find] and [Log.Each] read the index, which is in memory; [Log.Detail] reads the store.
//
// The number, the bytes and the age of entries are bounded; the oldest go first. A nil *Log keeps nothing. All methods
// may be called from any goroutine.
package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

// Bounds of what is not stored yet, and how long entries wait for others to be stored with.
const (
	maxQueued      = 4096
	maxQueuedBytes = 16 << 20
	batchTime      = 250 * time.Millisecond
)

// Log is the history.
type Log struct {
	logger *slog.Logger
	store  store
	index  index
	memory string // why it is in memory only; empty = it is in a file

	queue   queue
	failing bool   // the last write failed; belongs to the goroutine, as the next
	oldest  uint64 // id that the store still needs; the next write drops what is older
	quit    chan struct{}
	done    chan struct{}
}

// queue has what is not stored yet. The goroutine takes all of it at a time, so that most entries wake nobody.
type queue struct {
	filled chan struct{} // has a token once there is something

	mu      sync.Mutex
	waiting []record
	entries int // waiting, or being stored
	bytes   int
	dropped int
}

// record is an entry in the queue.
type record struct {
	entry   Entry
	detail  any // encoded by the goroutine; nil = none
	size    int
	summary []byte
	whole   []byte
}

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
		logger: logger, store: s, memory: memory, index: index{cfg: cfg},
		queue: queue{filled: make(chan struct{}, 1)}, quit: make(chan struct{}), done: make(chan struct{}),
	}
	l.oldest = l.index.add(time.Now(), found)
	go l.run()
	return l
}

// Add keeps an entry and its detail, which is encoded later and must not change any more. size estimates its bytes.
func (l *Log) Add(e Entry, detail any, size int) {
	if l == nil {
		return
	}
	l.queue.add(record{entry: e, detail: detail, size: size + 256})
}

func (q *queue) add(r record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.entries == maxQueued || q.bytes+r.size > maxQueuedBytes {
		q.dropped++
		return
	}
	q.entries++
	q.bytes += r.size
	if q.waiting = append(q.waiting, r); len(q.waiting) == 1 {
		select {
		case q.filled <- struct{}{}:
		default:
		}
	}
}

// take returns what waits; the next entries use the memory of done, which has been stored.
func (q *queue) take(done []record) (batch []record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range done {
		q.bytes -= done[i].size
	}
	q.entries -= len(done)
	clear(done) // for the garbage collector
	batch, q.waiting = q.waiting, done[:0]
	return batch
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
	var batch []record
	for ending := false; !ending; {
		select {
		case <-l.queue.filled:
			ending = l.pause()
		case <-l.quit:
			ending = true
		}
		batch = l.queue.take(batch)
		if len(batch) > 0 {
			l.write(batch)
		}
	}
	l.queue.take(batch)
}

// pause waits for more entries; it is true if the Log is being closed.
func (l *Log) pause() (ending bool) {
	timer := time.NewTimer(batchTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-l.quit:
		return true
	}
}

// write encodes, indexes and stores a batch.
func (l *Log) write(batch []record) {
	next := l.index.next()
	kept := make([]stored, 0, len(batch))
	for i := range batch {
		r := &batch[i]
		r.entry.ID = next + uint64(i)
		r.encode()
		kept = append(kept, stored{r.entry, len(r.summary) + len(r.whole)})
	}
	err := l.store.write(batch, l.oldest)
	l.oldest = l.index.add(time.Now(), kept) // last: what is listed has its details
	switch {
	case err != nil && !l.failing:
		l.logger.Warn("the history cannot be stored; entries without details are kept in memory", "error", err)
	case err == nil && l.failing:
		l.logger.Info("the history is stored again")
	}
	l.failing = err != nil
}
