package sessionid

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	keyFile  = "session.key"
	keyBytes = 32 // AES-256
)

// readOrMakeKey returns the key of a folder, creating it if there is none.
func readOrMakeKey(folder string) ([]byte, error) {
	key, err := readKey(folder)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeKey(folder); err != nil {
		return nil, err
	}
	return readKey(folder)
}

func readKey(folder string) ([]byte, error) {
	name := filepath.Join(folder, keyFile)
	key, err := os.ReadFile(name)
	if err == nil && len(key) != keyBytes {
		err = fmt.Errorf("%s has %d bytes instead of %d; remove it", name, len(key), keyBytes)
	}
	return key, err
}

// makeKey writes a new key atomically. It keeps a key that another process has written first.
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
