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
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	fileName = "history.db"
	lockTime = 200 * time.Millisecond // wait for another process to release the file
)

// Buckets of the file, by id: the entries of queries as JSON, and their details.
var (
	bucketQueries = []byte("queries")
	bucketDetails = []byte("details")
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
			for _, name := range [][]byte{bucketQueries, bucketDetails} {
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
	err = tx.Bucket(bucketQueries).ForEach(func(id, summary []byte) error {
		e := &Entry{}
		if err := json.Unmarshal(summary, e); err != nil {
			return err
		}
		if !bytes.Equal(id, key(e.ID)) {
			return fmt.Errorf("the entry %d is stored as %x", e.ID, id)
		}
		found = append(found, stored{Entry: e, bytes: len(summary) + len(details.Get(id)), inStore: true})
		return nil
	})
	return found, err
}

func key(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }

func (f *file) write(queries []pendingEntry, gone []uint64) error {
	return guard(func() error {
		return f.db.Update(func(tx *bolt.Tx) error {
			entries, details := tx.Bucket(bucketQueries), tx.Bucket(bucketDetails)
			entries.FillPercent, details.FillPercent = 0.9, 0.9 // keys ascend
			for _, id := range gone {
				if err := errors.Join(entries.Delete(key(id)), details.Delete(key(id))); err != nil {
					return err
				}
			}
			for _, r := range queries {
				if err := entries.Put(key(r.entry.ID), r.summary); err != nil {
					return err
				}
				if r.detailed == nil {
					continue
				}
				if err := details.Put(key(r.entry.ID), r.detailed); err != nil {
					return err
				}
			}
			return nil
		})
	})
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
