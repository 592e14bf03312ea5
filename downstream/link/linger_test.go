package link_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// connection is the key of a request's connection in its context.
type connection struct{}

// A server that ends its streams only after the response has been read is called again on the same connection.
func TestConnectionIsUsedAgain(t *testing.T) {
	var mu sync.Mutex
	streamed := map[any]bool{} // connections
	again := false
	returned := make(chan chan struct{}, 1) // for each call what is closed when it has returned
	script := newScript().http()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		again = again || streamed[r.Context().Value(connection{})]
		mu.Unlock()
		script.ServeHTTP(w, r)
		if r.Header.Get("Mcp-Session-Id") == "" || w.Header().Get("Content-Type") != "text/event-stream" {
			return
		}
		select {
		case <-<-returned:
		case <-r.Context().Done():
		}
		mu.Lock()
		streamed[r.Context().Value(connection{})] = true
		mu.Unlock()
	}))
	srv.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connection{}, c)
	}
	srv.Start()
	defer srv.Close()
	s := connect(t, link.Target{URL: srv.URL}, &listener{}, 1<<20)
	defer s.Close()
	mcptest.Eventually(t, "a second call on one connection", func() bool {
		over := make(chan struct{})
		defer close(over)
		returned <- over
		if _, err := call(t, s, "echo"); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		return again
	})
}

// A server that never ends its streams holds up neither calls nor the end of the session.
func TestStreamsThatNeverEnd(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, _ := io.ReadAll(r.Body)
		m, _ := jsonrpc.Parse(body)
		if !m.IsRequest() {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", jsonrpc.Result(m.ID, []byte(`{"protocolVersion":"2025-11-25"}`)))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer srv.Close() // waits for the handlers, and so until their connections are closed
	s := connect(t, link.Target{URL: srv.URL}, &listener{}, 1<<20)
	for range 100 {
		if _, err := call(t, s, "echo"); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
}
