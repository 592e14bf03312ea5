package cluster_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/cluster"
)

// Who has recorded a request between replicas cannot send it again, with the same body or another.
func TestReceive_RefusesReplays(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var recorded atomic.Pointer[http.Request]
	spy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		recorded.Store(r.In.Clone(t.Context()))
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Header["X-Forwarded-For"] = "http", l.Addr().String(), nil
	}})
	defer spy.Close()
	home := w.prepareAt("home", l.Addr().String(), l, func(c *cluster.Config) { c.Address, c.Dial = spy.URL, nil })
	if err := home.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	front := w.onLoopback("front")
	s := home.session("s")
	served := atomic.Int64{}
	home.serve(func(http.ResponseWriter, *http.Request) { served.Add(1) })
	for n := range int64(100) {
		place, err := front.dir.Find(t.Context(), s)
		if err == nil {
			err = place.Forward(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("1")))
		}
		if err != nil || served.Load() != n+1 {
			t.Fatalf("request %d: got %v, served %d", n, err, served.Load())
		}
		if n%10 != 0 {
			continue
		}
		again := recorded.Load()
		again.URL.Scheme, again.URL.Host, again.RequestURI, again.Body = "http", home.host, "", io.NopCloser(strings.NewReader("2"))
		response, err := http.DefaultTransport.RoundTrip(again)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusForbidden || served.Load() != n+1 {
			t.Errorf("a recorded request: got %d, served %d, want 403 and %d", response.StatusCode, served.Load(), n+1)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
