package shared

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/lru"
)

const (
	ringKey    = "keys"
	keyBytes   = 32             // AES-256, HMAC-SHA256
	rotation   = 24 * time.Hour // age at which the newest key gets a successor
	kept       = 49 * time.Hour // after the successor: what was sealed in its first day lives 24 h, and an hour of grace
	settling   = time.Minute    // age of a key to seal with: the others have read it
	rereading  = 20 * time.Second
	rereadGap  = time.Second // between readings for unknown ids
	maxAttempt = 10          // of a compare-and-set
	maxDerived = 64          // derived keys that are remembered
)

// Ring is the keys that the replicas of a cluster share, in the entry "keys" of a State. A new key is added each day;
// old ones stay as long as a session that was sealed with them lives. The first key stays, for what has no end (First),
// and serves nothing else after that time. Create it with OpenRing and run Run. It is safe for concurrent use.
type Ring struct {
	state   State
	wrap    cipher.AEAD // seals the entry; nil = it is stored as it is
	derived *lru.Cache[derivation, []byte]

	mu       sync.Mutex
	keys     []sharedKey // the newest first, never empty
	revision uint64
	now      time.Time // by the store's clock, at read
	read     time.Time // by this process's clock
	reread   time.Time // for an unknown id
}

// derivation is a key and the use for which another is derived from it.
type derivation struct {
	key [keyBytes]byte
	use string
}

// sharedKey is a key of the ring as it is stored.
type sharedKey struct {
	ID      uint32    `json:"id"`
	Key     []byte    `json:"key"`
	Created time.Time `json:"created,omitzero"` // by the store's clock; zero = when the entry was stored
}

// OpenRing reads the ring of a State, or stores a first one. clusterKey is 32 bytes in base64 or hex, usually from
// NEXUS_CLUSTER_KEY, with which the ring is sealed; "" leaves it as it is.
func OpenRing(ctx context.Context, state State, clusterKey string) (*Ring, error) {
	r := &Ring{state: state, derived: lru.New[derivation, []byte](maxDerived, maxDerived)}
	if clusterKey != "" {
		key, err := decodeKey(clusterKey)
		if err != nil {
			return nil, err
		}
		r.wrap = newAEAD(derive(key, "ring"))
	}
	return r, r.refresh(ctx)
}

// Run reads the ring three times a minute, adds a key each day and drops old ones, until ctx ends.
func (r *Ring) Run(ctx context.Context, log *slog.Logger) {
	ticks := time.NewTicker(rereading)
	defer ticks.Stop()
	failed := false
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		err := r.refresh(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			log.Warn("cannot read the cluster's keys; those at hand stay in use", "error", err)
		}
		failed = err != nil
	}
}

// Newest returns the key to seal with for a use, and its id. Keys of different uses are unrelated. Callers do not
// change the keys that a Ring returns.
func (r *Ring) Newest(use string) (uint32, []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keys[r.newest()]
	return k.ID, r.derive(k, use)
}

// Keys returns the keys for a use whose results live for at most a day: the one to seal with, then those that were so
// within that time.
func (r *Ring) Keys(use string) [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest := r.newest()
	keys := [][]byte{r.derive(r.keys[newest], use)}
	for i, k := range r.keys {
		if i != newest && r.serves(i) {
			keys = append(keys, r.derive(k, use))
		}
	}
	return keys
}

// newest returns the index of the key to seal with: one that the others have read. r.mu is held.
func (r *Ring) newest() int {
	now := r.time()
	if i := slices.IndexFunc(r.keys, func(k sharedKey) bool { return now.Sub(k.Created) >= settling }); i >= 0 {
		return i
	}
	return len(r.keys) - 1
}

// serves reports whether what was sealed with a key may still live. r.mu is held.
func (r *Ring) serves(i int) bool { return i == 0 || r.time().Sub(r.keys[i-1].Created) <= kept }

// Now returns the time by the store's clock, as it was read last.
func (r *Ring) Now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read.IsZero() { // every reading so far was old
		return time.Now()
	}
	return r.time()
}

// time is Now, or a time long ago if the clock was not read. r.mu is held.
func (r *Ring) time() time.Time { return r.now.Add(time.Since(r.read)) }

// First returns the key that stays, for a use, and its id.
func (r *Ring) First(use string) (uint32, []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keys[len(r.keys)-1]
	return k.ID, r.derive(k, use)
}

// Key returns the key with an id for a use. It reads the ring anew, at most once a second, if the id is unknown.
func (r *Ring) Key(use string, id uint32) ([]byte, bool) {
	key, known, reread := r.find(use, id)
	if reread {
		_ = r.load(context.Background()) // the State bounds the time
		key, known, _ = r.find(use, id)
	}
	return key, known
}

// find returns the key with an id, and whether to read the ring because it is not there.
func (r *Ring) find(use string, id uint32) (key []byte, known, reread bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.keys {
		if k.ID == id {
			return r.derive(k, use), true, false
		}
	}
	if reread = time.Since(r.reread) >= rereadGap; reread {
		r.reread = time.Now()
	}
	return nil, false, reread
}

