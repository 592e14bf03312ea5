// Package audit records calls in a file, one line of JSON each, in which nobody can change a line unnoticed.
//
// [New] returns a [Log], [Log.Open] opens its file, and [Verify] checks it. [Log.Begin] precedes a call and [Log.End]
// adds its line to those that wait; neither waits for the disk. One goroutine, owned by the Log, writes them, at most
// once in 5 ms, and syncs the file once a second. Each line has a number and the SHA-256 of the line before, also
// across the files of a log: a file that is too large or too old is renamed to NAME.N, where N is the number of its
// first line, and a new one continues it. No file is ever deleted.
//
// The bytes of the lines that wait are bounded. When there is no room, or while writing fails, on_failure: refuse makes
// Begin fail, and continue loses the line; its number is then missing in the file. Lines that wait are written when
// writing works again. A nil *Log records nothing. All methods are safe for concurrent use.
package audit

import (
	"bytes"
	"context"
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

// Bytes of lines.
const (
	maxWaiting = 16 << 20 // of all that wait for the disk
	reserved   = 1 << 10  // kept for the line of a call, with on_failure: refuse
)

// Times of the goroutine.
const (
	pause      = 5 * time.Millisecond // between two writes, so that one has the lines of many calls
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
	waiting []byte        // without those that are being written
	lines   int           // waiting or being written
	bytes   int           // of these, and reserved
	last    link          // the line that the next one follows
	lost    int64
	failure error // why the last attempt to write failed; nil = it did not
	warned  time.Time
	warning bool // holds since warned
	closed  bool
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

// ErrLost is the error of Close if lines are lost.
var ErrLost = errors.New("the last lines of the audit log could not be written and are lost")

// Open opens the file, once; Begin opens it if nobody has. stdout is for the path stdout; nil refuses that path,
// because standard output has another use. The error is ErrInUse or ErrUnusable.
func (l *Log) Open(stdout *os.File) error {
	if l == nil {
		return nil
	}
	l.opening.Do(func() { l.opened = l.open(stdout) })
	return l.opened
}

func (l *Log) open(stdout *os.File) error {
	f, last, err := openFile(l.cfg.Path, stdout, l.logger)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file, l.queue.last = f, last
	if l.queue.closed {
		close(l.done)
		return f.close()
	}
	if l.cfg.OnFailure == FailureRefuse {
		if _, l.queue.failure = f.write(); l.queue.failure != nil {
			l.warn()
		}
	}
	go l.run(l.queue.failure)
	return nil
}

// Begin precedes a call. After an error, which tells why the call cannot be recorded, it must not be made; else End
// must follow.
func (l *Log) Begin() error {
	if l == nil {
		return nil
	}
	if err := l.Open(nil); err != nil || l.cfg.OnFailure != FailureRefuse {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.queue.failure != nil:
		return withoutPath(l.queue.failure)
	case l.queue.bytes+reserved > maxWaiting:
		return errSlow
	}
	l.queue.bytes += reserved
	return nil
}

var errSlow = errors.New("it is written too slowly")

// End records a call with raw arguments, which has ended or was refused; nil = it has none.
func (l *Log) End(r Record, arguments []byte) {
	if l == nil {
		return
	}
	if strings.Contains(r.Tool, "://") {
		r.Tool = l.mask(r.Tool)
	}
	rest := encode(r.cut(), l.describe(arguments))
	l.mu.Lock()
	defer l.mu.Unlock()
	q := &l.queue
	full := q.bytes+len(rest) > maxWaiting
	if l.cfg.OnFailure == FailureRefuse {
		q.bytes, full = q.bytes-reserved, false
	}
	if q.closed || full {
		q.last.seq++ // the gap shows the loss
		q.lost++
		l.warn()
		return
	}
	before := len(q.waiting)
	q.waiting = q.last.append(q.waiting, rest)
	q.lines, q.bytes = q.lines+1, q.bytes+len(q.waiting)-before
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// describe returns what a line has of arguments.
func (l *Log) describe(arguments []byte) []byte {
	switch {
	case len(arguments) == 0 || l.cfg.Arguments == ArgumentsNone:
		return nil
	case l.cfg.Arguments == ArgumentsRedacted:
		return shortened(l.mask(string(arguments[:min(len(arguments), maxRedacted)])))
	}
	return append(appendHash([]byte{'"'}, arguments), '"')
}

// warn logs, once a minute, that lines are lost or cannot be written. The caller has locked mu.
func (l *Log) warn() {
	q := &l.queue
	if time.Since(q.warned) < warnDelay {
		return
	}
	q.warned, q.warning = time.Now(), true
	why := q.failure
	if why == nil {
		why = errSlow
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

// run writes the lines until quit, and then the rest. failed is why the file could not be written so far.
func (l *Log) run(failed error) {
	defer close(l.done)
	var due <-chan time.Time // of the sync, or of the next attempt
	for ending := false; !ending; {
		filled := l.queue.filled
		if failed != nil {
			filled = nil
			due = time.After(retryDelay)
		}
		select {
		case <-filled:
			if due == nil {
				due = time.After(syncDelay)
			}
			failed = l.flush()
			time.Sleep(pause)
		case <-due:
			due = nil
			if failed = l.flush(); failed == nil {
				failed = l.file.sync()
			}
		case <-l.quit:
			ending = true
			failed = errors.Join(l.flush(), l.file.sync(), l.file.close())
		}
		l.note(failed)
	}
}

// flush writes the lines that wait.
func (l *Log) flush() error {
	for {
		chunk := l.file.rest
		n, err := l.file.write()
		if waiting := l.written(chunk[:n]); err != nil || !waiting {
			return err
		}
		if err := l.file.prepare(); err != nil {
			return err
		}
		l.mu.Lock()
		l.queue.waiting = l.file.take(l.queue.waiting)
		l.mu.Unlock()
	}
}

// written frees the room of what is written, and reports whether lines wait.
func (l *Log) written(part []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.bytes -= len(part)
	l.queue.lines -= bytes.Count(part, []byte{'\n'})
	return len(l.queue.waiting) > 0
}

// note notes whether writing works.
func (l *Log) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := &l.queue
	q.failure = err
	if err != nil {
		l.warn()
	} else if q.warning {
		q.warning = false
		l.logger.Warn("the audit log is written again", "path", l.cfg.Path, "lost", q.lost)
	}
}
