// Package history stores the last queries and calls of the router for its operators.
//
// [Open] returns a [Log], stored in a file of the state folder. Without a folder, or while another process uses the
// file, it is kept in memory. [Log.Add] takes an entry and never waits: one goroutine, owned by the Log, indexes and
// stores the entries. Entries that find the queue full, because the disk is slow, are dropped and counted. [Log.Find]
// and [Log.Each] read the index, which is in memory; [Log.Detail] reads the store.
//
// The number, size and age of entries are limited. Queries and calls get half of the space each, and every caller an
// equal share of each half; unused space is available to the others. A caller beyond its share loses its oldest
// entries first, so that no caller displaces the entries of others. Expired entries are not shown, and are deleted
// within ten minutes. A nil *Log keeps nothing. All methods are safe for concurrent use.
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

// Config limits the history.
type Config struct {
	Entries  int           `yaml:"entries"` // queries and calls; 0 = no history
	Bytes    size.Bytes    `yaml:"bytes"`
	Age      time.Duration `yaml:"age"`
	Contents bool          `yaml:"contents"` // store questions, arguments, results and answers
}

// Default returns the default limits.
func Default() Config {
	return Config{Entries: 10_000, Bytes: 64 << 20, Age: 7 * 24 * time.Hour, Contents: true}
}

// Kinds of entries.
const (
	KindQuery = "query"
	KindCall  = "call"
)

// OutcomeOK is the outcome of a successful query or call.
const OutcomeOK = "ok"

// Entry describes a query or a call.
type Entry struct {
	ID       uint64    `json:"id"` // ascending; set by Add
	Kind     string    `json:"kind"`
	At       time.Time `json:"at"` // start
	Caller   string    `json:"caller,omitempty"`
	Outcome  string    `json:"outcome"`
	Duration float64   `json:"duration_ms"`
	Text     string    `json:"text,omitempty"` // the question, shortened
	Error    string    `json:"error,omitempty"`
	TraceID  string    `json:"trace_id,omitempty"`
	Bytes    int       `json:"bytes,omitempty"` // size of a call's result
	Attempts int       `json:"attempts,omitempty"`
	Uses     []Use     `json:"uses,omitempty"`
	Models   []Tokens  `json:"models,omitempty"`
}

// Use counts the calls of a tool in an entry.
type Use struct {
	Server string  `json:"server"`
	Tool   string  `json:"tool"`
	Calls  int     `json:"calls"`
	Failed int     `json:"failed,omitempty"`
	Time   float64 `json:"ms"` // sum over all calls
}

// Tokens are the model tokens that an entry used.
type Tokens struct {
	Model  string `json:"model"`
	For    string `json:"for"` // planner or synthesizer
	Input  int    `json:"input_tokens"`
	Output int    `json:"output_tokens"`
	Calls  int    `json:"calls"`
}

// Limits of the queue, half of whose bytes are for calls; how long entries wait to be stored together; and how often
// expired entries are deleted. Each garbage collection visits what waits, mostly the parts of queries: 16,384 of them
// cost other queries 3 % of their time.
const (
	maxQueries     = 2 << 10
	maxCalls       = 8 << 10
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
	memory string // reason for keeping it in memory; empty = it is in a file

	queue   queue
	failing bool     // the last write failed; used only by the goroutine
	gone    []uint64 // stored ids to delete in the next write; likewise
	quit    chan struct{}
	done    chan struct{}
}

// queue holds the entries that are not stored yet. The goroutine takes all of them at once, so that most additions
// wake no goroutine.
type queue struct {
	filled chan struct{} // has a token if the queue is not empty
	query  chan struct{} // has a token if it contains a query
	many   chan struct{} // has a token if it is nearly full

	mu      sync.Mutex
	waiting []record
	queries int // queued or being stored, like calls and bytes
	calls   int
	bytes   int
	dropped int
}

// record is an entry in the queue.
type record struct {
	call  Call
	entry *whole // nil for a call
	size  int
}

