// Package history stores the last queries and calls of the router for its operators.
//
// [Open] returns a [Log]. Queries are stored in a file of the state folder; calls, which are many, are kept in memory.
// Without a folder, or while another process uses the file, everything is kept in memory. [Log.Add] takes an entry and
// never waits: one goroutine, owned by the Log, indexes and stores the entries. Entries that find the queue full,
// because the disk is slow, are dropped and counted. [Log.Find] and [Log.Each] read the index, which is in memory;
// [Log.Detail] reads the store.
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
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/limit"
)

// Config limits the history.
type Config struct {
	Entries  int           `yaml:"entries"` // queries and calls; 0 = no history
	Bytes    limit.Bytes   `yaml:"bytes"`
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
// expired entries are deleted.
const (
	maxQueries     = 2 << 10
	maxCalls       = 8 << 10
	maxQueuedBytes = 16 << 20
	writeDelay     = 250 * time.Millisecond
	sweepInterval  = 10 * time.Minute
)

// Log is the history.
type Log struct {
	logger    *slog.Logger
	store     store
	index     index
	whyMemory string // reason for keeping it in memory; empty = it is in a file

	queue   queue
	failing bool     // the last write failed; used only by the goroutine
	gone    []uint64 // stored ids to delete in the next write; used only by the goroutine
	quit    chan struct{}
	done    chan struct{}
}

// store stores queries and details. Only one goroutine writes.
type store interface {
	// write stores queries and deletes others. Both may be empty.
	write(queries []pendingEntry, gone []uint64) error
	detail(id uint64) ([]byte, error) // nil if there is none
	close()
}

// queue holds the entries that are not stored yet. The goroutine takes all of them at once.
type queue struct {
	filled chan struct{} // has a token if the queue is not empty

	mu      sync.Mutex
	waiting []pendingEntry
	queries int // queued or being stored, like calls and bytes
	calls   int
	bytes   int
	dropped int
}

// pendingEntry is an entry on its way to the store. The goroutine encodes it.
type pendingEntry struct {
	entry             *Entry
	detail            any // nil = none
	size              int
	summary, detailed []byte
}

// encode encodes a query and its detail. A detail that cannot be encoded is left out.
func (p *pendingEntry) encode() {
	p.summary, _ = json.Marshal(p.entry) // never fails: texts, numbers and times
	if p.detail != nil {
		p.detailed, _ = json.Marshal(p.detail)
	}
}

// entrySize is the approximate memory of an entry besides its texts, in bytes.
const entrySize = 512

// Open returns the history in a folder; "" means memory only. It is nil if cfg keeps no entries.
func Open(folder string, cfg Config, logger *slog.Logger) *Log {
	if cfg.Entries <= 0 {
		return nil
	}
	whyMemory, level := "there is no writable state folder", slog.LevelInfo // App.keepState has already warned
	if folder != "" {
		file, found, err := openFile(folder, logger)
		if err == nil {
			return start(file, found, cfg, "", logger)
		}
		whyMemory, level = err.Error(), slog.LevelWarn
	}
	logger.Log(context.Background(), level, "the history is kept in memory only", "reason", whyMemory)
	return start(newMemoryStore(), nil, cfg, whyMemory, logger)
}

func start(s store, found []stored, cfg Config, whyMemory string, logger *slog.Logger) *Log {
	l := &Log{
		logger: logger, store: s, whyMemory: whyMemory, index: index{cfg: cfg, shares: map[shareKey]*share{}},
		queue: queue{filled: make(chan struct{}, 1)}, quit: make(chan struct{}), done: make(chan struct{}),
	}
	l.gone = l.index.add(time.Now(), found)
	go l.run()
	return l
}

// Add adds an entry and its detail, which is encoded later and must not be changed afterwards. size is the estimated
// size in bytes.
func (l *Log) Add(e Entry, detail any, size int) {
	if l != nil {
		l.queue.add(pendingEntry{entry: &e, detail: detail, size: size + entrySize})
	}
}

func (q *queue) add(p pendingEntry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	count, most, bytes := &q.queries, maxQueries, maxQueuedBytes
	if p.entry.Kind == KindCall {
		count, most, bytes = &q.calls, maxCalls, maxQueuedBytes/2
	}
	if *count >= most || q.bytes+p.size > bytes {
		q.dropped++
		return
	}
	*count++
	q.bytes += p.size
	q.waiting = append(q.waiting, p)
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// take returns the queued entries. The queue reuses the memory of done.
func (q *queue) take(done []pendingEntry) (batch []pendingEntry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch, q.waiting = q.waiting, done[:0]
	return batch
}

// release frees the space of a stored batch.
func (q *queue) release(batch []pendingEntry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range batch {
		q.bytes -= batch[i].size
		if batch[i].entry.Kind == KindCall {
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

// WhyMemoryOnly returns the reason why the history is lost with the process; empty if it is stored.
func (l *Log) WhyMemoryOnly() string {
	if l == nil {
		return ""
	}
	return l.whyMemory
}

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
	sweep := time.NewTicker(sweepInterval)
	defer sweep.Stop()
	var batch []pendingEntry
	for ending := false; !ending; {
		select {
		case <-l.queue.filled:
			select { // for more entries
			case <-time.After(writeDelay):
			case <-l.quit:
				ending = true
			}
		case <-sweep.C:
		case <-l.quit:
			ending = true
		}
		batch = l.queue.take(batch)
		l.write(batch)
		l.queue.release(batch)
	}
}

// write encodes, stores and indexes a batch. An empty batch only deletes expired entries.
func (l *Log) write(batch []pendingEntry) {
	if len(batch) == 0 {
		if l.gone = append(l.gone, l.index.expire(time.Now())...); len(l.gone) == 0 {
			return
		}
	}
	next := l.index.next()
	kept := make([]stored, len(batch))
	var queries []pendingEntry
	for i := range batch {
		p := &batch[i]
		p.entry.ID = next + uint64(i)
		kept[i] = stored{Entry: p.entry, bytes: p.size}
		if p.entry.Kind != KindCall {
			p.encode()
			kept[i].bytes = len(p.summary) + len(p.detailed)
			queries = append(queries, *p)
		}
	}
	var err error
	if len(queries) > 0 || len(l.gone) > 0 {
		err = l.store.write(queries, l.gone)
	}
	if err == nil {
		l.gone = nil
		for i := range kept {
			kept[i].inStore = kept[i].Kind != KindCall
		}
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

// memoryStore is a store that is lost with the process.
type memoryStore struct {
	mu      sync.Mutex
	details map[uint64][]byte
}

func newMemoryStore() *memoryStore { return &memoryStore{details: map[uint64][]byte{}} }

func (m *memoryStore) write(queries []pendingEntry, gone []uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range queries {
		if p.detailed != nil {
			m.details[p.entry.ID] = p.detailed
		}
	}
	for _, id := range gone {
		delete(m.details, id)
	}
	return nil
}

func (m *memoryStore) detail(id uint64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.details[id], nil
}

func (m *memoryStore) close() {}
