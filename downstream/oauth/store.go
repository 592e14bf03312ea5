package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agenticnexus/agenticnexus/internal/atomicfile"
)

// maxFile limits the bytes read from a file.
const maxFile = 1 << 20

// Store keeps tokens in a folder, one file each. Files are replaced atomically, and processes that share the folder
// renew a token one at a time. The zero Store keeps nothing.
type Store struct{ folder string }

// NewStore returns the store in a state folder, which need not exist. With "" it keeps nothing.
func NewStore(state string) Store {
	if state == "" {
		return Store{}
	}
	return Store{filepath.Join(state, "tokens")}
}

func (st Store) name(server string) string { return filepath.Join(st.folder, server+".json") }

// Load returns the token of a server. It is nil if there is none.
func (st Store) Load(server string) (*Token, error) {
	if st.folder == "" {
		return nil, nil
	}
	name := st.name(server)
	text, err := atomicfile.Read(name, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the token of server %s: %w", server, err)
	}
	t := &Token{}
	if json.Unmarshal(text, t) != nil || t.Access != "" && t.Issuer == "" { // the error may quote the token
		return nil, fmt.Errorf("the token of server %s in %s is invalid; log in again", server, name)
	}
	if t.Server != server || t.Access == "" {
		return nil, nil // another spelling on a case-insensitive file system
	}
	return t, nil
}

// Save stores a token, replacing the existing one.
func (st Store) Save(ctx context.Context, t *Token) error {
	unlock, err := st.lock(ctx, t.Server)
	if err != nil {
		return err
	}
	defer unlock()
	return st.write(t)
}

func (st Store) write(t *Token) error {
	if st.folder == "" {
		return errors.New("there is no state folder to keep the token in; set state")
	}
	text, err := json.MarshalIndent(t, "", "  ")
	if err == nil {
		err = atomicfile.Write(st.name(t.Server), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("storing the token of server %s: %w", t.Server, err)
	}
	return nil
}

func (st Store) delete(server string) error {
	if err := os.Remove(st.name(server)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lock makes other processes wait that renew or replace the same token.
func (st Store) lock(ctx context.Context, server string) (unlock func(), err error) {
	if st.folder == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(st.folder, 0o700); err != nil {
		return nil, err
	}
	return atomicfile.Lock(ctx, st.name(server)+".lock")
}

// look returns file information that changes with the file's content; nil if there is no file.
func (st Store) look(server string) os.FileInfo {
	if st.folder == "" {
		return nil
	}
	info, err := os.Stat(st.name(server))
	if err != nil {
		return nil
	}
	return info
}

// same reports whether two calls of look saw the same content.
func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
