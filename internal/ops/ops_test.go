package ops_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/ops"
)

func TestPaths(t *testing.T) {
	closed := func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") })
	for _, row := range []struct {
		name   string
		change func(*ops.Options)
		path   string
		status int
		body   string
	}{
		{"alive", nil, "/livez", 200, "ok\n"},
		{"ready", nil, "/readyz", 200, "ok\n"},
		{"not ready", func(o *ops.Options) { o.Ready = func() bool { return false } }, "/readyz", 503, "not ready\n"},
		{"alive though not ready", func(o *ops.Options) { o.Ready = func() bool { return false } }, "/livez", 200, "ok\n"},
		{"health", nil, "/healthz", 200, "{\n  \"status\": \"unhealthy\"\n}\n"},
		{"metrics", func(o *ops.Options) { o.Metrics = metrics }, "/metrics", 200, "up 1\n"},
		{"no metrics", nil, "/metrics", 404, ""},
		{"probes are open", func(o *ops.Options) { o.Authorize = closed }, "/livez", 200, "ok\n"},
		{"readiness is open", func(o *ops.Options) { o.Authorize = closed }, "/readyz", 200, "ok\n"},
		{"health is guarded", func(o *ops.Options) { o.Authorize = closed }, "/healthz", 401, ""},
		{"the page is guarded", func(o *ops.Options) { o.Authorize, o.Page = closed, metrics }, "/ui/", 401, ""},
		{"the page", func(o *ops.Options) { o.Page = metrics }, "/ui/api/now", 200, "up 1\n"},
		{"no page", nil, "/ui/", 404, ""},
		{"metrics are guarded", func(o *ops.Options) { o.Authorize, o.Metrics = closed, metrics }, "/metrics", 401, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := ops.Options{Ready: func() bool { return true }, Health: func(*http.Request) any { return map[string]string{"status": "unhealthy"} }}
			if row.change != nil {
				row.change(&o)
			}
			mux := http.NewServeMux()
			ops.Mount(mux, o)
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, row.path, nil))
			if w.Code != row.status || row.body != "" && w.Body.String() != row.body {
				t.Errorf("GET %s: got %d %q, want %d %q", row.path, w.Code, w.Body, row.status, row.body)
			}
			if own := strings.HasSuffix(row.path, "z") && w.Code != 401; own && w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("GET %s: got Cache-Control %q, want no-store", row.path, w.Header().Get("Cache-Control"))
			}
		})
	}
}
