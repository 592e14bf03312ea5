package oauth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// Store keeps tokens: in a folder, one file each, or in entries that replicas share. Who shares tokens renews each of
// them one at a time. The zero Store keeps nothing.
type Store struct {
	keeper keeper
	aead   cipher.AEAD // seals the tokens of callers; nil = none are kept
}

// keeper keeps the tokens of servers as text.
type keeper interface {
	// read returns the text for a server, without waiting for a network; nil if there is none.
	read(server string) ([]byte, error)
	// write and remove replace the text. The caller holds the lock.
	write(ctx context.Context, server string, text []byte) error
	remove(ctx context.Context, server string) error
	// lock makes others wait that renew or replace the same token, and read return the present text. The lock may be lost
	// when held ends; unlock ends held.
	lock(ctx context.Context, server string) (held context.Context, unlock func(), err error)
	// look returns a version that changes with the text.
	look(server string) version
	// where names the place of a text.
	where(server string) string
	// ofCallers returns what keeps the texts of callers, under the name of the server, a separator and the caller.
	ofCallers() (k keeper, separator string)
	// names returns the names of the texts that begin with a prefix.
	names(prefix string) []string
}

// version is the version of a text that is kept; at most one member is set.
type version struct {
	file os.FileInfo
	text string
}

// same reports whether two versions have the same text.
func (v version) same(other version) bool {
	if v.file == nil || other.file == nil {
		return v.file == nil && other.file == nil && v.text == other.text
	}
	return os.SameFile(v.file, other.file) && v.file.ModTime().Equal(other.file.ModTime()) &&
		v.file.Size() == other.file.Size()
}

// NewStore returns the store in a state folder, which need not exist. With "" it keeps nothing.
func NewStore(state string) Store {
	if state == "" {
		return Store{}
	}
	return Store{keeper: folder(filepath.Join(state, "tokens"))}
}

// Sealed returns the store with a secret that the key to seal the tokens of callers is derived from.
func (st Store) Sealed(secret []byte) (Store, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "tokens of callers", 32) // AES-256
	if err != nil {
		return st, err
	}
	block, err := aes.NewCipher(key)
	if err == nil {
		st.aead, err = cipher.NewGCM(block)
	}
	return st, err
}

// For returns the store of the tokens of one caller, st itself for "". A store keeps them if it is Sealed.
func (st Store) For(caller string) Store {
	switch {
	case caller == "":
		return st
	case !st.keeps() || st.aead == nil:
		return Store{}
	}
	k, separator := st.keeper.ofCallers()
	return Store{keeper: ofCaller{k, separator + caller, st.aead}}
}

// Callers returns those whose tokens of a server are kept, for For.
func (st Store) Callers(server string) (callers []string) {
	if !st.keeps() {
		return nil
	}
	k, separator := st.keeper.ofCallers()
	for _, name := range k.names(server + separator) {
		callers = append(callers, strings.TrimPrefix(name, server+separator))
	}
	return callers
}

// SharedStore returns the store in entries that replicas share. The Mirror covers SharedPrefixes.
func SharedStore(m *shared.Mirror) Store { return Store{keeper: entries{m}} }

// Load returns the token of a server. It is nil if there is none.
func (st Store) Load(server string) (*Token, error) {
	if !st.keeps() {
		return nil, nil
	}
	text, err := st.keeper.read(server)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the token of server %s: %w", server, err)
	case text == nil:
		return nil, nil
	}
	t := &Token{}
	if json.Unmarshal(text, t) != nil || t.Access != "" && t.Issuer == "" { // the error may quote the token
		return nil, fmt.Errorf("the token of server %s in %s is invalid; log in again", server, st.keeper.where(server))
	}
	if t.Server != server || t.Access == "" {
		return nil, nil // another spelling on a case-insensitive file system
	}
	return t, nil
}

// Save stores a token, replacing the existing one.
func (st Store) Save(ctx context.Context, t *Token) error {
	held, unlock, err := st.lock(ctx, t.Server)
	if err != nil {
		return err
	}
	defer unlock()
	return st.write(held, t)
}

func (st Store) write(ctx context.Context, t *Token) error {
	if !st.keeps() {
		return errors.New("there is no state folder to keep the token in; set state")
	}
	text, err := json.MarshalIndent(t, "", "  ")
	if err == nil {
		err = st.keeper.write(ctx, t.Server, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("storing the token of server %s: %w", t.Server, err)
	}
	return nil
}

func (st Store) keeps() bool { return st.keeper != nil }

func (st Store) lock(ctx context.Context, server string) (held context.Context, unlock func(), err error) {
	if !st.keeps() {
		return ctx, func() {}, nil
	}
	return st.keeper.lock(ctx, server)
}

func (st Store) look(server string) version {
	if !st.keeps() {
		return version{}
	}
	return st.keeper.look(server)
}
