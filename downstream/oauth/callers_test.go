package oauth_test

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// The token of a caller is of that caller alone, also if files are copied, and readable with the same secret alone.
func TestStore_For(t *testing.T) {
	s, state := serve(t, &mcptest.OAuth{}), t.TempDir()
	s.Config.Scope, s.Caller = oauth.ScopePerCaller, "ann"
	sealed := func(secret string) oauth.Store {
		store, err := oauth.NewStore(state).Sealed([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	store := sealed("secret")
	token := logIn(t, s, store.For("ann"))
	if got, err := store.For("ann").Load("hr"); err != nil || got == nil || got.Access != token.Access {
		t.Errorf("got %v, %v, want the token", got, err)
	}
	for name, other := range map[string]oauth.Store{"another caller": store.For("bob"), "no caller": store, "no secret": oauth.NewStore(state).For("ann")} {
		if got, err := other.Load("hr"); got != nil || err != nil {
			t.Errorf("%s: got %v, %v, want nothing", name, got, err)
		}
	}
	if err := oauth.NewStore(state).For("ann").Save(t.Context(), token); err == nil {
		t.Error("got no error without a secret, want that nothing is stored")
	}
	file := func(name string) string { return filepath.Join(state, "tokens", "callers", name) }
	text, err := os.ReadFile(file("hr.ann.json"))
	if err != nil || strings.Contains(string(text), token.Access) {
		t.Fatalf("got %q, %v, want a sealed token", text, err)
	}
	for _, name := range []string{"hr.bob.json", "mail.ann.json"} {
		if err := os.WriteFile(file(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, load := range map[string]func() (*oauth.Token, error){
		"a copy for another caller": func() (*oauth.Token, error) { return store.For("bob").Load("hr") },
		"a copy for another server": func() (*oauth.Token, error) { return store.For("ann").Load("mail") },
		"another secret":            func() (*oauth.Token, error) { return sealed("other").For("ann").Load("hr") },
	} {
		if got, err := load(); got != nil || err == nil || !strings.Contains(err.Error(), "log in again") {
			t.Errorf("%s: got %v, %v, want that it cannot be read", name, got, err)
		}
	}
	if known, err := oauth.Logout(t.Context(), s, store.For("ann")); !known || err != nil {
		t.Errorf("got %t, %v, want that the token is deleted", known, err)
	}
	if _, err := os.Stat(file("hr.ann.json")); !os.IsNotExist(err) {
		t.Errorf("got %v, want no file", err)
	}
}

// A Source that ends after its successor has begun does not take away that one's secrets.
func TestSource_Close(t *testing.T) {
	s, state := serve(t, &mcptest.OAuth{}), t.TempDir()
	s.Config.Scope, s.Caller = oauth.ScopePerCaller, "ann"
	store, err := oauth.NewStore(state).Sealed([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	token, mask := logIn(t, s, store.For("ann")), redact.NewMasker(nil)
	use := func() *oauth.Source {
		source := oauth.NewSource(s, store.For("ann"), mask, slog.New(slog.DiscardHandler))
		client := http.Client{Transport: source.Transport(http.DefaultTransport)}
		resp, err := client.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return source
	}
	former, latter := use(), use()
	former.Close()
	if got := mask.Known(token.Access); got == token.Access {
		t.Error("got the token, want it masked")
	}
	latter.Close()
	if got := mask.Known(token.Access); got != token.Access {
		t.Errorf("got %s, want that the token is forgotten", got)
	}
}

// A replica hears of logins and logouts of callers at another one, and not of renewals, other tokens and copies.
func TestStore_NewLogin(t *testing.T) {
	o := &mcptest.OAuth{}
	s, state := serve(t, o), shared.NewMemory()
	t.Cleanup(state.Close)
	s.Config.Scope, s.Caller = oauth.ScopePerCaller, "ann"
	sealed := func(store oauth.Store) oauth.Store {
		store, err := store.Sealed([]byte("secret"))
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	common, err := shared.OpenMirror(t.Context(), state, oauth.SharedPrefixes()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(common.Close)
	heard := make(chan string, 10)
	here, there := sealed(oauth.SharedStore(common)), sealed(replica(t, state))
	common.Follow(func(before, now shared.Entry) {
		if server, caller, changed := here.NewLogin(before, now); changed {
			heard <- server + " of " + caller
		}
	})
	want := func(what, caller string) {
		t.Helper()
		select {
		case got := <-heard:
			if got != "hr of "+caller {
				t.Errorf("%s: heard %s, want hr of %s", what, got, caller)
			}
		case <-time.After(mcptest.Patience):
			t.Fatalf("%s: heard nothing, want hr of %s", what, caller)
		}
	}
	token := logIn(t, s, there.For("ann"))
	want("a login", "ann")
	if got := here.Callers("hr"); !slices.Equal(got, []string{"ann"}) {
		t.Errorf("got the callers %v, want ann", got)
	}
	o.Forget(false)
	open(t, s, there.For("ann"), io.Discard).must()
	if err := there.Save(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	copied := common.Entry("token/hr/ann").Value
	if _, err := state.Put(t.Context(), "token/hr/bob", copied, 0, 0); err != nil {
		t.Fatal(err)
	}
	logIn(t, s, there.For("cid"))
	want("a renewal, a token of all, a copied entry, and a login", "cid")
	logIn(t, s, there.For("ann"))
	want("another login", "ann")
	if known, err := oauth.Logout(t.Context(), s, there.For("ann")); !known || err != nil {
		t.Fatalf("got %t, %v, want that the token is deleted", known, err)
	}
	want("a logout", "ann")
}
