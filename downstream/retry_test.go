package downstream_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/breaker"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// faulty serves s over streamable HTTP but answers one method with fault. calls counts the requests of that method,
// sessions the handshakes.
func faulty(t *testing.T, s *server, method string, fault http.HandlerFunc) (m *downstream.Manager, calls, sessions *atomic.Int64) {
	fine := serveHTTP(t, s)
	calls, sessions = new(atomic.Int64), new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(raw))
		message, _ := jsonrpc.Parse(raw)
		if message.Method == "initialize" {
			sessions.Add(1)
		}
		if message.Method == method {
			calls.Add(1)
			fault(rw, r)
			return
		}
		fine.ServeHTTP(rw, r)
	}))
	t.Cleanup(srv.Close)
	m = downstream.New(downstream.Options{ // not started: nobody else connects
		Servers:   []downstream.ServerConfig{{Name: "a", Type: downstream.TransportHTTP, URL: srv.URL}},
		Execution: downstream.ExecutionConfig{RetryDelay: time.Millisecond},
	})
	t.Cleanup(m.Stop)
	return m, calls, sessions
}

func answer(status int, body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	}
}

// A status that may come after the tool has run is no reason to run it again, unless the tool says that it may be.
func TestRetryAfterStatus(t *testing.T) {
	for _, tc := range []struct {
		status      int
		write, read string // reason
		calls       int64  // of a tool that writes; one that reads is called 3 times where it is retried
		reads       int64
	}{
		{500, reason.OutcomeUnknown, reason.Unavailable, 1, 3},
		{502, reason.OutcomeUnknown, reason.Unavailable, 1, 3},
		{503, reason.OutcomeUnknown, reason.Unavailable, 1, 3},
		{504, reason.OutcomeUnknown, reason.Unavailable, 1, 3},
		{429, reason.Overloaded, reason.Overloaded, 1, 3},
		{413, reason.TooLarge, reason.TooLarge, 1, 1},
		{401, reason.Unauthorized, reason.Unauthorized, 1, 1},
	} {
		m, calls, _ := faulty(t, newServer(tool("pay"), tool("see", readOnly)), "tools/call", answer(tc.status, ""))
		catalogOf(t, m)
		_, err := m.Call(t.Context(), request("a", "pay"))
		if n := calls.Swap(0); failureOf(err).Reason != tc.write || n != tc.calls {
			t.Errorf("%d to a write: got %v after %d calls, want %s after %d", tc.status, err, n, tc.write, tc.calls)
		}
		_, err = m.Call(t.Context(), request("a", "see"))
		if n := calls.Load(); failureOf(err).Reason != tc.read || n != tc.reads {
			t.Errorf("%d to a read: got %v after %d calls, want %s after %d", tc.status, err, n, tc.read, tc.reads)
		}
	}
	// A request that a server refuses is no failure of the server, however often.
	m, _, _ := faulty(t, newServer(tool("pay")), "tools/call", answer(400, "bad request"))
	for range 20 {
		if _, err := m.Call(t.Context(), request("a", "pay")); failureOf(err).Reason != reason.Protocol {
			t.Fatalf("400: got %v, want a protocol failure", err)
		}
	}
	if got := m.Status()["a"].Breaker; got != breaker.Closed {
		t.Errorf("after refused requests: got breaker %s, want it closed", got)
	}
	// A handshake that fails is no call that was made.
	m, calls, _ := faulty(t, newServer(), "initialize", answer(500, ""))
	if _, err := m.Call(t.Context(), request("a", "pay")); failureOf(err).Reason != reason.Unavailable || calls.Load() != 3 {
		t.Errorf("500 to a handshake: got %v after %d attempts, want unavailable after 3", err, calls.Load())
	}
}

// Of requests other than tool calls, those are made again after a lost reply of which the specification says that
// they read, or that they leave the same state.
func TestRetryOfOtherMethods(t *testing.T) {
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for method, again := range map[string]bool{
		"ping": true, "server/discover": true, "tools/list": true, "prompts/list": true, "resources/list": true, "resources/templates/list": true,
		"prompts/get": true, "resources/read": true, "completion/complete": true, "tasks/list": true, "tasks/get": true, "tasks/result": true,
		"resources/subscribe": true, "resources/unsubscribe": true, "logging/setLevel": true,

		"tasks/cancel": false, "tasks/update": false, "vendor/pay": false, "resources/delete": false,
	} {
		m, calls, _ := faulty(t, newServer(), method, abort)
		_, err := m.Call(t.Context(), &downstream.Request{Server: "a", Method: method, Params: []byte("{}")})
		why, want := reason.OutcomeUnknown, int64(1)
		if again {
			why, want = reason.Disconnected, 3
		}
		if method == "server/discover" {
			want++ // the session begins with it
		}
		if n := calls.Load(); failureOf(err).Reason != why || n != want {
			t.Errorf("%s: got %v after %d calls, want %s after %d", method, err, n, why, want)
		}
	}
}

// A server that does not know the session gets the call once more, in a new session. If it does not know that either,
// a write is not sent again.
func TestUnknownSession(t *testing.T) {
	m, calls, sessions := faulty(t, newServer(tool("pay"), tool("see", readOnly)), "tools/call", answer(404, ""))
	catalogOf(t, m)
	_, err := m.Call(t.Context(), request("a", "pay"))
	if failureOf(err).Reason != reason.Disconnected || calls.Load() != 2 || sessions.Load() != 2 {
		t.Errorf("a write: got %v after %d calls in %d sessions, want disconnected after 2 in 2", err, calls.Load(), sessions.Load())
	}
	calls.Store(0)
	_, err = m.Call(t.Context(), request("a", "see"))
	if failureOf(err).Reason != reason.Disconnected || calls.Load() != 3 {
		t.Errorf("a read: got %v after %d calls, want disconnected after 3", err, calls.Load())
	}
}
