package logins_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app/logins"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// mail is the only server that callers log in to.
type mail struct{ oauth.Server }

// LoginAt implements logins.Servers.
func (m mail) LoginAt(name, caller string) (oauth.Server, bool) {
	m.Caller = caller
	return m.Server, name == m.Name
}

// LoginEnded implements logins.Servers.
func (mail) LoginEnded(string, string, error) {}

// The response to a login serves until five minutes after the login has begun.
func TestPendingLoginExpires(t *testing.T) {
	o := &mcptest.OAuth{}
	t.Cleanup(mcptest.ServeOAuth(o, mcptest.Mailbox()))
	store, err := oauth.NewStore(t.TempDir()).Sealed([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	provider := &http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for after, want := range map[time.Duration]int{
		5*time.Minute - time.Second: http.StatusOK, 5*time.Minute + time.Second: http.StatusBadRequest,
	} {
		synctest.Test(t, func(t *testing.T) {
			log := slog.New(slog.DiscardHandler)
			keys, err := auth.New(auth.Config{APIKeys: []auth.KeyConfig{
				{Name: "ann", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte("ann's")))}}}, auth.Options{Logger: log})
			if err != nil {
				t.Fatal(err)
			}
			e := edge.New(edge.Options{Keys: keys})
			defer e.Stop(context.Background())
			mux := http.NewServeMux()
			logins.New(logins.Options{Keys: keys, Store: store, Edge: e, Logger: log,
				Servers: mail{oauth.Server{Name: "mail", URL: o.URL + "/mcp"}}}).Mount(mux, e.Guard)
			serve := func(method, target, body string, cookies ...*http.Cookie) *http.Response {
				r := httptest.NewRequest(method, "http://127.0.0.1"+target, strings.NewReader(body))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				for _, c := range cookies {
					r.AddCookie(c)
				}
				w := httptest.NewRecorder()
				mux.ServeHTTP(w, r)
				return w.Result()
			}
			begun := serve(http.MethodPost, "/login/mail", "key=ann%27s")
			if begun.StatusCode != http.StatusSeeOther {
				t.Fatalf("got status %d, want a redirect", begun.StatusCode)
			}
			agreed, err := provider.Get(begun.Header.Get("Location"))
			if err != nil {
				t.Fatal(err)
			}
			agreed.Body.Close()
			back, err := agreed.Location()
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(after)
			ended := serve(http.MethodGet, back.RequestURI(), "", begun.Cookies()...)
			if ended.StatusCode != want {
				t.Errorf("after %v: got status %d, want %d", after, ended.StatusCode, want)
			}
		})
	}
}
