package oauth_test

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// A token moves from a folder to the replicas once. Until it is there it stays, and then nobody else has it.
func TestTakeOver(t *testing.T) {
	o := &mcptest.OAuth{}
	s, state := serve(t, o), &unreachable{Memory: shared.NewMemory()}
	t.Cleanup(state.Close)
	path := t.TempDir()
	folder, copied, to := oauth.NewStore(path), oauth.NewStore(t.TempDir()), replica(t, state)
	token := logIn(t, s, folder)
	if err := copied.Save(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	l := &mcptest.Log{}
	take := func(from oauth.Store) error {
		return oauth.TakeOver(t.Context(), from, to, s.Name, slog.New(slog.NewTextHandler(l, nil)))
	}
	gone := func(from oauth.Store) bool {
		t.Helper()
		token, err := from.Load(s.Name)
		if err != nil {
			t.Error(err)
		}
		return token == nil
	}

	state.lost.Store(true)
	if err := take(folder); !errors.Is(err, shared.ErrUnreachable) || gone(folder) || !gone(to) {
		t.Errorf("an unreachable state: got %v, want that the token stays in the folder", err)
	}
	state.lost.Store(false)
	lock := filepath.Join(path, "tokens", s.Name+".json.lock")
	for _, err := range []error{os.Remove(lock), os.Mkdir(lock, 0o700)} { // as unusable as in a read-only folder
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := take(folder); err != nil || gone(folder) || !gone(to) || len(l.Lines("stays in the state folder")) != 1 {
		t.Errorf("a folder without locks: got %v and the log %q, want that the token stays", err, l)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if err := take(folder); err != nil || !gone(folder) || !l.Has("takes over the login") {
		t.Errorf("got %v and the log %q, want that the token moves", err, l)
	}
	o.Forget(false)
	open(t, s, to, io.Discard).must()
	if err := take(copied); err != nil || !gone(copied) || !l.Has("is deleted") {
		t.Errorf("a copy of the folder: got %v and the log %q, want that it loses its token", err, l)
	}
	o.Forget(false)
	open(t, s, to, io.Discard).must()
	if o.Count("refresh_token") != 2 || o.Count("reuse") != 0 {
		t.Errorf("got %d renewals and %d refresh tokens used again, want 2 and none", o.Count("refresh_token"), o.Count("reuse"))
	}
	if _, err := oauth.Logout(t.Context(), s, to); err != nil {
		t.Fatal(err)
	}
	if err := take(folder); err != nil || !gone(to) || len(l.Lines("login")) != 3 {
		t.Errorf("after a logout: got %v and the log %q, want no token and no further line", err, l)
	}
}
