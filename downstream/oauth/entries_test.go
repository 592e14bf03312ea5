package oauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// replica opens a Store that shares its tokens in a State and is closed with the test.
func replica(t *testing.T, state shared.State) oauth.Store {
	t.Helper()
	m, err := shared.OpenMirror(t.Context(), state, oauth.SharedPrefixes()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return oauth.SharedStore(m)
}

// stale is a State of which a replica hears nothing new: its watch reports no changes, and its reads are old until a
// Put has failed.
type stale struct {
	*shared.Memory
	old    map[string]shared.Entry
	failed atomic.Bool
}

func (s *stale) Watch(ctx context.Context, prefix string, f func(shared.Entry)) error {
	begun := false
	return s.Memory.Watch(ctx, prefix, func(e shared.Entry) {
		if !begun {
			f(e)
		}
		begun = begun || e.Key == ""
	})
}

func (s *stale) Get(ctx context.Context, key string) (shared.Entry, error) {
	if e, ok := s.old[key]; ok && !s.failed.Load() {
		return e, nil
	}
	return s.Memory.Get(ctx, key)
}

func (s *stale) Put(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	stored, err := s.Memory.Put(ctx, key, value, revision, ttl)
	if err != nil && strings.HasPrefix(key, "token/") {
		s.failed.Store(true)
	}
	return stored, err
}

// Replicas renew a token once, however many requests wait for it at how many replicas.
func TestSharedStore_RenewsOnce(t *testing.T) {
	o := &mcptest.OAuth{}
	s, state := serve(t, o), shared.NewMemory()
	t.Cleanup(state.Close)
	stores := []oauth.Store{replica(t, state), replica(t, state), replica(t, state)}
	logIn(t, s, stores[0])
	var callers []*caller
	for _, store := range stores {
		mcptest.Eventually(t, "the login is seen", func() bool { token, err := store.Load("hr"); return token != nil && err == nil })
		callers = append(callers, open(t, s, store, io.Discard))
	}
	const rounds, calls = 5, 100
	for round := 1; round <= rounds; round++ {
		o.Forget(false) // the server refuses the access token
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				if err := callers[i%len(callers)].call(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := o.Count("refresh_token"); got != round || o.Count("reuse") != 0 {
			t.Fatalf("got %d renewals and %d refresh tokens used again, want %d and none", got, o.Count("reuse"), round)
		}
	}
}

// A replica whose copy and reads are old does not use a refresh token again.
func TestSharedStore_OldCopy(t *testing.T) {
	o := &mcptest.OAuth{}
	s, state := serve(t, o), shared.NewMemory()
	t.Cleanup(state.Close)
	store := replica(t, state)
	logIn(t, s, store)
	entry, err := state.Get(t.Context(), "token/hr")
	if err != nil {
		t.Fatal(err)
	}
	behind := open(t, s, replica(t, &stale{Memory: state, old: map[string]shared.Entry{"token/hr": entry}}), io.Discard)
	behind.must()
	o.Forget(false)
	open(t, s, store, io.Discard).must()
	behind.must()
	if got := o.Count("refresh_token"); got != 1 || o.Count("reuse") != 0 {
		t.Errorf("got %d renewals and %d refresh tokens used again, want one and none", got, o.Count("reuse"))
	}
}

// A login at one replica serves all, and so does logging out.
func TestSharedStore_LoginLogout(t *testing.T) {
	o := &mcptest.OAuth{}
	s, state := serve(t, o), shared.NewMemory()
	t.Cleanup(state.Close)
	one, other := replica(t, state), replica(t, state)
	c := open(t, s, other, io.Discard)
	c.refused("nobody is logged in")
	logIn(t, s, one)
	mcptest.Eventually(t, "the login is seen", c.source.Changed)
	c.must()
	if known, err := oauth.Logout(t.Context(), s, one); !known || err != nil {
		t.Fatalf("got %t, %v", known, err)
	}
	mcptest.Eventually(t, "the logout is seen", func() bool { token, err := other.Load("hr"); return token == nil && err == nil })
	mcptest.Eventually(t, "the token is dropped", func() bool { return c.call() != nil })
	c.refused("nobody is logged in")
	if known, err := oauth.Logout(t.Context(), s, other); known || err != nil {
		t.Errorf("got %t, %v, want that nobody is logged in", known, err)
	}
}

// A token that another version has stored is used and renewed.
func TestSharedStore_Versions(t *testing.T) {
	for name, edit := range map[string]func(token map[string]any){
		"newer": func(token map[string]any) {
			token["later"] = map[string]any{"list": []int{1}}
			token["client"].(map[string]any)["later"] = 1
		},
		"older": func(token map[string]any) {
			for _, field := range []string{"flow", "scopes", "began", "expires", "revocation_endpoint"} {
				delete(token, field)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := &mcptest.OAuth{}
			s, state := serve(t, o), shared.NewMemory()
			t.Cleanup(state.Close)
			logIn(t, s, replica(t, state))
			entry, err := state.Get(t.Context(), "token/hr")
			if err != nil {
				t.Fatal(err)
			}
			token := map[string]any{}
			if err := json.Unmarshal(entry.Value, &token); err != nil {
				t.Fatal(err)
			}
			edit(token)
			value, err := json.Marshal(token)
			if err == nil {
				_, err = state.Put(t.Context(), "token/hr", value, entry.Revision, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			c := open(t, s, replica(t, state), io.Discard)
			c.must()
			o.Forget(false)
			c.must()
			if o.Count("refresh_token") != 1 {
				t.Errorf("got %d renewals, want one", o.Count("refresh_token"))
			}
		})
	}
}

// unreachable is a State that stores nothing.
type unreachable struct {
	*shared.Memory
	lost atomic.Bool
}

func (u *unreachable) Put(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	if u.lost.Load() {
		return 0, shared.ErrUnreachable
	}
	return u.Memory.Put(ctx, key, value, revision, ttl)
}

// Without the shared state the last token goes on, and none is renewed or replaced.
func TestSharedStore_Unreachable(t *testing.T) {
	o := &mcptest.OAuth{}
	s, state := serve(t, o), &unreachable{Memory: shared.NewMemory()}
	t.Cleanup(state.Close)
	store := replica(t, state)
	token := logIn(t, s, store)
	c := open(t, s, store, io.Discard)
	state.lost.Store(true)
	c.must()
	if err := store.Save(t.Context(), token); !errors.Is(err, shared.ErrUnreachable) {
		t.Errorf("Save = %v, want an error", err)
	}
	o.Forget(false)
	if err := c.call(); !errors.Is(err, shared.ErrUnreachable) || o.Count("refresh_token") != 0 {
		t.Errorf("got %v and %d renewals, want an error that passes and none", err, o.Count("refresh_token"))
	}
	state.lost.Store(false)
	open(t, s, store, io.Discard).must()
}

// The lease of a replica that has died ends by itself; who waits for it says so.
func TestSharedStore_Lease(t *testing.T) {
	o := &mcptest.OAuth{}
	s, state := serve(t, o), shared.NewMemory()
	t.Cleanup(state.Close)
	store := replica(t, state)
	token := logIn(t, s, store)
	if _, err := state.Put(t.Context(), "renewing/hr", []byte{1}, 0, time.Second); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := store.Save(ctx, token); err == nil || !strings.Contains(err.Error(), "another replica replaces the token of server hr") {
		t.Errorf("Save = %v, want an error that says why", err)
	}
	save(t, store, token)
}