// whole is an entry with its detail. The goroutine encodes both.
type whole struct {
	Entry
	detail            any // nil = none
	summary, detailed []byte
}

// encode encodes an entry and its detail. A detail that cannot be encoded is left out.
func (w *whole) encode() {
	w.summary, _ = json.Marshal(&w.Entry) // never fails: texts, numbers and times
	if w.detail != nil {
		w.detailed, _ = json.Marshal(w.detail)
	}
}

// Bytes that an entry and a call take in the queue besides their texts.
const (
	entrySize = 512
	callSize  = 256
)

// Open returns the history in a folder; "" means memory only. It is nil if cfg keeps no entries.
func Open(folder string, cfg Config, logger *slog.Logger) *Log {
	if cfg.Entries <= 0 {
		return nil
	}
	memory, level := "there is no writable state folder", slog.LevelInfo // the caller has said so
	if folder != "" {
		file, found, err := openFile(folder, logger)
		if err == nil {
			return start(file, found, cfg, "", logger)
		}
		memory, level = err.Error(), slog.LevelWarn
	}
	logger.Log(context.Background(), level, "the history is kept in memory only", "reason", memory)
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

// Add adds an entry and its detail, which is encoded later and must not be changed afterwards. size is the estimated
// size in bytes.
func (l *Log) Add(e Entry, detail any, size int) {
	if l == nil {
		return
	}
	l.queue.add(record{entry: &whole{Entry: e, detail: detail}, size: size + entrySize})
}

// AddCall adds a call.
func (l *Log) AddCall(c Call) {
	if l == nil {
		return
	}
	l.queue.add(record{call: c, size: len(c.Tool) + callSize})
}

func (q *queue) add(r record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	count, most, bytes := &q.queries, maxQueries, maxQueuedBytes
	if r.entry == nil {
		count, most, bytes = &q.calls, maxCalls, maxQueuedBytes/2
	}
	if *count >= most || q.bytes+r.size > bytes {
		q.dropped++
		return
	}
	*count++
	q.bytes += r.size
	q.waiting = append(q.waiting, r)
	if len(q.waiting) == 1 {
		signal(q.filled)
	}
	if len(q.waiting) == maxCalls/2 {
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

// take returns the queued entries. The queue reuses the memory of done.
func (q *queue) take(done []record) (batch []record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch, q.waiting = q.waiting, done[:0]
	return batch
}

// stored frees the space of a stored batch.
func (q *queue) stored(batch []record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range batch {
		q.bytes -= batch[i].size
		if batch[i].entry == nil {
			q.calls--
		} else {
			q.queries--
		}
	}
	clear(batch) // release references
}

// Dropped returns the number of entries dropped because the queue was full.
func (l *Log) Dropped() int {
	if l == nil {
		return 0
	}
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return l.queue.dropped
}

// MemoryOnly returns the reason why the history is lost with the process; empty if it is stored.
func (l *Log) MemoryOnly() string { return l.memory }

// ErrNoDetail is returned for an entry whose detail was not stored or has been deleted.
var ErrNoDetail = errors.New("the details of this entry are not there: it is too old, or the disk refused them")

// Detail returns the detail of an entry as JSON.
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

// Close stores the queued entries and closes the file. The error is that of ctx if this takes longer.
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

// run stores queued entries until quit, and then the rest.
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

// pause waits for more entries unless the queue is nearly full. It returns true if the Log is being closed.
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

// write encodes, stores and indexes a batch. An empty batch only deletes expired entries.
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
	l.gone = append(l.gone, l.index.add(time.Now(), kept)...) // last, so that listed entries have their details
	switch {
	case err != nil && !l.failing:
		l.logger.Warn("the history cannot be stored; entries without details are kept in memory", "error", err)
	case err == nil && l.failing:
		l.logger.Info("the history is stored again")
	}
	l.failing = err != nil
}
