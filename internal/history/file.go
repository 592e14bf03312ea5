package history

import (
	"bytes"
	"cmp"
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
	lockTime = 200 * time.Millisecond // wait for another process to release the file
)

// Buckets of the file. The entries of one batch share a value, one JSON object per line, under the id of the last
// one. Its calls share another (see batch): a value per call would take more space than the call. Each detail has its
// own value.
var (
	bucketEntries = []byte("entries-1") // also calls written by older versions
	bucketCalls   = []byte("calls-1")
	bucketDetails = []byte("details-1")
)

// file is a store in a file. Only one process can open the file at a time.
type file struct{ db *bolt.DB }

// openFile opens the history in a folder and reads its entries. A damaged file is renamed and replaced by a new one.
// The error tells why the file cannot be used.
func openFile(folder string, logger *slog.Logger) (*file, []stored, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, nil, err
	}
	name := filepath.Join(folder, fileName)
	f, found, err := readFile(name)
	var refused syscall.Errno // the file is inaccessible, but its content may be valid
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, nil, fmt.Errorf("%s is in use by another process", name)
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
		// The free-page list is stored in the file: otherwise bbolt reads the whole file in a goroutine whose panics
		// cannot be recovered.
		options := &bolt.Options{Timeout: lockTime, FreelistType: bolt.FreelistMapType}
		if f.db, err = bolt.Open(name, 0o600, options); err != nil {
			return err
		}
		return f.db.Update(func(tx *bolt.Tx) error {
			for _, name := range [][]byte{bucketEntries, bucketCalls, bucketDetails} {
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
	err = tx.Bucket(bucketEntries).ForEach(func(_, batch []byte) error {
		for line := range bytes.Lines(batch) {
			e := &Entry{}
			if err := json.Unmarshal(line, e); err != nil {
				return err
			}
			size := len(line) + len(details.Get(key(e.ID)))
			found = append(found, stored{id: e.ID, at: e.At.UnixNano(), bytes: size, entry: e})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = tx.Bucket(bucketCalls).ForEach(func(_, batch []byte) error {
		return readCalls(batch, func(c *stored) { found = append(found, *c) })
	})
	slices.SortStableFunc(found, func(a, b stored) int { return cmp.Compare(a.id, b.id) })
	for i := range found[min(1, len(found)):] {
		if found[i].id == found[i+1].id {
			return nil, fmt.Errorf("there are two entries %d", found[i].id)
		}
	}
	return found, err
}

func key(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }

func (f *file) write(batch []record, kept []stored, gone []uint64) error {
	return guard(func() error {
		return f.db.Update(func(tx *bolt.Tx) error {
			entries, calls, details := tx.Bucket(bucketEntries), tx.Bucket(bucketCalls), tx.Bucket(bucketDetails)
			for _, b := range []*bolt.Bucket{entries, calls, details} {
				b.FillPercent = 0.9 // keys ascend
			}
			return errors.Join(dropDetails(details, gone), drop(entries, gone, withoutLines), drop(calls, gone, withoutCalls),
				putEntries(entries, details, batch), putCalls(calls, kept))
		})
	})
}

func putEntries(entries, details *bolt.Bucket, batch []record) error {
	var lines []byte
	last := uint64(0)
	for i := range batch {
		w := batch[i].entry
		if w == nil {
			continue
		}
		lines = append(append(lines, w.summary...), '\n')
		last = w.ID
		if w.detailed == nil {
			continue
		}
		if err := details.Put(key(last), w.detailed); err != nil {
			return err
		}
	}
	if last == 0 {
		return nil
	}
	return entries.Put(key(last), lines)
}

func putCalls(calls *bolt.Bucket, kept []stored) error {
	b := batchOf(kept)
	if b.last.id == 0 {
		return nil
	}
	return calls.Put(key(b.last.id), b.bytes)
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

// drop removes entries from values that several entries share. without removes the given ids from a value.
func drop(from *bolt.Bucket, gone []uint64, without func(batch []byte, gone []uint64) ([]byte, error)) error {
	for len(gone) > 0 {
		last, batch := from.Cursor().Seek(key(gone[0]))
		if last == nil {
			return nil // the remaining ids are not stored
		}
		passed, found := slices.BinarySearch(gone, binary.BigEndian.Uint64(last))
		if found {
			passed++
		}
		kept, err := without(batch, gone[:passed])
		gone = gone[passed:]
		switch {
		case err != nil:
		case len(kept) == 0:
			err = from.Delete(last)
		case len(kept) < len(batch): // else the ids are not in this value
			err = from.Put(last, kept)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withoutLines removes the lines with the given ids.
func withoutLines(lines []byte, gone []uint64) (kept []byte, err error) {
	for line := range bytes.Lines(lines) {
		digits, _, _ := bytes.Cut(bytes.TrimPrefix(line, []byte(`{"id":`)), []byte(","))
		id, err := strconv.ParseUint(string(digits), 10, 64)
		if _, found := slices.BinarySearch(gone, id); !found || err != nil {
			kept = append(kept, line...)
		}
	}
	return kept, nil
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

func (f *file) close() { _ = guard(f.db.Close) } // every write is committed

// guard converts panics to errors: bbolt panics on damaged pages and faults on missing ones.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the file is damaged: %v", p)
		}
	}()
	return f()
}
