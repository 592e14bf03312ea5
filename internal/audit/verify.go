package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
)

// Report describes a log that is whole.
type Report struct {
	Files int
	Lines int
	Lost  uint64 // lines that the router could not write: their numbers are missing
	First Line
	Last  Line
	Hash  string // of the last line
}

// Verify checks a log: the file and the older files before it. Of an older file, NAME.N, it checks that one and those
// after it, whatever was before. The error names the first line that is not as it was written. A line that a running
// router has written in part does not count.
func Verify(path string) (*Report, error) {
	base, from := path, numberOf(path)
	if from > 0 {
		base = strings.TrimSuffix(path, olderName("", from))
	}
	current, err := os.Open(base) // before the others are listed, so that a rotation hides no file
	if err != nil && (from == 0 || !errors.Is(err, os.ErrNotExist)) {
		return nil, err
	}
	defer current.Close() // of nil, it does nothing
	older, err := rotated(base)
	if err != nil {
		return nil, err
	}
	v := &verification{report: &Report{}, anyway: from > 1}
	now, _ := current.Stat()
	for _, name := range older {
		if numberOf(name) < from {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		if info, _ := f.Stat(); !os.SameFile(info, now) { // else it was renamed in the meantime
			err = v.file(name, f)
		}
		if f.Close(); err != nil {
			return nil, err
		}
	}
	if current == nil {
		return v.report, nil
	}
	v.live = base
	return v.report, v.file(base, current)
}

// verification is the progress of Verify.
type verification struct {
	report *Report
	anyway bool   // the first line need not be that of the log
	live   string // the file that a router may be writing; empty = not yet
}

// file checks the lines of one file.
func (v *verification) file(name string, f io.Reader) error {
	v.report.Files++
	in := bufio.NewReaderSize(f, maxLine)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		what := ""
		switch {
		case errors.Is(err, io.EOF) && (len(line) == 0 || v.inUse()):
			return nil
		case errors.Is(err, io.EOF):
			what = "is cut off"
		case errors.Is(err, bufio.ErrBufferFull):
			what = "is too long"
		case err != nil:
			return err
		default:
			what = v.line(line[:len(line)-1], n)
		}
		if what != "" {
			return fmt.Errorf("%s: line %d %s", name, n, what)
		}
	}
}

// inUse reports whether a router is writing the file.
func (v *verification) inUse() bool {
	if v.live == "" {
		return false
	}
	lock, err := os.Open(v.live + ".lock")
	if err != nil {
		return false
	}
	defer lock.Close()
	return errors.Is(atomicfile.TryLock(lock), atomicfile.ErrLocked)
}

// line checks the next line, which is line n of its file, and returns what is wrong with it.
func (v *verification) line(raw []byte, n int) string {
	line, err := parse(raw)
	r := v.report
	switch {
	case err != nil:
		return "is not a line of an audit log"
	case r.Lines == 0 && !v.anyway && line.Prev != noLine:
		return fmt.Sprintf("(seq %d) is not the first of the log: lines before it are missing", line.Seq)
	case r.Lines > 0 && line.Prev != r.Hash:
		before := fmt.Sprintf("line %d", n-1)
		if n == 1 {
			before = "the last line of the file before"
		}
		return fmt.Sprintf("(seq %d) does not follow %s (seq %d): one of them was changed, or lines were removed, "+
			"inserted or moved between them", line.Seq, before, r.Last.Seq)
	case line.Seq <= r.Last.Seq:
		return fmt.Sprintf("has seq %d after seq %d", line.Seq, r.Last.Seq)
	}
	if r.Lines == 0 {
		r.First = line
	}
	if r.Lines > 0 || !v.anyway {
		r.Lost += line.Seq - r.Last.Seq - 1
	}
	r.Lines++
	r.Last, r.Hash = line, string(appendHash(nil, raw))
	return ""
}
