// Package eval measures tool search, planning and execution on files of questions, in the formats of
// docs/evaluation.md. [Retrieval], [Planning] and [DAG] read JSON Lines, write one prediction per line
// for an independent scorer, report progress and return a summary.
//
// No goroutine remains after a function returns.
package eval

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Progress is told how many of how many items are done. It is called from one goroutine at a time.
type Progress func(done, total int)

func (p Progress) report(done, total int) {
	if p != nil {
		p(done, total)
	}
}

// maxLine bounds one line of a file.
const maxLine = 64 << 20

// readLines decodes a JSON Lines file.
func readLines[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	defer f.Close()
	var out []T
	s := bufio.NewScanner(f)
	s.Buffer(nil, maxLine)
	for line := 1; s.Scan(); line++ {
		if len(s.Bytes()) == 0 {
			continue
		}
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("reading %s line %d: %w", path, line, err)
		}
		out = append(out, v)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return out, nil
}

// writer writes predictions, one a line; an empty path discards them.
type writer struct {
	file *os.File
	buf  *bufio.Writer
	enc  *json.Encoder
}

func create(path string) (*writer, error) {
	w := &writer{}
	out := io.Discard
	if path != "" {
		f, err := os.Create(path)
		if err != nil {
			return nil, fmt.Errorf("creating %s: %w", path, err)
		}
		w.file, out = f, f
	}
	w.buf = bufio.NewWriter(out)
	w.enc = json.NewEncoder(w.buf)
	w.enc.SetEscapeHTML(false)
	return w, nil
}

func (w *writer) write(v any) error {
	if err := w.enc.Encode(v); err != nil {
		return fmt.Errorf("writing predictions: %w", err)
	}
	return nil
}

// closeInto closes the writer. It sets *err to the error of closing, unless *err is already set.
func (w *writer) closeInto(err *error) {
	failed := w.buf.Flush()
	if w.file != nil {
		failed = errors.Join(failed, w.file.Close())
	}
	if failed != nil && *err == nil {
		*err = fmt.Errorf("writing predictions: %w", failed)
	}
}

// beside resolves a path in a line of another file, relative to that file's folder or to a folder above
// it.
func beside(file, name string) string {
	dir := filepath.Dir(file)
	for range 3 {
		if p := filepath.Join(dir, name); exists(p) {
			return p
		}
		dir = filepath.Join(dir, "..")
	}
	return name
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }
