package history

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	fileName = "history.db"
	lockTime = 200 * time.Millisecond // that another process may need to let go of the file
)

// Buckets of the file. Entries of one batch share a value, one JSON object a line, under the id of the last of them:
// calls come by the thousand, and a value for each would cost more than the call. Details have a value each.
var (
	bucketEntries = []byte("entries-1")
	bucketDetails = []byte("details-1")
)

// file is a store in a file that one process has open at a time.
type file struct{ db *bolt.DB }

// openFile opens the history in a folder and reads the entries. A damaged file is renamed, and a new one made. The
// error says why there can be none.
func openFile(folder string, logger *slog.Logger) (*file, []stored, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, nil, err
	}
	name := filepath.Join(folder, fileName)
	f, found, err := readFile(name)
	var refused syscall.Errno // the file cannot be used, but nothing is wrong with its content
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, nil, fmt.Errorf("another process uses %s", name)
	case err == nil, errors.As(err, &refused):
		return f, found, err
	}
	aside := name + ".damaged"
	logger.Warn("the history is damaged; a new one begins", "file", name, "error", err, "moved_to", aside)
	if err := os.Rename(name, aside); err != nil {
		return nil, nil, err
	}
	return readFile(name)
}

// readFile opens a file and reads its entries.
func readFile(name string) (f *file, found []stored, err error) {
	f = &file{}
	err = guard(func() (err error) {
		// The list of free pages is stored: without it bbolt reads the whole file, in a goroutine whose panics nobody can
		// recover from.
		options := &bolt.Options{Timeout: lockTime, FreelistType: bolt.FreelistMapType}
		if f.db, err = bolt.Open(name, 0o600, options); err != nil {
			return err
		}
		return f.db.Update(func(tx *bolt.Tx) error {
			for _, name := range [][]byte{bucketEntries, bucketDetails} {
				if _, err := tx.CreateBucketIfNotExists(name); err != nil {
					return err
				}
			}
			found, err = readEntries(tx)
			return err
		})
	})
	if err != nil {
		if f.db != nil {
			f.close()
		}
		return nil, nil, err
	}
	return f, found, nil
}

func readEntries(tx *bolt.Tx) (found []stored, err error) {
	details := tx.Bucket(bucketDetails)
	last := uint64(0)
	err = tx.Bucket(bucketEntries).ForEach(func(_, batch []byte) error {
		for line := range bytes.Lines(batch) {
			e := stored{bytes: len(line)}
			if err := json.Unmarshal(line, &e.Entry); err != nil {
				return err
			}
			if e.ID <= last {
				return fmt.Errorf("entry %d is behind %d", e.ID, last)
			}
			last = e.ID
			e.bytes += len(details.Get(key(e.ID)))
			found = append(found, e)
		}
		return nil
	})
	return found, err
}

func key(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }

func (f *file) write(batch []record, gone []uint64) error {
	return guard(func() error {
		return f.db.Update(func(tx *bolt.Tx) error {
			entries, details := tx.Bucket(bucketEntries), tx.Bucket(bucketDetails)
			entries.FillPercent, details.FillPercent = 0.9, 0.9 // keys ascend
			return errors.Join(dropDetails(details, gone), dropLines(entries, gone), put(entries, details, batch))
		})
	})
}

// put keeps a batch.
func put(entries, details *bolt.Bucket, batch []record) error {
	if len(batch) == 0 {
		return nil
	}
	size := 0
	for _, r := range batch {
		size += len(r.summary) + 1
	}
	lines := make([]byte, 0, size)
	for _, r := range batch {
		lines = append(append(lines, r.summary...), '\n')
		if r.whole == nil {
			continue
		}
		if err := details.Put(key(r.entry.ID), r.whole); err != nil {
			return err
		}
	}
	return entries.Put(key(batch[len(batch)-1].entry.ID), lines)
}

// dropDetails removes the details of entries. Most have none.
func dropDetails(details *bolt.Bucket, gone []uint64) error {
	for len(gone) > 0 {
		next, _ := details.Cursor().Seek(key(gone[0]))
		if next == nil {
			return nil
		}
		passed, found := slices.BinarySearch(gone, binary.BigEndian.Uint64(next))
		if gone = gone[passed:]; !found {
			continue
		}
		if err := details.Delete(next); err != nil {
			return err
		}
		gone = gone[1:]
	}
	return nil
}

// dropLines removes the lines of entries from the values that they share with others.
func dropLines(entries *bolt.Bucket, gone []uint64) error {
	for len(gone) > 0 {
		last, lines := entries.Cursor().Seek(key(gone[0]))
		if last == nil {
			return nil // the rest was not stored
		}
		passed, found := slices.BinarySearch(gone, binary.BigEndian.Uint64(last))
		if found {
			passed++
		}
		kept := without(lines, gone[:passed])
		gone = gone[passed:]
		var err error
		switch len(kept) {
		case 0:
			err = entries.Delete(last)
		case len(lines): // they were not stored
		default:
			err = entries.Put(last, kept)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// without returns lines without those of some ids.
func without(lines []byte, gone []uint64) (kept []byte) {
	for line := range bytes.Lines(lines) {
		digits, _, _ := bytes.Cut(bytes.TrimPrefix(line, []byte(`{"id":`)), []byte(","))
		id, err := strconv.ParseUint(string(digits), 10, 64)
		if _, found := slices.BinarySearch(gone, id); !found || err != nil {
			kept = append(kept, line...)
		}
	}
	return kept
}

func (f *file) detail(id uint64) (detail []byte, err error) {
	err = guard(func() error {
		return f.db.View(func(tx *bolt.Tx) error {
			detail = bytes.Clone(tx.Bucket(bucketDetails).Get(key(id)))
			return nil
		})
	})
	return detail, err
}

func (f *file) close() { _ = guard(f.db.Close) } // every write was committed

// guard turns a panic into an error: damaged pages make bbolt panic, and pages that are missing from the file fault.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the file is damaged: %v", p)
		}
	}()
	return f()
}
