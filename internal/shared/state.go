// Package shared holds what the replicas of a router share.
//
// A [State] is a set of small entries with compare-and-set, expiry and watches. [Memory] keeps it in this process,
// package jetstream in a bucket of NATS JetStream.
package shared

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Entry is a value in a State.
type Entry struct {
	Key      string
	Value    []byte    // nil = deleted or expired
	Revision uint64    // grows with each Put; 0 = the entry does not exist
	Created  time.Time // when the value was stored, by the clock of the store
}

// State is a set of entries that replicas share. Keys are parts of [A-Za-z0-9_-] joined by "/", at most maxKey bytes
// long. Values have 1 to maxValue bytes and must not be changed after they are passed. A read may be old: decide by
// Put and Delete. States are safe for concurrent use.
type State interface {
	// Get returns the entry of a key. Its revision is 0 if there is none.
	Get(ctx context.Context, key string) (Entry, error)
	// Put stores a value if the entry has the revision; 0 stores it if there is no entry. The entry expires after ttl,
	// a multiple of a second; 0 keeps it. The error is ErrConflict if another revision is stored, and ErrFull
	// if there is no room. After ErrUnreachable or the end of ctx the value may be stored, or be stored later.
	Put(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error)
	// Delete removes an entry if it has the revision. The errors are those of Put.
	Delete(ctx context.Context, key string, revision uint64) error
	// Watch calls f with the entries whose keys begin with prefix, then with the zero Entry, and then with each change,
	// also expiries, until ctx ends. Changes of one key arrive in order; some may be left out if later ones follow.
	// After a lost connection it goes on with what has changed, and if the store has lost entries, with their removal.
	// A store may send the entries of the last folder in prefix, and all entries if there is no "/" in it.
	Watch(ctx context.Context, prefix string, f func(Entry)) error
	// Connected reports whether the store can be reached.
	Connected() bool
}

// Errors of a State.
var (
	ErrConflict    = errors.New("the entry has changed")
	ErrUnreachable = errors.New("the shared state cannot be reached")
	ErrFull        = errors.New("the shared state is full")
)

const (
	maxKey   = 256
	maxValue = 256 << 10
)

var validKey = regexp.MustCompile(`^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$`)

// Check returns an error for a key or value that no State stores.
func Check(key string, value []byte) error {
	switch {
	case len(key) > maxKey || !validKey.MatchString(key):
		return fmt.Errorf("%q is not a key of the shared state", key)
	case len(value) == 0 || len(value) > maxValue:
		return fmt.Errorf("the value of %s has %d bytes; 1 to %d can be shared", key, len(value), maxValue)
	}
	return nil
}
