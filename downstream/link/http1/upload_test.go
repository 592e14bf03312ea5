//go:build unix

package http1_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
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

// WroteRequest is called once all has been written.
func TestWroteRequestAfterFlush(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer srv.Close()
	c := newClient(t, nil)
	var written int64
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { written = c.written.Load() },
	})
	wantRead(t, c, request(ctx, http.MethodPost, srv.URL, "{}"), "200 ok")
	if all := c.written.Load(); written != all || all == 0 {
		t.Errorf("got %d bytes written before WroteRequest, want all %d", written, all)
	}
}