// refresh reads the store's clock and the ring, and stores the ring if it lacks a key: the first one, that of the day,
// or all, if the store has lost them.
func (r *Ring) refresh(ctx context.Context) error {
	if err := r.readClock(ctx); err != nil {
		return err
	}
	for range maxAttempt {
		if err := r.load(ctx); err != nil {
			return err
		}
		keys, revision := r.due()
		if keys == nil {
			return nil
		}
		value, err := r.encode(keys)
		if err != nil {
			return err
		}
		if _, err = r.state.Put(ctx, ringKey, value, revision, 0); err != nil && !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("the cluster's keys: %w", ErrConflict)
}

// readClock sets the time of the store, which is that of an entry stored now.
func (r *Ring) readClock(ctx context.Context) error {
	key := "clock/" + rand.Text()
	if _, err := r.state.Put(ctx, key, []byte{'.'}, 0, time.Second); err != nil {
		return err
	}
	sent := time.Now()
	e, err := r.state.Get(ctx, key)
	if err != nil || e.Revision == 0 { // a reading may be old
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now, r.read = e.Created, sent
	return nil
}

// load replaces the ring by the stored one, if there is one.
func (r *Ring) load(ctx context.Context) error {
	e, err := r.state.Get(ctx, ringKey)
	if err != nil {
		return err
	}
	var keys []sharedKey
	if e.Revision != 0 {
		if keys, err = r.decode(e); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.revision = e.Revision; keys != nil {
		r.keys = keys
	}
	return nil
}

// due returns the ring to store instead of the one at a revision; nil = it is as it should be.
func (r *Ring) due() ([]sharedKey, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.time()
	if len(r.keys) > 0 && now.Sub(r.keys[0].Created) < rotation {
		if r.revision == 0 { // lost by the store
			return r.keys, 0
		}
		return nil, 0
	}
	fresh := make([]byte, keyBytes+4)
	_, _ = rand.Read(fresh) // never fails
	keys := []sharedKey{{ID: binary.BigEndian.Uint32(fresh[keyBytes:]), Key: fresh[:keyBytes]}}
	for i, k := range r.keys {
		if i == len(r.keys)-1 || r.serves(i) {
			keys = append(keys, k)
		}
	}
	return keys, r.revision
}

// sealedRing begins an entry that is sealed with the cluster's key; JSON begins otherwise.
const sealedRing = 1

func (r *Ring) encode(keys []sharedKey) ([]byte, error) {
	value, err := json.Marshal(keys)
	if err != nil || r.wrap == nil {
		return value, err
	}
	return seal(r.wrap, []byte{sealedRing}, value, ringKey), nil
}

func (r *Ring) decode(e Entry) ([]sharedKey, error) {
	value, sealed := bytes.CutPrefix(e.Value, []byte{sealedRing})
	switch {
	case sealed && r.wrap == nil:
		return nil, errors.New("the cluster's keys are sealed: set NEXUS_CLUSTER_KEY to that of the other replicas")
	case !sealed && r.wrap != nil:
		return nil, errors.New("the cluster's keys are not sealed, because other replicas run without NEXUS_CLUSTER_KEY: " +
			"remove it here, or stop all replicas, delete the bucket and set it for all")
	case sealed:
		var opened bool
		if value, opened = open(r.wrap, value, ringKey); !opened {
			return nil, errors.New("the cluster's keys are sealed with another NEXUS_CLUSTER_KEY: set that of the other replicas")
		}
	}
	var keys []sharedKey
	err := json.Unmarshal(value, &keys)
	for i := range keys {
		if len(keys[i].Key) != keyBytes {
			err = fmt.Errorf("key %d has %d bytes", keys[i].ID, len(keys[i].Key))
		}
		if keys[i].Created.IsZero() {
			keys[i].Created = e.Created
		}
	}
	if err == nil && len(keys) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("the entry %q of the shared state is not a ring of keys: %w", ringKey, err)
	}
	return keys, nil
}

// CheckKey returns an error for a text that is no cluster key.
func CheckKey(text string) error {
	_, err := decodeKey(text)
	return err
}

func decodeKey(text string) ([]byte, error) {
	key, err := hex.DecodeString(text)
	if err != nil {
		key, err = base64.StdEncoding.DecodeString(text)
	}
	if err != nil || len(key) != keyBytes {
		return nil, fmt.Errorf("NEXUS_CLUSTER_KEY is not %d bytes in base64 or hex; openssl rand -hex %[1]d makes one", keyBytes)
	}
	return key, nil
}

// derive returns what is derived from a key of the ring for a use.
func (r *Ring) derive(k sharedKey, use string) []byte {
	of := derivation{[keyBytes]byte(k.Key), use}
	derived, known := r.derived.Get(of)
	if !known {
		derived = derive(k.Key, use)
		r.derived.Put(of, derived, 1)
	}
	return derived
}

// derive returns the key for a use.
func derive(key []byte, use string) []byte {
	derived, err := hkdf.Key(sha256.New, key, nil, use, keyBytes)
	if err != nil {
		panic(err) // only for longer keys
	}
	return derived
}
