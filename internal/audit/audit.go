// Package audit records calls in a file, one line of JSON each, in which nobody can change a line unnoticed.
//
// [New] returns a [Log], [Log.Open] opens its file, and [Verify] checks it. [Log.Begin] precedes a call and
// [Place.End] hands over its line; neither waits for the disk. One goroutine, owned by the Log, writes the lines and
// syncs the file once a second. Each line has a number and the SHA-256 of the line before, also across the files of a
// log: a file that is too large or too old is renamed to NAME.N, where N is the number of its first line, and a new one
// continues it. No file is ever deleted.
//
// The lines that wait for the disk are bounded in number and bytes. When there is no room, or while writing fails,
// on_failure: refuse makes Begin fail, and continue loses the line; its number is then missing in the file. Lines that
// wait are written when writing works again. A nil *Log records nothing. All methods are safe for concurrent use.
package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// Config configures the log.
type Config struct {
	Path      string `yaml:"path"`       // of the file, or stdout; empty = no log
	Arguments string `yaml:"arguments"`  // none, hash or redacted
	OnFailure string `yaml:"on_failure"` // continue or refuse
}

// Values of Config.
const (
	Stdout = "stdout" // a path

	ArgumentsNone     = "none"
	ArgumentsHash     = "hash"     // their SHA-256
	ArgumentsRedacted = "redacted" // the arguments without credentials, cut

	FailureContinue = "continue" // calls go on without their lines
	FailureRefuse   = "refuse"   // calls are refused
)

// Default returns the default configuration, which is no log.
func Default() Config { return Config{Arguments: ArgumentsHash, OnFailure: FailureContinue} }

// Limits of the lines that wait for the disk.
const (
	maxLines = 8 << 10
	maxBytes = 64 << 20
	lineSize = 1 << 10 // approximate memory of a line without its arguments
)

// Sizes of arguments, in bytes.
const (
	hashedAtOnce = 64 << 10 // larger ones are hashed by the goroutine, so that a call does not wait
	redacted     = 64 << 10 // of the part that is redacted
	maxArguments = 8 << 10  // of those in a line
)

// Times of the goroutine.
const (
	syncDelay  = time.Second
	retryDelay = time.Second // after a failure
	warnDelay  = time.Minute // between two warnings
)

// Log is an audit log.
type Log struct {
	cfg    Config
	mask   func(text string) string
	logger *slog.Logger

	opening sync.Once
	opened  error

	mu    sync.Mutex
	queue queue
	file  *file // nil = not open
	quit  chan struct{}
	done  chan struct{}
}

// queue holds the lines that are not in the file yet.
type queue struct {
	filled  chan struct{} // has a token if lines wait
	waiting []entry
	lines   int // waiting, being written, or reserved; like bytes
	bytes   int
	seq     uint64 // of the last line
	lost    int64
	told    int64 // of the lost lines, in warnings
	failure error // why the last attempt to write failed; nil = it did not
	warned  time.Time
	closed  bool
}

// entry is a line on its way to the file.
type entry struct {
	Line
	raw  []byte // arguments that the goroutine hashes or redacts; nil = it need not
	size int
}

// New returns the log that cfg configures, nil if it has no path. It opens nothing. mask replaces the credentials in a
// text.
func New(cfg Config, mask func(text string) string, logger *slog.Logger) *Log {
	if cfg.Path == "" {
		return nil
	}
	return &Log{cfg: cfg, mask: mask, logger: logger, queue: queue{filled: make(chan struct{}, 1)},
		quit: make(chan struct{}), done: make(chan struct{})}
}

// UnusableError is the error of a log whose path cannot be used.
type UnusableError struct{ Path, Why string }

// Error implements error.
func (e *UnusableError) Error() string {
	return fmt.Sprintf("the audit log %s cannot be used: %s; set audit.path to a file that the router may write",
		e.Path, e.Why)
}

// ErrInUse is the error of Open for a file that another process writes.
var ErrInUse = errors.New("another process writes it; stop that one, use it with --remote, or set another audit.path")

