//go:build unix

package http1_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"
)

// A server reads the same request from here as from net/http, or none from both.
func TestRequestLikeNetHTTP(t *testing.T) {
	var seen atomic.Pointer[string]
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dump, err := httputil.DumpRequest(r, true)
		if err != nil {
			t.Error(err)
		}
		text := string(dump)
		seen.Store(&text)
	}))
	defer srv.Close()
	for name, change := range map[string]func(*http.Request){
		"plain":                       func(*http.Request) {},
		"two values":                  func(r *http.Request) { r.Header["A"] = []string{"1", "2"} },
		"no value":                    func(r *http.Request) { r.Header["X-Idempotency-Key"] = []string{} },
		"spaces around a value":       func(r *http.Request) { r.Header["A"] = []string{"  1\t"} },
		"an empty value":              func(r *http.Request) { r.Header["A"] = []string{""} },
		"a line break in a value":     func(r *http.Request) { r.Header["A"] = []string{"1\r\nB: 2"} },
		"a line break in a name":      func(r *http.Request) { r.Header["A: 1\r\nB"] = []string{"2"} },
		"a line break in the method":  func(r *http.Request) { r.Method = "POST / HTTP/1.1\r\nA: 1\r\n" },
		"a line break in the query":   func(r *http.Request) { r.URL.RawQuery = "a HTTP/1.1\r\nB: 2" },
		"a path to be escaped":        func(r *http.Request) { r.URL.Path = "/a b/é\r\n" },
		"an opaque URL":               func(r *http.Request) { r.URL.Opaque = "/opaque" },
		"no path":                     func(r *http.Request) { r.URL.Path = "" },
		"another host":                func(r *http.Request) { r.Host = "example.com" },
		"an IPv6 host":                func(r *http.Request) { r.Host = "[::1]:80" },
		"a line break in the host":    func(r *http.Request) { r.Host = "a\r\nB: 1" },
		"two user agents":             func(r *http.Request) { r.Header["User-Agent"] = []string{" me/1 ", "me/2"} },
		"a line break in a client":    func(r *http.Request) { r.Header.Set("User-Agent", "a\r\nB: 1") },
		"a user agent":                func(r *http.Request) { r.Header.Set("User-Agent", "me/1") },
		"no user agent":               func(r *http.Request) { r.Header["User-Agent"] = []string{""} },
		"a length among the headers":  func(r *http.Request) { r.Header.Set("Content-Length", "1") },
		"a coding among the headers":  func(r *http.Request) { r.Header.Set("Transfer-Encoding", "chunked") },
		"a host among the headers":    func(r *http.Request) { r.Header.Set("Host", "example.com") },
		"the last of its connection":  func(r *http.Request) { r.Close = true },
		"a GET":                       func(r *http.Request) { r.Method = http.MethodGet },
		"a GET without a body":        func(r *http.Request) { r.Method, r.Body, r.ContentLength = http.MethodGet, nil, 0 },
		"a body that is too short":    func(r *http.Request) { r.ContentLength++ },
		"a body that is too long":     func(r *http.Request) { r.ContentLength-- },
		"a body longer than a packet": func(r *http.Request) { setBody(r, strings.Repeat("x", 40<<10)) },
	} {
		t.Run(name, func(t *testing.T) {
			try := func(rt http.RoundTripper) string {
				seen.Store(nil)
				req := request(t.Context(), http.MethodPost, srv.URL+"/mcp?a=b", `{"id":1}`)
				req.Header.Set("Authorization", "Bearer secret")
				change(req)
				resp, err := rt.RoundTrip(req)
				if err != nil {
					return "an error"
				}
				resp.Body.Close()
				return *seen.Load()
			}
			theirs := &http.Transport{DisableCompression: true}
			defer theirs.CloseIdleConnections()
			got, want := try(newClient(t, func(rest *http.Transport) { rest.DisableCompression = true })), try(theirs)
			if got != want {
				t.Errorf("got %.300q, net/http sends %.300q", got, want)
			}
		})
	}
}

func setBody(r *http.Request, body string) {
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
}
