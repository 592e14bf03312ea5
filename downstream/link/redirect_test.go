package link_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// slashed redirects /mcp and /sse to the same with a slash at the end, as some frameworks do.
func slashed(status int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/mcp", "/sse":
		case "/mcp/", "/sse/":
			r.URL.Path = strings.TrimSuffix(r.URL.Path, "/")
			fallthrough
		default:
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Location", r.URL.Path+"/?"+r.URL.RawQuery)
		w.WriteHeader(status)
	})
}

func TestRedirectWithinOrigin(t *testing.T) {
	for _, status := range []int{http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			streamable := httptest.NewServer(slashed(status, newScript().http()))
			t.Cleanup(streamable.Close)
			legacy := httptest.NewServer(slashed(status, newScript()))
			t.Cleanup(legacy.Close)
			for _, target := range []link.Target{{URL: streamable.URL + "/mcp"}, {URL: legacy.URL + "/sse", SSE: true}} {
				s := connect(t, target, &listener{}, 1<<20)
				if reply, err := call(t, s, "t"); err != nil || !strings.Contains(string(reply.Result), `"name":"t"`) {
					t.Errorf("%s: got %s, %v; want the call to arrive with its params", target.URL, reply.Result, err)
				}
			}
		})
	}
}

// A redirect to another origin would give the secrets in the headers away. One that leads to itself has no end.
func TestRedirectNotFollowed(t *testing.T) {
	t.Parallel()
	var foreign atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { foreign.Add(1) }))
	t.Cleanup(other.Close)
	for name, location := range map[string]string{
		"another origin": other.URL + "/mcp", "another scheme": "https://HOST/mcp", "itself": "/mcp", "a loop": "/mcp?again",
		"nowhere": "", "no URL": "http://[::1",
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", strings.ReplaceAll(location, "HOST", r.Host))
				w.WriteHeader(http.StatusTemporaryRedirect)
			}))
			t.Cleanup(srv.Close)
			target := link.Target{URL: srv.URL + "/mcp", Headers: map[string]redact.Secret{"Authorization": "Bearer x"}}
			if f := connectFails(t, target); f.Reason != reason.Protocol || foreign.Load() != 0 {
				t.Errorf("got %+v and %d requests elsewhere, want the reason protocol and none", f, foreign.Load())
			}
		})
	}
}
