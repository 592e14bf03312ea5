package results

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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
