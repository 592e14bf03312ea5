package downstream_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// authorized configures a server behind o.
func authorized(t *testing.T, o *mcptest.OAuth, kind string) (downstream.Options, *mcptest.Log) {
	t.Helper()
	return authorizedBy(t, o, kind, &mcptest.Server{})
}

func authorizedBy(t *testing.T, o *mcptest.OAuth, kind string, next http.Handler) (downstream.Options, *mcptest.Log) {
	t.Helper()
	t.Cleanup(mcptest.ServeOAuth(o, next))
	path := "/mcp"
	if kind == downstream.TransportSSE {
		path = "/sse"
	}
	log := &mcptest.Log{}
	return downstream.Options{
		Servers: []downstream.ServerConfig{{Name: "hr", Type: kind, URL: o.URL + path, Auth: &oauth.Config{}}},
		Access:  downstream.Access{Tokens: oauth.NewStore(t.TempDir())}, Logger: logger(log),
	}, log
}

// logIn logs in to the only server of a configuration.
func logIn(t *testing.T, opts downstream.Options) {
	t.Helper()
	s, ok := opts.Servers[0].OAuth()
	if !ok {
		t.Fatal("the server wants no token")
	}
	token, err := oauth.Login(t.Context(), s, nil, func(page string) {
		resp, err := http.Get(page)
		if err != nil {
			t.Errorf("opening the page: %v", err)
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	})
	if err == nil {
		err = opts.Tokens.Save(t.Context(), token)
	}
	if err != nil {
		t.Fatalf("logging in: %v", err)
	}
}

// A server whose token is missing, or ends for good, is unauthorized until somebody logs in; no restart is needed.
func TestOAuth(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{downstream.TransportHTTP, downstream.TransportSSE} {
		t.Run(kind, func(t *testing.T) {
			o := &mcptest.OAuth{}
			opts, log := authorized(t, o, kind)
			o.Challenge = `Bearer scope="read"` // the metadata is about /mcp
			m := start(t, opts)
			refused := func(when string) {
				t.Helper()
				r := request("hr", "echo")
				r.Attempts = new(int)
				_, err := m.Call(t.Context(), r)
				f := failureOf(err)
				if f.Reason != reason.Unauthorized || !strings.Contains(f.Message, "nexus auth login hr") || *r.Attempts != 1 {
					t.Fatalf("%s: got %v after %d attempts, want unauthorized at once, with the command", when, err, *r.Attempts)
				}
			}
			refused("without a login")
			refused("again")
			if o.Count("refused") > 0 {
				t.Error("the server is asked without a token")
			}
			logIn(t, opts)
			mcptest.Eventually(t, "it is connected", func() bool { return m.Status()["hr"].Status == downstream.StateConnected })
			if _, err := m.Call(t.Context(), request("hr", "echo")); err != nil {
				t.Fatalf("after the login: %v", err)
			}
			if in := m.Status()["hr"].TokenExpiresIn; in == nil || *in < 3500 || *in > 3600 {
				t.Errorf("got token_expires_in %v, want about an hour", in)
			}

			o.Forget(true)
			refused("after it was revoked")
			if got := m.Status()["hr"].LastError; got == nil || got.Reason != reason.Unauthorized {
				t.Errorf("got the last error %+v, want unauthorized", got)
			}
			logIn(t, opts)
			if _, err := m.Call(t.Context(), request("hr", "echo")); err != nil {
				t.Fatalf("after another login: %v", err)
			}
			for _, secret := range []string{"access-", "refresh-", "code-"} {
				if log.Has(secret) {
					t.Errorf("the log has a token: %q", log.Lines(secret))
				}
			}
			if lines := log.Lines("WARN", "cannot connect", "nobody is logged in"); len(lines) > 1 {
				t.Errorf("got %d warnings, want one: %q", len(lines), lines)
			}
		})
	}
}

// A server without auth that offers OAuth says so; it is not retried either.
func TestOAuth_NotConfigured(t *testing.T) {
	opts, _ := authorized(t, &mcptest.OAuth{}, downstream.TransportHTTP)
	opts.Servers[0].Auth = nil
	r := request("hr", "echo")
	r.Attempts = new(int)
	_, err := start(t, opts).Call(t.Context(), r)
	if f := failureOf(err); f.Reason != reason.Unauthorized || !strings.Contains(f.Message, "401") || !strings.Contains(f.Message, "auth") || *r.Attempts != 1 {
		t.Errorf("got %v after %d attempts, want unauthorized with a hint", err, *r.Attempts)
	}
}

// A call that needs more scopes fails by itself: others go on with the same session.
func TestOAuth_Scopes(t *testing.T) {
	o := &mcptest.OAuth{Needs: func(r *http.Request) string {
		if r.Header.Get("X-Admin") != "" {
			return "admin"
		}
		return ""
	}}
	opts, _ := authorized(t, o, downstream.TransportHTTP)
	opts.Servers[0].ForwardHeaders = []string{"X-Admin"}
	logIn(t, opts)
	m := start(t, opts)
	r := request("hr", "echo")
	r.Header = http.Header{"X-Admin": {"1"}}
	_, err := m.Call(t.Context(), r)
	if f := failureOf(err); f.Reason != reason.Unauthorized || !strings.Contains(f.Message, "scopes admin; run: nexus auth login hr --scope admin") {
		t.Errorf("got %v, want unauthorized, with the scope", err)
	}
	if _, err := m.Call(t.Context(), request("hr", "echo")); err != nil {
		t.Errorf("another call: %v", err)
	}
	if st := m.Status()["hr"]; st.Sessions != 1 || st.Status != downstream.StateConnected {
		t.Errorf("got %+v, want one session", st)
	}
}

// A server of 2026-07-28 that wants more scopes for its first request is not said to refuse the handshake.
func TestOAuth_ScopesOfFirstRequest(t *testing.T) {
	o := &mcptest.OAuth{Needs: func(r *http.Request) string {
		if r.Header.Get("Mcp-Method") == "server/discover" {
			return "admin"
		}
		return ""
	}}
	opts, _ := authorizedBy(t, o, downstream.TransportHTTP, &mcptest.Server{
		OnHTTP: func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
			w.WriteHeader(http.StatusBadRequest) // to initialize
			return m.Method == "initialize"
		},
	})
	logIn(t, opts)
	_, err := start(t, opts).Call(t.Context(), request("hr", "echo"))
	if f := failureOf(err); f.Reason != reason.Unauthorized || !strings.Contains(f.Message, "nexus auth login hr --scope admin") {
		t.Errorf("got %v, want unauthorized, with the command", err)
	}
}
