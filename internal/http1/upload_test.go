//go:build unix

package http1_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

// hasty answers before it has read the body, and closes the connection.
func hasty(w http.ResponseWriter, _ *http.Request) {
	nc, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(nc, "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
	_ = nc.Close() // what has come and was not read makes this a reset
}

// A server that refuses a request before it has read all of it is heard, though the rest cannot be written.
func TestEarlyResponse(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(hasty))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(hasty))
	defer secure.Close()
	for _, tc := range []struct {
		name, url string
		size      int
	}{
		{"short", plain.URL, 60 << 10},
		{"long", plain.URL, 4 << 20},
		{"over TLS", secure.URL, 4 << 20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newClient(t, func(rest *http.Transport) { rest.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} })
			for range 50 { // the reset may come before or after any write
				wantRead(t, c, request(t.Context(), http.MethodPost, tc.url, strings.Repeat("x", tc.size)), "413 no")
			}
		})
	}
}

// A body that ends with an error ends its request before it begins.
func TestBodyFails(t *testing.T) {
	c := newClient(t, nil)
	const lost = "the body is lost"
	req := request(t.Context(), http.MethodPost, "http://127.0.0.1:1", strings.Repeat("x", 40<<10))
	req.Body = io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat("x", 20<<10)), iotest.ErrReader(errors.New(lost))))
	if _, err := read(c, req); err == nil || err.Error() != lost || c.opened.Load() != 0 {
		t.Errorf("got %v and %d connections, want %v and none", err, c.opened.Load(), lost)
	}
}

// WroteRequest is called once all has been written.
func TestWroteRequest(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer srv.Close()
	for _, size := range []int{2, 40 << 10} {
		c := newClient(t, nil)
		before := int64(0)
		ctx := traced(t.Context(), func(event string) {
			if event == "wrote" {
				before = c.written.Load()
			}
		})
		wantRead(t, c, request(ctx, http.MethodPost, srv.URL, strings.Repeat("x", size)), "200 ok")
		if all := c.written.Load(); before != all || all == 0 {
			t.Errorf("got %d bytes written before WroteRequest, want all %d", before, all)
		}
	}
}
