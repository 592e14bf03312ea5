package edge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire is an edge behind a real HTTP server.
type wire struct {
	t      testing.TB
	srv    *server
	edge   *edge.Edge
	http   *httptest.Server
	client *http.Client
}

func newWire(t testing.TB, o edge.Options) *wire {
	t.Helper()
	s := newServer()
	e := edge.New(o)
	mux := http.NewServeMux()
	mux.Handle("/mcp", e.Streamable(s, nil))
	mux.Handle("/other", e.Streamable(s, nil))
	stream, messages := e.SSE("/messages", s)
	mux.Handle("/sse", stream)
	mux.Handle("/messages/", messages)
	mux.Handle("/messages", messages)
	h := httptest.NewServer(mux)
	w := &wire{t: t, srv: s, edge: e, http: h, client: h.Client()}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if err := e.Stop(ctx); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
		h.CloseClientConnections()
		h.Close()
		mcptest.Eventually(t, "nothing is charged to a caller any more", func() bool { return e.Held() == 0 })
	})
	return w
}

type header map[string]string

// do sends a request and returns the open response.
func (w *wire) do(ctx context.Context, method, path, body string, h header) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, w.http.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for k, v := range h {
		if k == "Host" {
			r.Host = v
		} else if v == "" {
			r.Header.Del(k)
		} else {
			r.Header.Set(k, v)
		}
	}
	resp, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func (w *wire) post(body string, h header) (int, http.Header, string) {
	w.t.Helper()
	resp := w.do(context.Background(), http.MethodPost, "/mcp", body, h)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatalf("reading the answer to %s: %v", body, err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

// open initializes a session on /mcp.
func (w *wire) open(version string) header {
	w.t.Helper()
	status, h, body := w.post(initialize(version), nil)
	id := h.Get("Mcp-Session-Id")
	if status != 200 || id == "" {
		w.t.Fatalf("initialize: got %d %s, session %q; want 200 and a session", status, body, id)
	}
	return header{"Mcp-Session-Id": id}
}

// keep has the edge of w keep its state in a folder.
func (w *wire) keep(folder string) *wire {
	w.t.Helper()
	if err := w.edge.Keep(folder); err != nil {
		w.t.Fatalf("Keep: got %v, want nil", err)
	}
	return w
}

// raw sends a POST on a connection of its own and reads nothing.
func (w *wire) raw(body string, length int, h header) net.Conn {
	w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.http.URL, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n", length)
	for name, value := range h {
		fmt.Fprintf(conn, "%s: %s\r\n", name, value)
	}
	_, _ = io.WriteString(conn, "\r\n"+body) // it may be refused meanwhile
	return conn
}

// direct serves requests without a network, so that time can be made to pass.
func direct(e http.Handler, method, body string, h header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1/mcp", reader(body))
	for k, v := range h {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

func with(h header, name, value string) header {
	out := header{name: value}
	for k, v := range h {
		out[k] = v
	}
	return out
}

func keys(t testing.TB) *auth.Keys {
	t.Helper()
	k, err := auth.New(auth.Config{APIKeys: []auth.KeyConfig{
		{Name: "ann", Key: "key-ann"}, {Name: "bob", Key: "key-bob"},
	}}, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func stop(t testing.TB, e *edge.Edge) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.Stop(ctx); err != nil {
		t.Errorf("Stop: got %v, want nil", err)
	}
}

func reader(s string) io.Reader { return strings.NewReader(s) }

// checkError checks that body is an error response.
func checkError(t testing.TB, body, id string, code int) {
	t.Helper()
	var m struct {
		ID    json.RawMessage
		Error *struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil || m.Error == nil {
		t.Errorf("got %s, want an error response", body)
		return
	}
	if string(m.ID) != id || m.Error.Code != code || m.Error.Message == "" {
		t.Errorf("got %s, want id %s and code %d with a message", body, id, code)
	}
}
