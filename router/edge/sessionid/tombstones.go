package sessionid

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

// Limits of the tombstones of sessions that started within one hour. Beyond them, no session of that hour is revived:
// none of the caller, or none at all.
const (
	hourTombstones   = 32 << 10
	callerTombstones = 8 << 10
)

// tombstones records the sessions ended by their clients for as long as their ids could revive them. With a folder
// the records survive restarts and are shared between processes: each start hour has an append-only file with one
// line per session.
type tombstones struct {
	folder string // empty = memory only

	mu    sync.Mutex
	hours map[string]*hour // by name of the file
}

// hour holds the tombstones of sessions that started within one hour.
type hour struct {
	read     int64           // bytes of the file
	ended    map[uint64]bool // by session tag
	byCaller map[uint64]int  // number of tombstones
}

const hourName = "2006-01-02T15"

// lineBytes is the length of a line: a caller and a session in hexadecimal digits.
const lineBytes = 16 + 1 + 16 + 1

func (h *hour) full(caller uint64) bool {
	return len(h.ended) >= hourTombstones || h.byCaller[caller] >= callerTombstones
}

func (h *hour) add(caller, tag uint64) {
	if h.full(caller) || h.ended[tag] {
		return
	}
	h.ended[tag] = true
	h.byCaller[caller]++
}

// Ended reports whether the client has ended the session of r. If that is unknown, it returns true and an error.
func (t *tombstones) Ended(r *Record) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, err := t.hour(r)
	return err != nil || h.ended[r.Tag] || h.full(owner(r)), err
}

// End records that the client has ended the session of r. If it fails, only this process knows.
func (t *tombstones) End(r *Record) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, err := t.hour(r)
	if h.ended[r.Tag] || h.full(owner(r)) {
		return err
	}
	h.add(owner(r), r.Tag)
	if t.folder == "" || err != nil {
		return err
	}
	f, err := os.OpenFile(t.file(r), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%016x %016x\n", owner(r), r.Tag)
	return errors.Join(err, f.Close())
}

func owner(r *Record) uint64 { return binary.BigEndian.Uint64(r.Owner[:]) }

func hourOf(r *Record) string { return r.Start.UTC().Format(hourName) }

func (t *tombstones) file(r *Record) string { return filepath.Join(t.folder, hourOf(r)) }

// hour returns the tombstones of the hour in which the session of r started. With an error they may be incomplete.
func (t *tombstones) hour(r *Record) (*hour, error) {
	h := t.hours[hourOf(r)]
	if h == nil {
		t.forget(time.Now())
		h = &hour{ended: map[uint64]bool{}, byCaller: map[uint64]int{}}
		if t.hours == nil {
			t.hours = map[string]*hour{}
		}
		t.hours[hourOf(r)] = h
	}
	if t.folder == "" {
		return h, nil
	}
	return h, h.update(t.file(r))
}

// update reads newly appended lines of the file.
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
	// The factor allows for processes that exceed the limits slightly because they have not read each other's lines.
	b, err := io.ReadAll(io.NewSectionReader(f, h.read, 2*hourTombstones*lineBytes))
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
		if err1 == nil && err2 == nil { // else the line was cut, as on a full disk
			h.add(c, tag)
		}
	}
}

// forget drops the hours whose sessions can no longer be revived.
func (t *tombstones) forget(now time.Time) {
	oldest := now.Add(-recordLife - time.Hour).UTC().Format(hourName)
	for name := range t.hours {
		if name < oldest {
			delete(t.hours, name)
		}
	}
	if t.folder == "" {
		return
	}
	files, _ := os.ReadDir(t.folder) // a file that remains is removed the next time
	for _, f := range files {
		if _, err := time.Parse(hourName, f.Name()); err == nil && f.Name() < oldest {
			_ = os.Remove(filepath.Join(t.folder, f.Name()))
		}
	}
}
