package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
)

// When a new file begins.
const (
	rotateSize = 64 << 20
	rotateAge  = 7 * 24 * time.Hour
)

const chunkSize = 256 << 10 // bytes of lines that are written at once

// link is what a line has of the line before.
type link struct {
	seq  uint64
	hash string
}

// file is the file that a log writes, or another stream. Only one goroutine uses it, besides close.
type file struct {
	path   string
	logger *slog.Logger
	f      *os.File
	lock   *os.File // nil for a stream
	last   link     // the last line that was encoded
	size   int64
	first  uint64    // number of the first line in the file; 0 = it is empty
	since  time.Time // of the first line
	out    []byte    // the part of the last chunk that is not written
	lines  int       // of that chunk
	dirty  bool      // lines are not synced
}

var errOutput = errors.New("this command uses standard output otherwise")

// openFile opens a log and finds its last line. A regular file is locked.
func openFile(path string, stdout *os.File, logger *slog.Logger) (*file, error) {
	unusable := func(err error) error {
		if wrong := (*fs.PathError)(nil); errors.As(err, &wrong) {
			err = wrong.Err
		}
		return &UnusableError{path, err.Error()}
	}
	w := &file{path: path, logger: logger, last: link{hash: noLine}}
	if path == Stdout {
		if w.f = stdout; stdout == nil {
			return nil, unusable(errOutput)
		}
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a reader that goes away must not end the router
		return w, nil
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		w.path = target // which is what a rotation must rename
	}
	var err error
	if w.f, err = os.OpenFile(w.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600); err != nil {
		return nil, unusable(err)
	}
	info, err := w.f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		if own, e := os.Stdout.Stat(); stdout == nil && e == nil && os.SameFile(own, info) {
			err = errOutput
		}
		if err == nil {
			return w, nil
		}
	default:
		err = w.begin()
	}
	if err != nil {
		_ = w.close()
		if errors.Is(err, ErrInUse) {
			return nil, fmt.Errorf("the audit log %s: %w", path, err)
		}
		return nil, unusable(err)
	}
	return w, nil
}

