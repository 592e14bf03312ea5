package results

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
)

// Error is a problem of a results file.
type Error struct {
	Path string
	Line int // 0 = the file as a whole
	Text string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Path + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Text)
}

// Place is the position of a line in its file.
type Place struct {
	Offset int64
	Length int
}

// Read calls each with every line, decoded into a new T, in the order of the file. torn reports that the last line is
// incomplete and was skipped. The error is an *Error or the error of each.
func Read[T any](path string, each func(l *T, at Place) error) (torn bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		if failed, ok := errors.AsType[*fs.PathError](err); ok {
			err = failed.Err
		}
		return false, &Error{Path: path, Text: "cannot be read: " + err.Error()}
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false, &Error{Path: path, Text: "cannot be read: it is not a regular file"}
	}
	in := bufio.NewReaderSize(f, 1<<20)
	var long []byte
	offset := int64(0)
	for number := 1; ; number++ {
		text, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long[:0], text...)
			for errors.Is(err, bufio.ErrBufferFull) {
				text, err = in.ReadSlice('\n')
				long = append(long, text...)
			}
			text = long
		}
		switch {
		case errors.Is(err, io.EOF):
			return len(text) > 0, nil
		case err != nil:
			return false, &Error{Path: path, Line: number, Text: "cannot be read: " + err.Error()}
		}
		at := Place{Offset: offset, Length: len(text)}
		offset += int64(len(text))
		l := new(T)
		if err := decode(text, l); err != nil {
			return false, &Error{Path: path, Line: number, Text: "is damaged: " + err.Error() + "; remove the line"}
		}
		if err := each(l, at); err != nil {
			return false, err
		}
	}
}

// Decode reads the structured content of process_query.
func Decode(raw []byte) (*Content, error) {
	c := &Content{}
	return c, decode(raw, c)
}

// decode reads a line. It ignores unknown members, because later versions may write more.
func decode(text []byte, v any) error {
	return json.Unmarshal(bytes.TrimSpace(text), v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// At reads the lines at places of a file.
func At[T any](path string, places []Place) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{Path: path, Text: "cannot be read: " + err.Error()}
	}
	defer f.Close()
	all := make([]T, len(places))
	for i, p := range places {
		text := make([]byte, p.Length)
		if _, err := f.ReadAt(text, p.Offset); err != nil {
			return nil, &Error{Path: path, Text: "cannot be read: " + err.Error()}
		}
		if err := decode(text, &all[i]); err != nil {
			return nil, &Error{Path: path, Text: "has changed while it was read: " + err.Error()}
		}
	}
	return all, nil
}

// Writer appends lines to a file. It is safe for concurrent use.
type Writer struct {
	Clean func(line []byte) []byte // removes secrets; set before Write; nil = the lines have none

	mu   sync.Mutex
	file file
	size int64
	err  error // the first; nothing is written after it
}

// file is what a Writer needs of an os.File.
type file interface {
	io.Writer
	Truncate(size int64) error
	Sync() error
	Close() error
}

// ErrExists means that Create refuses a file that already has results.
var ErrExists = errors.New("already has results")

// Create opens a new or empty file. It and Resume make files that only their owner can read; files that exist keep
// their mode.
func Create(path string) (*Writer, error) {
	f, size, err := open(path)
	if err != nil {
		return nil, err
	}
	if size > 0 {
		f.Close()
		return nil, ErrExists
	}
	return &Writer{file: f}, nil
}

// Resume cuts off a torn last line and opens the file to append to. It creates a missing file.
func Resume(path string) (*Writer, error) {
	f, size, err := open(path)
	if err != nil {
		return nil, err
	}
	whole, err := wholeLines(f, size)
	if err == nil && whole < size {
		err = f.Truncate(whole)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("resuming %s: %w", path, err)
	}
	return &Writer{file: f, size: whole}, nil
}

// errLocked means that another process writes the file.
var errLocked = errors.New("another batch is writing it")

// open opens a file and locks it until it is closed, so that no other process writes it.
func open(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		if failed, ok := errors.AsType[*fs.PathError](err); ok {
			err = failed.Err
		}
		return nil, 0, fmt.Errorf("%s cannot be written: %w", path, err)
	}
	err = atomicfile.TryLock(f)
	if errors.Is(err, atomicfile.ErrLocked) {
		err = errLocked
	}
	var info fs.FileInfo
	if err == nil || errors.Is(err, errors.ErrUnsupported) { // the file system has no locks
		info, err = f.Stat()
	}
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return f, info.Size(), nil
}

// wholeLines returns the size of a file up to its last end of a line.
func wholeLines(f io.ReaderAt, size int64) (int64, error) {
	const piece = 64 << 10
	buf := make([]byte, piece)
	for end := size; end > 0; {
		begin := max(0, end-piece)
		part := buf[:end-begin]
		if _, err := f.ReadAt(part, begin); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return begin + int64(i) + 1, nil
		}
		end = begin
	}
	return 0, nil
}

// Write appends one line: a *Line, or another value that JSON can encode. After an error the file has the earlier
// lines, and every later Write fails.
func (w *Writer) Write(line any) error {
	text, err := json.Marshal(line, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("encoding a line: %w", err)
	}
	if w.Clean != nil {
		text = w.Clean(text)
	}
	text = append(text, '\n')
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if _, err := w.file.Write(text); err != nil {
		w.err = fmt.Errorf("writing results: %w", errors.Join(err, w.file.Truncate(w.size)))
		return w.err
	}
	w.size += int64(len(text))
	return nil
}

// Close closes the file.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := errors.Join(w.file.Sync(), w.file.Close()); err != nil && w.err == nil {
		return fmt.Errorf("writing results: %w", err)
	}
	return nil
}
