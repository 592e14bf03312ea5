package shared

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// ErrUnreadable is the error of Get for a value that was not sealed for its key by a replica of the cluster.
var ErrUnreadable = errors.New("the value was not stored by this cluster")

// Sealed returns a State that keeps its values in state, encrypted and authenticated. Each entry has its own key,
// derived from the first key of the ring, because an entry may stay for ever. A value opens only under the key that it
// was stored with. It can be 32 bytes shorter than a value of state. Get returns ErrUnreadable, with the revision, for
// a value that does not open; watches report it as deleted.
func Sealed(state State, ring *Ring) State { return &sealedState{state, ring} }

type sealedState struct {
	State
	ring *Ring
}

// use names the key that is derived for an entry.
func use(key string) string { return "state " + key }

// Get implements State.
func (s *sealedState) Get(ctx context.Context, key string) (Entry, error) {
	e, err := s.State.Get(ctx, key)
	if err != nil || e.Revision == 0 {
		return e, err
	}
	if e = s.open(e); e.Value == nil {
		err = fmt.Errorf("%s: %w", key, ErrUnreadable)
	}
	return e, err
}

// Put implements State.
func (s *sealedState) Put(
	ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration,
) (uint64, error) {
	if err := Check(key, value); err != nil {
		return 0, err
	}
	id, secret := s.ring.First(use(key))
	sealed := seal(newAEAD(secret), binary.BigEndian.AppendUint32(nil, id), value, key)
	return s.State.Put(ctx, key, sealed, revision, ttl)
}

// Watch implements State.
func (s *sealedState) Watch(ctx context.Context, prefix string, f func(Entry)) error {
	return s.State.Watch(ctx, prefix, func(e Entry) {
		if e.Value != nil {
			e = s.open(e)
		}
		f(e)
	})
}

// open decrypts the value of an entry. It sets nil if that fails.
func (s *sealedState) open(e Entry) Entry {
	sealed := e.Value
	e.Value = nil
	if len(sealed) < 4 {
		return e
	}
	secret, known := s.ring.Key(use(e.Key), binary.BigEndian.Uint32(sealed))
	if !known {
		return e
	}
	if value, opened := open(newAEAD(secret), sealed[4:], e.Key); opened && len(value) > 0 {
		e.Value = value
	}
	return e
}

// newAEAD returns AES-256-GCM with a key of keyBytes.
func newAEAD(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // only for other lengths
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // only for other block sizes
	}
	return aead
}

// seal appends a nonce and the sealed value of a key to prefix.
func seal(aead cipher.AEAD, prefix, value []byte, key string) []byte {
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return aead.Seal(append(prefix, nonce...), nonce, value, []byte(key))
}

// open returns the value of a key from what seal appended.
func open(aead cipher.AEAD, sealed []byte, key string) ([]byte, bool) {
	if len(sealed) < aead.NonceSize() {
		return nil, false
	}
	value, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], []byte(key))
	return value, err == nil
}
