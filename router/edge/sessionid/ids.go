// Package sessionid issues and reads the ids of client sessions, also across restarts.
//
// [New] returns [IDs]. [IDs.Issue] seals a [Record] of the session into its id; [IDs.Open] returns the record of an
// id, which is all that a revival needs. [IDs.End] records that a client has ended its session; [IDs.Ended] reports
// it. [IDs.Keep] stores the key and these records in a folder, which several processes may share. [IDs.Share] uses keys
// that replicas share and renew.
//
// IDs are safe for concurrent use after Keep and Share. The records of ended sessions are bounded per hour and per
// caller: beyond the bound, no session of that hour is revived. [DeriveKey] returns keys for other seals.
package sessionid

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// IDs issues and opens session ids: it encrypts records into ids and decrypts them. Ids cannot be made or read without
// the key. At most 2^32 ids should be issued with one key.
type IDs struct {
	aead cipher.AEAD // of the only key; unused with a ring
	ring *ring       // nil = there is one key
	tombstones
}

// New returns IDs whose key is lost with the process.
func New() *IDs {
	var key [keyBytes]byte
	_, _ = rand.Read(key[:])   // never fails
	aead, _ := newAEAD(key[:]) // the key has the right length
	return &IDs{aead: aead}
}

// Keys are keys that replicas share and renew. Keys of different uses are unrelated; each has 32 bytes.
type Keys interface {
	// Newest returns the key to seal with for a use, and its id.
	Newest(use string) (id uint32, key []byte)
	// Key returns the key with an id for a use.
	Key(use string, id uint32) (key []byte, ok bool)
}

// Share seals and opens ids with keys alone, whose ids become part of the session ids. It must be called before all
// other methods, instead of Keep.
func (i *IDs) Share(keys Keys) { i.ring = &ring{keys: keys, known: map[uint32]cipher.AEAD{}} }

const (
	ringUse   = "session ids"
	knownKeys = 16 // ciphers kept
)

// ring has the ciphers of shared keys.
type ring struct {
	keys Keys

	mu    sync.Mutex
	known map[uint32]cipher.AEAD
}

// newest returns the cipher to seal with and the beginning of an id that it seals.
func (i *IDs) newest() (prefix []byte, aead cipher.AEAD) {
	prefix = make([]byte, 0, idBytes)
	if i.ring == nil {
		return prefix, i.aead
	}
	id, key := i.ring.keys.Newest(ringUse)
	aead, _ = newAEAD(key) // the key has the right length
	return binary.BigEndian.AppendUint32(prefix, id), aead
}

// cipherOf returns the cipher of a sealed id and the rest of the id; nil if its key is unknown.
func (i *IDs) cipherOf(sealed []byte) (aead cipher.AEAD, rest []byte) {
	if i.ring == nil {
		return i.aead, sealed
	}
	if len(sealed) < keyIDBytes {
		return nil, nil
	}
	return i.ring.cipher(binary.BigEndian.Uint32(sealed)), sealed[keyIDBytes:]
}

const keyIDBytes = 4

func (r *ring) cipher(id uint32) cipher.AEAD {
	r.mu.Lock()
	aead := r.known[id]
	r.mu.Unlock()
	if aead != nil {
		return aead
	}
	key, ok := r.keys.Key(ringUse, id) // it may ask other processes
	if !ok {
		return nil
	}
	aead, _ = newAEAD(key) // the key has the right length
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= knownKeys {
		clear(r.known)
	}
	r.known[id] = aead
	return aead
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
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
	i.aead, err = newAEAD(key)
	i.folder = ended
	return err
}

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

// DeriveKey returns a key for another use, derived from the key in a folder. It creates the folder and the key if
// necessary.
func DeriveKey(folder, use string) ([]byte, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	key, err := readOrMakeKey(folder)
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, key, nil, use, keyBytes)
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
