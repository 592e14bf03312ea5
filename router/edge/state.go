package edge

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Files in the state folder.
const (
	keyFile    = "session.key"
	tombFolder = "ended"
)

// Keep has session ids sealed with the key in a folder, which is made if need be, so that sessions survive a
// restart of the router. Without Keep, or if it fails, the key lives with the process. It is called once, before
// the edge serves. Several processes may use one folder.
func (e *Edge) Keep(folder string) error {
	ended := filepath.Join(folder, tombFolder)
	if err := os.MkdirAll(ended, 0o700); err != nil {
		return err
	}
	probe, err := os.CreateTemp(ended, ".probe-")
	if err != nil { // what clients end has to be noted there
		return err
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return err
	}
	key, err := readKey(folder)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeKey(folder); err == nil {
			key, err = readKey(folder)
		}
	}
	if err != nil {
		return err
	}
	s, err := newSealer(key)
	if err != nil {
		return err
	}
	e.seal, e.tombs.folder = s, ended
	return nil
}

func readKey(folder string) ([]byte, error) {
	name := filepath.Join(folder, keyFile)
	key, err := os.ReadFile(name)
	if err == nil && len(key) != keyBytes {
		err = fmt.Errorf("%s has %d bytes instead of %d; remove it", name, len(key), keyBytes)
	}
	return key, err
}

// makeKey makes the key, all of it at once. Where another process was faster its key stays.
func makeKey(folder string) error {
	var key [keyBytes]byte
	_, _ = rand.Read(key[:])                      // never fails
	f, err := os.CreateTemp(folder, ".session-*") // readable by its owner alone
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(key[:])
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), filepath.Join(folder, keyFile)); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
