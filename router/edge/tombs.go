package edge

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Bounds of what is remembered of the sessions that started within one hour. Beyond them no session of that hour
// is revived: none of the caller, or none at all.
const (
	hourTombs   = 32 << 10
	callerTombs = 8 << 10
)

// tombs remembers the sessions that their clients have ended, as long as their ids could be used to revive them.
// With a folder it survives the process and is shared with others that use the folder: there is a file for
// each hour in which sessions started, of one line a session, which is only ever appended to.
type tombs struct {
	folder string // empty = memory alone

	mu    sync.Mutex
	hours map[string]*hour // by name of the file
}

// hour is what is known of the sessions that started within one hour.
type hour struct {
	read  int64 // bytes of the file
	ended map[uint64]bool
	by    map[uint64]int // number by caller
}

const hourName = "2006-01-02T15"

// tombLine is the length of a line: a caller and a session, in hexadecimal digits.
const tombLine = 16 + 1 + 16 + 1

func (h *hour) closed(caller uint64) bool {
	return len(h.ended) >= hourTombs || h.by[caller] >= callerTombs
}

func (h *hour) add(caller, tag uint64) {
	if h.closed(caller) || h.ended[tag] {
		return
	}
	h.ended[tag] = true
	h.by[caller]++
}

// has reports whether the session of r was ended.
func (t *tombs) has(r *record) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, err := t.hour(r)
	return err != nil || h.ended[r.tag] || h.closed(caller(r)), err
}

// add notes that the client has ended the session of r. If it fails the process knows, but no later one.
func (t *tombs) add(r *record) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, err := t.hour(r)
	if h.ended[r.tag] || h.closed(caller(r)) {
		return err
	}
	h.add(caller(r), r.tag)
	if t.folder == "" || err != nil {
		return err
	}
	f, err := os.OpenFile(t.file(r), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%016x %016x\n", caller(r), r.tag)
	return errors.Join(err, f.Close())
}

func caller(r *record) uint64 { return binary.BigEndian.Uint64(r.owner[:]) }

func nameOf(r *record) string { return r.start.UTC().Format(hourName) }

func (t *tombs) file(r *record) string { return filepath.Join(t.folder, nameOf(r)) }

// hour returns what is known by now of the hour in which the session of r started, even with an error.
func (t *tombs) hour(r *record) (*hour, error) {
	h := t.hours[nameOf(r)]
	if h == nil {
		t.sweep(time.Now())
		h = &hour{ended: map[uint64]bool{}, by: map[uint64]int{}}
		if t.hours == nil {
			t.hours = map[string]*hour{}
		}
		t.hours[nameOf(r)] = h
	}
	if t.folder == "" {
		return h, nil
	}
	return h, h.update(t.file(r))
}

// update reads what was appended to the file of the hour.
func (h *hour) update(file string) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() == h.read {
		return err
	}
	// Processes that do not know of each other's lines write a few too many.
	b, err := io.ReadAll(io.NewSectionReader(f, h.read, 2*hourTombs*tombLine))
	if err != nil {
		return err
	}
	for {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if !whole {
			return nil
		}
		h.read += int64(len(line)) + 1
		b = rest
		by, of, _ := bytes.Cut(line, []byte(" "))
		c, err1 := strconv.ParseUint(string(by), 16, 64)
		tag, err2 := strconv.ParseUint(string(of), 16, 64)
		if err1 == nil && err2 == nil { // else the disk was full
			h.add(c, tag)
		}
	}
}

// sweep forgets the hours whose sessions cannot be revived any more.
func (t *tombs) sweep(now time.Time) {
	oldest := now.Add(-recordLife - time.Hour).UTC().Format(hourName)
	for name := range t.hours {
		if name < oldest {
			delete(t.hours, name)
		}
	}
	if t.folder == "" {
		return
	}
	files, _ := os.ReadDir(t.folder) // what stays is swept the next time
	for _, f := range files {
		if _, err := time.Parse(hourName, f.Name()); err == nil && f.Name() < oldest {
			_ = os.Remove(filepath.Join(t.folder, f.Name()))
		}
	}
}
