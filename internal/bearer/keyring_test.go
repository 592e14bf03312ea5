package bearer_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/bearer"
	"github.com/agenticnexus/agenticnexus/internal/bearer/bearertest"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// watched is a Verifier with a clock and a log.
type watched struct {
	*bearer.Verifier
	t      *testing.T
	issuer *bearertest.Issuer
	clock  *bearertest.Clock
	log    mcptest.Log
}

func watch(t *testing.T, issuer *bearertest.Issuer) *watched {
	w := &watched{t: t, issuer: issuer, clock: bearertest.NewClock()}
	w.Verifier = verifier(issuer, func(o *bearer.Options) {
		o.Now, o.Logger = w.clock.Now, slog.New(slog.NewTextHandler(&w.log, nil))
	})
	return w
}

// token returns one that counts at the time of the clock.
func (w *watched) token() string {
	return w.issuer.Token(bearertest.Claims{"exp": w.clock.Now().Add(time.Hour).Unix()})
}

// want checks what becomes of a token: "" for counts, "unavailable" or "invalid".
func (w *watched) want(what, token, want string) {
	w.t.Helper()
	_, err := w.Verify(w.t.Context(), token)
	var invalid bearer.Invalid
	got := ""
	switch {
	case errors.Is(err, bearer.ErrUnavailable):
		got = "unavailable"
	case errors.As(err, &invalid):
		got = "invalid"
	case err != nil:
		got = err.Error()
	}
	if got != want {
		w.t.Errorf("%s: got %q (%v), want %q", what, got, err, want)
	}
}

// Keys rotate without delay, but a stranger cannot make the router flood the issuer.
func TestRotation(t *testing.T) {
	issuer := bearertest.New(t)
	w := watch(t, issuer)
	old := w.token()
	w.want("first token", old, "")
	w.clock.Pass(11 * time.Second)
	issuer.Publish(bearertest.NewKey(t, "RS256"))
	w.want("token of the new key", w.token(), "")
	w.want("token of a key that is gone", old, "invalid")
	if got := issuer.Asked(); got != 2 {
		t.Errorf("got %d requests for the keys, want 2", got)
	}
	stranger := bearertest.NewKey(t, "ES256")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 10 {
				_, _ = w.Verify(t.Context(), issuer.Sign(stranger, map[string]any{"kid": stranger.ID + "x"}, nil))
			}
		})
	}
	wg.Wait()
	if got := issuer.Asked(); got != 2 {
		t.Errorf("after 200 forged tokens: got %d requests for the keys, want 2", got)
	}
	issuer.Publish(bearertest.NewKey(t, "ES256"))
	w.want("token of a newer key, too early", w.token(), "invalid")
	w.clock.Pass(11 * time.Second)
	w.want("token of a newer key", w.token(), "")
	w.clock.Pass(15 * time.Minute)
	w.want("token after a while", w.token(), "")
	if got := issuer.Asked(); got != 4 {
		t.Errorf("got %d requests for the keys, want 4", got)
	}
}

// A token that was verified before is refused once it has expired.
func TestKnownToken(t *testing.T) {
	w := watch(t, bearertest.New(t))
	token := w.token()
	for range 2 {
		w.want("a token that counts", token, "")
	}
	w.clock.Pass(59 * time.Minute)
	w.want("the token a while later", token, "")
	w.clock.Pass(2 * time.Minute)
	w.want("the token after its end", token, "invalid")
}

// While the issuer is out of reach its keys count for an hour, and then nothing does.
func TestUnreachableIssuer(t *testing.T) {
	issuer := bearertest.New(t)
	w := watch(t, issuer)
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	issuer.Answer(down)
	w.want("at start", w.token(), "unavailable")
	w.want("again", w.token(), "unavailable")
	if got := strings.Count(w.log.String(), "level=WARN"); got != 1 || !strings.Contains(w.log.String(), issuer.URL) {
		t.Errorf("got log %s, want one warning that names the issuer", w.log.String())
	}
	issuer.Answer(nil)
	w.want("back, too early", w.token(), "unavailable")
	w.clock.Pass(11 * time.Second)
	w.want("back", w.token(), "")
	if !strings.Contains(w.log.String(), "fetched again") {
		t.Errorf("got log %s, want that the keys are there", w.log.String())
	}
	issuer.Answer(down)
	w.clock.Pass(59 * time.Minute)
	w.want("gone for 59 minutes", w.token(), "")
	w.clock.Pass(2 * time.Minute)
	w.want("gone for 61 minutes", w.token(), "unavailable")
	issuer.Close()
	w.clock.Pass(11 * time.Second)
	w.want("closed", w.token(), "unavailable")
}

// Who has keys that count does not wait for a fetch that hangs.
func TestSlowIssuer(t *testing.T) {
	issuer := bearertest.New(t)
	w := watch(t, issuer)
	w.want("first token", w.token(), "")
	entered, release := make(chan struct{}, 10), make(chan struct{})
	issuer.Answer(func(_ http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-release
	})
	w.clock.Pass(16 * time.Minute)
	var wg sync.WaitGroup
	wg.Go(func() { w.want("token that fetches", w.token(), "") })
	<-entered
	w.want("token beside it", w.token(), "")
	close(release)
	wg.Wait()
}

