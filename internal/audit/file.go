package audit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
)

// When a new file begins.
const (
	rotateSize = 64 << 20
	rotateAge  = 7 * 24 * time.Hour
)

const maxKept = 1 << 20 // bytes of a chunk whose memory is used again

// ErrUnusable is the error of a log whose path cannot be used.
var ErrUnusable = errors.New("cannot be used")

// unusable returns the error of a path that cannot be used because of err; nil without one.
func unusable(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the audit log %s %w: %w; set audit.path to a file that the router may write", path, ErrUnusable,
		withoutPath(err))
}

func withoutPath(err error) error {
	if wrong := (*fs.PathError)(nil); errors.As(err, &wrong) {
		return wrong.Err
	}
	return err
}

// ErrInUse is the error of Open for a file that another process writes.
var ErrInUse = errors.New("another process writes it; stop that one, use it with --remote, or set another audit.path")

var errOutput = errors.New("this command uses standard output otherwise")

// file is the file that a log writes, or another stream. Only one goroutine uses it, besides close.
type file struct {
	path  string
	f     *os.File
	lock  *os.File // nil for a stream
	first Line     // of the file; the zero Line = it is empty
	chunk []byte   // lines that were taken last
	rest  []byte   // of chunk, to be written next
}

// openFile opens a log and finds its last line. A regular file is locked.
func openFile(path string, stdout *os.File, logger *slog.Logger) (w *file, last link, err error) {
	w, last = &file{path: path, f: stdout}, start()
	if isStdout(path) {
		if stdout == nil {
			return nil, last, unusable(path, errOutput)
		}
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a reader that goes away must not end the router
		return w, last, nil
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		w.path = target // which is what a rotation must rename
	}
	if w.f, err = os.OpenFile(w.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600); err != nil {
		return nil, last, unusable(path, err)
	}
	if regular(w.f) {
		last, err = w.begin(logger)
	}
	if err != nil {
		_ = w.close()
	}
	if errors.Is(err, ErrInUse) {
		return nil, last, fmt.Errorf("the audit log %s: %w", path, err)
	}
	return w, last, unusable(path, err)
}

func isStdout(path string) bool { return path == Stdout || path == "/dev/stdout" }

// regular reports whether a file is one, and no device or pipe.
func regular(f *os.File) bool {
	info, err := f.Stat()
	return err != nil || info.Mode().IsRegular()
}

// begin locks the file, completes its last line, and finds the end of the log.
func (w *file) begin(logger *slog.Logger) (last link, err error) {
	if w.lock, err = os.OpenFile(w.path+".lock", os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return last, err
	}
	if err := atomicfile.TryLock(w.lock); errors.Is(err, atomicfile.ErrLocked) {
		return last, ErrInUse
	} else if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return last, err
	}
	if info, err := w.f.Stat(); err == nil && info.Mode().Perm() != 0o600 {
		if err := w.f.Chmod(0o600); err != nil {
			return last, err
		}
	}
	torn, err := w.repair(logger)
	if err != nil {
		return last, err
	}
	if w.first, last, _, err = endsOf(w.f); err == nil && last.seq == 0 {
		last, err = lastOlder(w.path)
	}
	if torn {
		last.seq++ // the number of that line stays missing
	}
	return last, err
}

