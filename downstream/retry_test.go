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
		switch message, _ := jsonrpc.Parse(raw); message.Method {
		case "initialize":
			sessions.Add(1)
		case method:
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
		if n := calls.Load(); failureOf(err).Reason != why || n != want {
			t.Errorf("%s: got %v after %d calls, want %s after %d", method, err, n, why, want)
		}
	}
}

// Requests that a server refuses with 400 cost neither the session nor the server's good name.
func TestBadRequestsFailAlone(t *testing.T) {
	for name, body := range map[string]string{"JSON-RPC": `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32602,"message":"no"}}`, "text": "bad request\n"} {
		t.Run(name, func(t *testing.T) {
			m, calls, sessions := faulty(t, newServer(tool("echo")), "tools/call", answer(400, body))
			for range 20 {
				reply, err := m.Call(t.Context(), request("a", "echo"))
				if name == "text" && failureOf(err).Reason != reason.Protocol || name != "text" && (err != nil || reply.Err == nil) {
					t.Fatalf("got %s %s, %v; want the refusal", reply.Result, reply.Err, err)
				}
			}
			if calls.Load() != 20 || sessions.Load() != 1 {
				t.Errorf("got %d calls in %d sessions, want 20 in 1", calls.Load(), sessions.Load())
			}
			if got := m.Status()["a"].Breaker; got != breaker.Closed {
				t.Errorf("got breaker %s, want it closed", got)
			}
		})
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