// An issuer that never ends its answer costs five seconds.
func TestEndlessIssuer(t *testing.T) {
	t.Parallel()
	issuer := bearertest.New(t)
	issuer.Answer(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	watch(t, issuer).want("token", issuer.Token(nil), "unavailable")
}

func TestDocuments(t *testing.T) {
	key := bearertest.NewKey(t, "ES256")
	rsaKey := bearertest.NewKey(t, "RS256")
	jwks := func(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }
	public := func(k bearertest.Key, with ...string) string {
		j := k.JWK()
		for i := 0; i < len(with); i += 2 {
			j[with[i]] = with[i+1]
		}
		var members []string
		for name, value := range j {
			members = append(members, fmt.Sprintf("%q:%q", name, value))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	good := jwks(public(key))
	for _, row := range []struct {
		name     string
		metadata string // %[1]s is the issuer; empty = as it is
		keys     string
		log      string // empty = the token counts
	}{
		{name: "as it is", keys: good},
		{name: "beside keys of no use", keys: jwks(`{"kty":"oct","k":"eA"}`, `7`, `{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"small"}`, `{"kty":"EC","crv":"P-256","x":"eA","y":"eA"}`, public(key))},
		{name: "no keys", keys: jwks(), log: "has no RSA, EC or Ed25519 key"},
		{name: "not JSON", keys: "<html>", log: "is not a JSON Web Key Set"},
		{name: "another form", keys: `[]`, log: "is not a JSON Web Key Set"},
		{name: "for encryption", keys: jwks(public(key, "use", "enc")), log: "has no RSA"},
		{name: "for another algorithm", keys: jwks(public(key, "alg", "ES512")), log: "has no RSA"},
		{name: "not on its curve", keys: jwks(public(key, "x", key.JWK()["y"].(string))), log: "has no RSA"},
		{name: "an even exponent", keys: jwks(public(rsaKey, "e", "Ag")), log: "has no RSA"},
		{name: "too many keys", keys: jwks(strings.Split(strings.Repeat(public(key)+"\n", 101), "\n")[:101]...), log: "more than 100 keys"},
		{name: "huge", keys: strings.TrimSuffix(good, "}") + `,"x":"` + strings.Repeat("x", 1<<20) + `"}`, log: "has more than 256 KiB"},
		{name: "another issuer", metadata: `{"issuer":"https://evil.example.com","jwks_uri":"%[1]s/keys"}`, log: "is of another issuer"},
		{name: "metadata is no JSON", metadata: `<html>`, log: "is not the metadata"},
		{name: "metadata without keys", metadata: `{"issuer":"%[1]s"}`, log: "names no key set"},
		{name: "keys over http elsewhere", metadata: `{"issuer":"%[1]s","jwks_uri":"http://192.0.2.1/keys"}`, log: "not at https"},
		{name: "keys in a file", metadata: `{"issuer":"%[1]s","jwks_uri":"file:///etc/passwd"}`, log: "names no key set"},
	} {
		t.Run(row.name, func(t *testing.T) {
			issuer := bearertest.New(t)
			issuer.Publish(key)
			issuer.Answer(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/keys" && row.keys != "":
					_, _ = io.WriteString(w, row.keys)
				case strings.HasPrefix(r.URL.Path, "/.well-known/") && row.metadata != "":
					fmt.Fprint(w, strings.ReplaceAll(row.metadata, "%[1]s", issuer.URL))
				default:
					issuer.ServeHTTP(w, r)
				}
			})
			w := watch(t, issuer)
			if row.log == "" {
				w.want("token", w.token(), "")
				return
			}
			w.want("token", w.token(), "unavailable")
			if !strings.Contains(w.log.String(), row.log) {
				t.Errorf("got log %s, want %q", w.log.String(), row.log)
			}
		})
	}
}

// Nothing but the issuer's own URLs says what its keys are.
func TestRedirects(t *testing.T) {
	issuer, other := bearertest.New(t), bearertest.New(t)
	for _, path := range []string{"/.well-known/", "/keys"} {
		issuer.Answer(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, path) {
				http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
				return
			}
			issuer.ServeHTTP(w, r)
		})
		w := watch(t, issuer)
		w.want(path, w.token(), "unavailable")
		if !strings.Contains(w.log.String(), "redirects") || other.Asked() > 0 {
			t.Errorf("%s: got log %s and %d requests elsewhere, want no redirect followed", path, w.log.String(), other.Asked())
		}
	}
}

func TestDiscovery(t *testing.T) {
	for path, at := range map[string]string{
		"":         "/.well-known/openid-configuration",
		"/":        "/.well-known/openid-configuration",
		"/tenant":  "/.well-known/oauth-authorization-server/tenant",
		"/tenant/": "/tenant/.well-known/openid-configuration",
		"/a/b":     "/.well-known/openid-configuration/a/b",
	} {
		issuer := bearertest.New(t)
		base := issuer.URL
		issuer.URL += path
		issuer.Answer(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case at:
				fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, base+path, base+"/keys")
			case "/keys":
				issuer.ServeHTTP(w, r)
			default:
				http.NotFound(w, r)
			}
		})
		w := watch(t, issuer)
		w.want("issuer "+path, w.token(), "")
	}
}

func TestCheckIssuer(t *testing.T) {
	for issuer, ok := range map[string]bool{
		"https://auth.example.com": true, "https://auth.example.com/": true, "https://auth.example.com/realms/x": true,
		"http://localhost:8080": true, "http://127.0.0.1": true, "http://[::1]:9/x": true,
		"http://auth.example.com": false, "http://localhost.example.com": false, "ftp://localhost": false, "auth.example.com": false,
		"": false, "https://": false, "https://a@b": false, "https://a?b": false, "https://a?": false, "https://a#b": false, "https://a#": false,
	} {
		if err := bearer.CheckIssuer(issuer); (err == nil) != ok {
			t.Errorf("%s: got %v, want it allowed: %t", issuer, err, ok)
		}
	}
}