// begin locks the file and reads where the log ended.
func (w *file) begin() (err error) {
	if w.lock, err = os.OpenFile(w.path+".lock", os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	switch err := atomicfile.TryLock(w.lock); {
	case errors.Is(err, atomicfile.ErrLocked):
		return ErrInUse
	case err != nil && !errors.Is(err, errors.ErrUnsupported):
		return err
	}
	info, err := w.f.Stat()
	if err == nil && info.Mode().Perm() != 0o600 {
		err = w.f.Chmod(0o600)
	}
	if err != nil {
		return err
	}
	w.size = info.Size()
	torn, err := w.repair()
	if err != nil {
		return err
	}
	last, err := w.resume()
	if err == nil && last != nil {
		var line Line
		line, err = parse(last)
		w.last = link{line.Seq, hashOf(last)}
	}
	if torn {
		w.last.seq++ // the number of that line stays missing
	}
	return err
}

// resume returns the last line of the log, nil if it has none.
func (w *file) resume() (last []byte, err error) {
	first, last, err := ends(w.f)
	if err != nil {
		return nil, err
	}
	if last != nil {
		line, err := parse(first)
		w.first = line.Seq
		w.since, _ = time.Parse(time.RFC3339, line.Time) // else it is old
		return last, err
	}
	older, err := rotated(w.path)
	if err != nil || len(older) == 0 {
		return nil, err
	}
	f, err := os.Open(older[len(older)-1])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, last, err = ends(f)
	return last, err
}

// repair completes a last line whose end is missing. If more is missing, it moves the line to NAME.torn.
func (w *file) repair() (torn bool, err error) {
	tail, err := tailOf(w.f, w.size)
	if err != nil || len(tail) == 0 || tail[len(tail)-1] == '\n' {
		return false, err
	}
	line := tail[bytes.LastIndexByte(tail, '\n')+1:]
	if _, err := parse(line); err == nil {
		w.size++
		_, err = w.f.Write([]byte{'\n'})
		return false, err
	}
	if !bytes.HasPrefix(line, []byte(lineStart)[:min(len(line), len(lineStart))]) {
		return false, errNoLog
	}
	aside, err := os.OpenFile(w.path+".torn", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	_, err = aside.Write(append(bytes.Clone(line), '\n'))
	if err = errors.Join(err, aside.Sync(), aside.Close()); err != nil {
		return false, err
	}
	w.size -= int64(len(line))
	w.logger.Warn("the last line of the audit log was cut off; it is moved to another file",
		"path", w.path, "to", aside.Name())
	return true, w.f.Truncate(w.size)
}

// tailOf returns the end of a file, which has its last two lines.
func tailOf(f *os.File, size int64) ([]byte, error) {
	tail := make([]byte, min(size, 2*maxLine))
	_, err := f.ReadAt(tail, size-int64(len(tail)))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return tail, err
}

// ends returns the first and the last line of a file whose lines are complete; nil if it is empty.
func ends(f *os.File) (first, last []byte, err error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return nil, nil, err
	}
	head := make([]byte, min(info.Size(), maxLine))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	tail, err := tailOf(f, info.Size())
	if err != nil {
		return nil, nil, err
	}
	tail = bytes.TrimSuffix(tail, []byte{'\n'})
	first, _, _ = bytes.Cut(head, []byte{'\n'})
	return first, tail[bytes.LastIndexByte(tail, '\n')+1:], nil
}

// lineStart is how each line starts.
const lineStart = `{"time":"`

var errNoLog = errors.New("it is not an audit log")

// parse reads a line.
func parse(line []byte) (l Line, err error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil || dec.More() || l.Seq == 0 || len(l.Prev) != len(noLine) {
		return l, errNoLog
	}
	return l, nil
}

// rotated returns the older files of a log in their order.
func rotated(path string) ([]string, error) {
	names, err := filepath.Glob(globbed(path) + ".[0-9]*")
	names = slices.DeleteFunc(names, func(name string) bool { return numberOf(name) == 0 })
	slices.SortFunc(names, func(a, b string) int { return int(numberOf(a)) - int(numberOf(b)) })
	return names, err
}

// globbed returns a pattern that matches a path.
func globbed(path string) string {
	var b []byte
	for i := range len(path) {
		if bytes.IndexByte([]byte(`*?[\`), path[i]) >= 0 {
			b = append(b, '\\')
		}
		b = append(b, path[i])
	}
	return string(b)
}

// numberOf returns the number of the first line in an older file, from its name; 0 = it is none.
func numberOf(name string) uint64 {
	end := filepath.Ext(name)
	if end == "" {
		return 0
	}
	n, err := strconv.ParseUint(end[1:], 10, 62)
	if err != nil || olderName("", n) != end {
		return 0
	}
	return n
}

func olderName(path string, first uint64) string { return fmt.Sprintf("%s.%012d", path, first) }

// probe returns an error if a write would fail for want of space, as far as a write of nothing tells.
func (w *file) probe() error {
	_, err := w.f.Write(nil)
	return err
}

// write writes the first lines of a batch and returns them and the rest. After an error, the next call continues where
// this one stopped.
func (w *file) write(batch []entry, describe func([]byte) []byte) (written, rest []entry, err error) {
	if len(w.out) == 0 {
		if err := w.prepare(); err != nil {
			return nil, batch, err
		}
		for w.lines = 0; w.lines < len(batch) && len(w.out) < chunkSize; w.lines++ {
			w.encode(&batch[w.lines], describe)
		}
	}
	n, err := w.f.Write(w.out)
	w.out = w.out[n:]
	w.size += int64(n)
	w.dirty = true
	if err != nil {
		return nil, batch, err
	}
	w.out = nil
	return batch[:w.lines], batch[w.lines:], nil
}

// encode adds a line to the chunk.
func (w *file) encode(e *entry, describe func([]byte) []byte) {
	if e.raw != nil {
		e.Arguments = describe(e.raw)
	}
	e.raw, e.Prev = nil, w.last.hash
	line := e.Line.encode()
	w.last = link{e.Seq, hashOf(line[:len(line)-1])}
	w.out = append(w.out, line...)
	if w.first == 0 {
		w.first, w.since = e.Seq, time.Now()
	}
}

// prepare begins another file if this one is large or old, or no longer has its name.
func (w *file) prepare() error {
	if w.lock == nil {
		return nil
	}
	if now, err := os.Stat(w.path); errors.Is(err, fs.ErrNotExist) {
		return w.next()
	} else if err != nil {
		return err
	} else if own, err := w.f.Stat(); err != nil {
		return err
	} else if !os.SameFile(now, own) {
		return errors.New("another file has its name; move that one away")
	}
	if w.first == 0 || w.size < rotateSize && time.Since(w.since) < rotateAge {
		return nil
	}
	if err := w.sync(); err != nil {
		return err
	}
	older := olderName(w.path, w.first)
	if _, err := os.Lstat(older); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists; move it away", older)
	}
	if err := os.Rename(w.path, older); err != nil {
		return err
	}
	return w.next()
}

// next begins a new file.
func (w *file) next() error {
	f, err := os.OpenFile(w.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_ = w.f.Close() // its lines are synced, or nobody can find them
	w.f, w.size, w.first = f, 0, 0
	return nil
}

// sync makes the lines survive a crash of the machine.
func (w *file) sync() error {
	if w.lock == nil || !w.dirty {
		return nil
	}
	err := w.f.Sync()
	w.dirty = err != nil
	return err
}

func (w *file) close() error {
	var err error
	if w.path != Stdout {
		err = w.f.Close()
	}
	if w.lock != nil {
		err = errors.Join(err, w.lock.Close())
	}
	return err
}
