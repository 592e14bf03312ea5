package oauth_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// Scopes that the server asks for later are requested once, without a person if the authorization server agrees. Else
// the command that gets them is named. Whatever is answered, the number of requests is bounded.
func TestSource_MissingScopes(t *testing.T) {
	all := func(scopes string) string { return scopes }
	robot := oauth.Config{ClientID: "robot", ClientSecret: "right", Flow: oauth.FlowClientCredentials}
	for name, c := range map[string]struct {
		needs  string
		widens func(string) string
		config oauth.Config
		want   string // of the refusal; "" = it works
		asks   int    // token requests because of it
		still  string // scopes for which calls go on
	}{
		"granted": {"read admin", all, oauth.Config{}, "", 1, ""},
		"refused": {"admin", nil, oauth.Config{}, "lacks one of the scopes admin; run: nexus auth login hr --scope admin", 1, ""},
		"granted in part": {
			"read admin", func(scopes string) string { return strings.ReplaceAll(scopes, "admin", "") }, oauth.Config{},
			"run: nexus auth login hr --scope read --scope admin", 1, "read write",
		},
		"not of the token":    {"read", all, oauth.Config{}, "", 0, ""},
		"for quotes":          {"$(reboot)", nil, oauth.Config{}, "one of the scopes $(reboot); add the missing scopes to auth.scopes in its configuration; run: nexus auth login hr", 1, ""},
		"of an option":        {"--yes", nil, oauth.Config{}, "add the missing scopes to auth.scopes", 1, ""},
		"client credentials":  {"admin", nil, robot, "", 1, ""},
		"too many for a room": {manyScopes, all, oauth.Config{}, "…; add the missing scopes to auth.scopes", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &mcptest.OAuth{Clients: map[string]string{"robot": "right"}, Widens: c.widens}
			s, store := serve(t, o), oauth.NewStore(t.TempDir())
			s.Config = c.config
			logIn(t, s, store)
			before := len(o.Forms())
			caller := open(t, s, store, io.Discard)
			caller.must()
			o.Needs = func(*http.Request) string { return c.needs }
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() {
					if err := caller.call(); (err == nil) != (c.want == "") {
						t.Errorf("got %v, want %q", err, c.want)
					}
				})
			}
			wg.Wait()
			if c.want == "" {
				caller.must()
			} else {
				caller.refused(c.want)
			}
			if got := len(o.Forms()) - before; got != c.asks {
				t.Errorf("got %d token requests, want %d", got, c.asks)
			}
			o.Needs = func(*http.Request) string { return c.still }
			caller.must()
		})
	}
}

// manyScopes are more than the router asks for at once.
var manyScopes = func() (all string) {
	for i := range 150 {
		all += " s" + string(rune('a'+i/26)) + string(rune('a'+i%26))
	}
	return all
}()

// A server that wants scopes that the token has does not send people to log in again.
func TestSource_NeverContent(t *testing.T) {
	o := &mcptest.OAuth{}
	s, store := serve(t, o), oauth.NewStore(t.TempDir())
	logIn(t, s, store)
	caller := open(t, s, store, io.Discard)
	for scopes, want := range map[string]string{"read": "the scopes read, which its token has", "": "the server does not say which"} {
		caller.http = caller.source.Transport(lacking(scopes))
		caller.refused(want)
	}
	if got := o.Count("refresh_token"); got != 0 {
		t.Errorf("got %d renewals, want none", got)
	}
}

// lacking answers 403 for lack of scopes.
type lacking string

func (l lacking) RoundTrip(req *http.Request) (*http.Response, error) {
	req.Body.Close()
	header := http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="` + string(l) + `"`}}
	return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Header: header, Request: req}, nil
}

// A login keeps the scopes of the login before, and asks for those that it is told.
func TestLogin_AddsScopes(t *testing.T) {
	o := &mcptest.OAuth{Needs: func(*http.Request) string { return "read admin" }}
	s, store := serve(t, o), oauth.NewStore(t.TempDir())
	logIn(t, s, store)
	caller := open(t, s, store, io.Discard)
	caller.refused("run: nexus auth login hr --scope read --scope admin")
	told := s
	told.Scopes = []string{"admin"}
	o.Challenge = `Bearer scope="other"`
	if token := logIn(t, told, store); !slices.Equal(token.Scopes, []string{"admin", "other", "read"}) {
		t.Errorf("got the scopes %v, want those before, too", token.Scopes)
	}
	caller.must()
}