// ErrLost is the error of Close if lines are lost.
var ErrLost = errors.New("the last lines of the audit log could not be written and are lost")

// Open opens the file, once; Begin opens it if nobody has. stdout is for the path stdout; nil refuses that path,
// because standard output has another use. The error is ErrInUse or an *UnusableError.
func (l *Log) Open(stdout *os.File) error {
	if l == nil {
		return nil
	}
	l.opening.Do(func() { l.opened = l.open(stdout) })
	return l.opened
}

func (l *Log) open(stdout *os.File) error {
	f, err := openFile(l.cfg.Path, stdout, l.logger)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file, l.queue.seq = f, f.last.seq
	if l.cfg.OnFailure == FailureRefuse {
		if l.queue.failure = f.probe(); l.queue.failure != nil {
			l.warn()
		}
	}
	if l.queue.closed {
		close(l.done)
		return f.close()
	}
	go l.run()
	return nil
}

// Place is the place of a call in the log. The zero Place records nothing.
type Place struct {
	log       *Log
	arguments []byte
	reserved  int // bytes
}

// Begin precedes a call with raw arguments; nil = it has none. They must not change before End. After an error the
// call must not be made.
func (l *Log) Begin(arguments []byte) (Place, error) {
	if l == nil {
		return Place{}, nil
	}
	if err := l.Open(nil); err != nil {
		return Place{}, err
	}
	p := Place{log: l, arguments: arguments}
	if l.cfg.OnFailure != FailureRefuse {
		return p, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	size := l.sizeOf(arguments)
	switch {
	case l.queue.failure != nil:
		return Place{}, fmt.Errorf("the audit log cannot be written: %w", l.queue.failure)
	case !l.queue.reserve(size):
		return Place{}, errors.New("the audit log is written too slowly")
	}
	p.reserved = size
	return p, nil
}

// sizeOf returns the memory of a line with such arguments.
func (l *Log) sizeOf(arguments []byte) int {
	switch {
	case l.cfg.Arguments == ArgumentsRedacted:
		return lineSize + min(len(arguments), redacted)
	case l.cfg.Arguments == ArgumentsHash && len(arguments) > hashedAtOnce:
		return lineSize + len(arguments)
	}
	return lineSize
}

// reserve makes room for a line. It reports false if there is none. One line always has room, however large.
func (q *queue) reserve(size int) bool {
	if q.lines >= maxLines || q.lines > 0 && q.bytes+size > maxBytes {
		return false
	}
	q.lines++
	q.bytes += size
	return true
}

// End records the call, which has ended or was refused.
func (p Place) End(r Record) {
	l := p.log
	if l == nil {
		return
	}
	if strings.Contains(r.Tool, "://") {
		r.Tool = l.mask(r.Tool)
	}
	e := entry{Line: Line{Record: r.cut()}, size: l.sizeOf(p.arguments)}
	switch {
	case len(p.arguments) == 0 || l.cfg.Arguments == ArgumentsNone:
	case l.cfg.Arguments == ArgumentsRedacted:
		e.raw = bytes.Clone(p.arguments[:min(len(p.arguments), redacted)])
	case len(p.arguments) > hashedAtOnce:
		e.raw = bytes.Clone(p.arguments)
	default:
		e.Arguments = hashed(p.arguments)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	q := &l.queue
	q.seq++ // also of a lost line: the gap shows it
	e.Seq, e.Time = q.seq, time.Now().UTC().Format(timeFormat)
	if q.closed || p.reserved == 0 && !q.reserve(e.size) {
		q.lines, q.bytes = q.lines-min(1, p.reserved), q.bytes-p.reserved
		q.lost++
		l.warn()
		return
	}
	q.waiting = append(q.waiting, e)
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// warn logs, once a minute, that lines are lost or cannot be written. The caller has locked mu.
func (l *Log) warn() {
	q := &l.queue
	if !q.warned.IsZero() && time.Since(q.warned) < warnDelay {
		return
	}
	q.warned, q.told = time.Now(), q.lost
	why := "it is written too slowly"
	if q.failure != nil {
		why = q.failure.Error()
	}
	l.logger.Warn("the audit log cannot be written", "path", l.cfg.Path, "error", why, "waiting", q.lines,
		"lost", q.lost, "on_failure", l.cfg.OnFailure)
}

// Lost returns the number of lines that were lost.
func (l *Log) Lost() int64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.lost
}

// Close writes the lines that wait and closes the file. Calls must have ended: later ones are not recorded. The error
// is ErrLost, with the number of lines that could not be written. If ctx ends first, the rest is lost.
func (l *Log) Close(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	f, closed := l.file, l.queue.closed
	l.queue.closed = true
	l.mu.Unlock()
	if f == nil || closed {
		return nil
	}
	close(l.quit)
	select {
	case <-l.done:
	case <-ctx.Done():
		_ = f.close() // ends a blocked write, if anything can
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.queue.lines; left > 0 {
		err := fmt.Errorf("%w: %d of %s", ErrLost, left, l.cfg.Path)
		l.logger.Error(err.Error())
		return err
	}
	return nil
}

// run writes the lines until quit, and then the rest.
func (l *Log) run() {
	defer close(l.done)
	var batch []entry
	var sync, retry <-chan time.Time
	if l.failing() {
		retry = time.After(retryDelay)
	}
	for ending := false; !ending; {
		var err error
		select {
		case <-l.queue.filled:
			if retry != nil {
				continue // the retry finds the lines
			}
		case <-retry:
			err = l.file.probe()
		case <-sync:
			sync = nil
			if err = l.file.sync(); err == nil {
				continue
			}
		case <-l.quit:
			ending = true
		}
		for batch = l.take(batch); len(batch) > 0 && err == nil; batch = l.take(batch) {
			var written []entry
			written, batch, err = l.file.write(batch, l.describe)
			l.release(written)
		}
		retry = nil
		if !ending || err != nil {
			l.note(err)
		}
		if err != nil {
			retry = time.After(retryDelay)
		} else if sync == nil {
			sync = time.After(syncDelay)
		}
	}
	if err := errors.Join(l.file.sync(), l.file.close()); err != nil {
		l.note(err)
	}
}

// take returns the lines that wait, after those that are left of the batch before.
func (l *Log) take(left []entry) []entry {
	if len(left) > 0 {
		return left
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := l.queue.waiting
	l.queue.waiting = nil
	return batch
}

// release frees the room of lines that are written.
func (l *Log) release(written []entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range written {
		l.queue.lines--
		l.queue.bytes -= written[i].size
	}
}

// failing reports whether the last attempt to write failed.
func (l *Log) failing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.failure != nil
}

// note notes whether writing works.
func (l *Log) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := &l.queue
	if err == nil && (q.failure != nil || q.lost > q.told) {
		l.logger.Warn("the audit log is written again", "path", l.cfg.Path, "lost", q.lost)
		q.told, q.warned = q.lost, time.Time{}
	}
	if q.failure = err; err != nil {
		l.warn()
	}
}

// describe returns what the line of a call has of its arguments.
func (l *Log) describe(arguments []byte) []byte {
	if l.cfg.Arguments == ArgumentsRedacted {
		return shortened(l.mask(string(arguments)))
	}
	return hashed(arguments)
}

// hashed returns the SHA-256 of arguments, as a JSON text.
func hashed(arguments []byte) []byte {
	sum := sha256.Sum256(arguments)
	return []byte(`"` + hex.EncodeToString(sum[:]) + `"`)
}

// cut returns the record with texts of bounded length, which others choose.
func (r Record) cut() Record {
	for _, text := range []*string{&r.Caller, &r.Profile, &r.Surface, &r.Server, &r.Method, &r.Tool, &r.Rule, &r.Reason} {
		if len(*text) > maxText {
			*text = strings.ToValidUTF8((*text)[:maxText], "") + "…"
		}
	}
	return r
}
