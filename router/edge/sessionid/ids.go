package sessionid

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
)

// IDs issues and opens session ids.
type IDs struct {
	sealer     sealer
	tombstones tombstones
}

// New returns IDs whose key is lost with the process.
func New() *IDs {
	var key [keyBytes]byte
	_, _ = rand.Read(key[:])  // never fails
	s, _ := newSealer(key[:]) // the key has the right length
	return &IDs{sealer: s}
}

// endedFolder is the folder of the tombstones in the state folder.
const endedFolder = "ended"

// Keep uses the key in a folder, created if necessary, so that session ids stay valid across restarts. If it fails,
// the key is still lost with the process. It must be called once, before all other methods.
func (i *IDs) Keep(folder string) error {
	ended := filepath.Join(folder, endedFolder)
	if err := os.MkdirAll(ended, 0o700); err != nil {
		return err
	}
	probe, err := os.CreateTemp(ended, ".probe-")
	if err != nil { // tombstones need the folder
		return err
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return err
	}
	key, err := readOrMakeKey(folder)
	if err != nil {
		return err
	}
	s, err := newSealer(key)
	if err != nil {
		return err
	}
	i.sealer, i.tombstones.folder = s, ended
	return nil
}

// Issue returns a new id for a session with record r, valid on one path, and sets r.Tag.
func (i *IDs) Issue(r *Record, path string) string { return i.sealer.seal(r, path) }

// Open returns the record of an id that was issued for the path.
func (i *IDs) Open(id, path string) (*Record, bool) { return i.sealer.open(id, path) }

// End records that the client has ended the session of r. If it fails, only this process knows.
func (i *IDs) End(r *Record) error { return i.tombstones.add(r) }

// Ended reports whether the client has ended the session of r. If that is unknown, it returns true and an error.
func (i *IDs) Ended(r *Record) (bool, error) { return i.tombstones.has(r) }
