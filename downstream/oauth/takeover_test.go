package oauth_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// full is a State that takes no tokens for a while.
type full struct {
	*shared.Memory
	is atomic.Bool
}

func (s *full) Put(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	if s.is.Load() && strings.HasPrefix(key, "token/") {
		return 0, shared.ErrFull
	}
	return s.Memory.Put(ctx, key, value, revision, ttl)
}

// A token moves from a folder to the replicas once. Until it is there it stays, and then nobody else has it.
func TestTakeOver(t *testing.T) {
	o := &mcptest.OAuth{}
	s, state := serve(t, o), &full{Memory: shared.NewMemory()}
	t.Cleanup(state.Close)
	folder, copied, to := oauth.NewStore(t.TempDir()), oauth.NewStore(t.TempDir()), replica(t, state)
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

	state.is.Store(true)
	if err := take(folder); !errors.Is(err, shared.ErrFull) || gone(folder) || !gone(to) {
		t.Errorf("a full state: got %v, want that the token stays in the folder", err)
	}
	state.is.Store(false)
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
	if err := take(folder); err != nil || !gone(to) || len(l.Lines("login")) != 2 {
		t.Errorf("after a logout: got %v and the log %q, want no token and two lines", err, l)
	}
}