// repair completes a last line whose end is missing. If more is missing, it moves the line to NAME.torn.
func (w *file) repair(logger *slog.Logger) (torn bool, err error) {
	_, _, line, err := endsOf(w.f)
	if err != nil || len(line) == 0 {
		return false, err
	}
	if _, err := parse(line); err == nil {
		_, err = w.f.Write([]byte{'\n'})
		return false, err
	}
	aside, err := os.OpenFile(w.path+".torn", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	_, err = aside.Write(append(bytes.Clone(line), '\n'))
	info, failed := w.f.Stat()
	if err = errors.Join(err, failed, aside.Sync(), aside.Close()); err != nil {
		return false, err
	}
	logger.Warn("the last line of the audit log was cut off; it is moved to another file",
		"path", w.path, "to", aside.Name())
	return true, w.f.Truncate(info.Size() - int64(len(line)))
}

// endsOf returns the first line of a file, the link to its last one, and what a crash has left of another after it.
func endsOf(f *os.File) (first Line, last link, torn []byte, err error) {
	last = start()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return first, last, nil, err
	}
	head, tail := make([]byte, min(info.Size(), maxLine)), make([]byte, min(info.Size(), 2*maxLine))
	if _, err := f.ReadAt(head, 0); err != nil {
		return first, last, nil, err
	}
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return first, last, nil, err
	}
	whole := tail[:bytes.LastIndexByte(tail, '\n')+1]
	if torn = tail[len(whole):]; !bytes.HasPrefix(torn, []byte(lineStart)[:min(len(torn), len(lineStart))]) {
		return first, last, nil, errNoLog
	}
	if len(whole) == 0 {
		return first, last, torn, nil
	}
	whole = whole[:len(whole)-1]
	line := whole[bytes.LastIndexByte(whole, '\n')+1:]
	end, err := parse(line)
	if err == nil {
		line, _, _ := bytes.Cut(head, []byte{'\n'})
		first, err = parse(line)
	}
	return first, link{end.Seq, appendHash(nil, line)}, torn, err
}

// lastOlder returns the link to the last line of the older files of a log.
func lastOlder(path string) (link, error) {
	older, err := rotated(path)
	if err != nil || len(older) == 0 {
		return start(), err
	}
	f, err := os.Open(older[len(older)-1])
	if err != nil {
		return link{}, err
	}
	defer f.Close()
	_, last, _, err := endsOf(f)
	return last, err
}

// Check returns the error that Open has for a path, but does not see whether another process writes the file. It
// changes nothing.
func Check(path string) error {
	if isStdout(path) {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		defer f.Close()
		if !regular(f) {
			return nil
		}
		_, _, _, err = endsOf(f)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = atomicfile.Writable(filepath.Dir(path))
	}
	return unusable(path, err)
}

// rotated returns the older files of a log in their order.
func rotated(path string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), filepath.Base(path))
		if ok && numberOf(name) > 0 && filepath.Ext(name) == name {
			names = append(names, path+name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(numberOf(a), numberOf(b)) })
	return names, err
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

// write writes the rest. After an error, the next call continues where this one stopped. A write of nothing may tell
// whether there is space.
func (w *file) write() (n int, err error) {
	n, err = w.f.Write(w.rest)
	w.rest = w.rest[n:]
	return n, err
}

// take makes lines the rest, after prepare. It returns the empty memory of the rest before.
func (w *file) take(lines []byte) (empty []byte) {
	if cap(w.chunk) <= maxKept {
		empty = w.chunk[:0]
	}
	w.chunk, w.rest = lines, lines
	if w.first.Seq == 0 {
		line, _, _ := bytes.Cut(lines, []byte{'\n'})
		w.first, _ = parse(line) // of the router itself
	}
	return empty
}

// prepare begins another file if this one is large or old, or no longer has its name.
func (w *file) prepare() error {
	if w.lock == nil {
		return nil
	}
	now, err := os.Stat(w.path)
	if errors.Is(err, fs.ErrNotExist) {
		return w.next()
	}
	own, failed := w.f.Stat()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if !os.SameFile(now, own) {
		return errors.New("another file has its name; move that one away")
	}
	since, _ := time.Parse(time.RFC3339, w.first.Time) // else it is old
	if w.first.Seq == 0 || own.Size() < rotateSize && time.Since(since) < rotateAge {
		return nil
	}
	if err := w.sync(); err != nil {
		return err
	}
	older := olderName(w.path, w.first.Seq)
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
	w.f, w.first = f, Line{}
	return nil
}

// sync makes the lines survive a crash of the machine.
func (w *file) sync() error {
	if w.lock == nil {
		return nil
	}
	return w.f.Sync()
}

func (w *file) close() (err error) {
	if !isStdout(w.path) {
		err = w.f.Close()
	}
	if w.lock != nil {
		err = errors.Join(err, w.lock.Close())
	}
	return err
}
