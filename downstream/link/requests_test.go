package link_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// waiting answers no question before its context ends, and keeps the causes.
type waiting struct {
	listener
	started chan string
	causes  chan error
}

func (w *waiting) Asked(ctx context.Context, m jsonrpc.Message, from []*link.Call) (result, err []byte) {
	w.started <- m.ID.Text()
	<-ctx.Done()
	w.causes <- context.Cause(ctx)
	return []byte(`{}`), nil
}

// A question that the server takes back ends, in the server's words, and is not answered; others are.
func TestWithdrawnQuestion(t *testing.T) {
	var mu sync.Mutex
	var answered []string
	ask := make(chan func(format string, args ...any), 1)
	w := &waiting{started: make(chan string, 10), causes: make(chan error, 10)}
	s := connect(t, raw(func(m jsonrpc.Message, send func(string, ...any)) {
		switch {
		case m.IsResponse():
			mu.Lock()
			defer mu.Unlock()
			answered = append(answered, m.ID.Text())
		case m.Method == "ping":
			ask <- send
		}
	}), w, 1<<20)
	go s.Ping(t.Context()) // it is never answered
	send := <-ask
	send(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"unknown"}}`)
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`)
	if got := <-w.started; got != "q" {
		t.Fatalf("got question %s, want q", got)
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
	<-w.started
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0071","reason":"r"}}`)
	var cause link.CancelParams
	if err := <-w.causes; !errors.As(err, &cause) || string(cause.CancelParams()) != `{"requestId":"\u0071","reason":"r"}` {
		t.Errorf("got the cause %v, want one with the server's own params", err)
	}
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-w.causes
	send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	mcptest.Eventually(t, "the answer to the ping", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Contains(answered, "2")
	})
	mu.Lock()
	defer mu.Unlock()
	if len(answered) != 1 {
		t.Errorf("got answers to %q, want to the ping alone", answered)
	}
	if w.has(&w.notified, "cancelled") {
		t.Errorf("got notifications %q, want the cancellations kept from the clients", w.notified)
	}
}

// A message to an HTTP+SSE server whose stream has ended is judged by its own answer.
func TestPostAfterTheStream(t *testing.T) {
	for _, tc := range []struct {
		name      string
		answer    func(w http.ResponseWriter)
		delivered bool
	}{
		{"the server does not know the session", func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, false},
		{"it took the message", func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) }, true},
		{"nobody knows", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fine := newScript()
			posted, lost, end := make(chan struct{}, 2), make(chan struct{}), make(chan struct{})
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					ctx, cancel := context.WithCancel(r.Context())
					defer cancel()
					go func() { <-end; cancel() }()
					fine.ServeHTTP(w, r.WithContext(ctx))
					return
				}
				body, _ := io.ReadAll(r.Body)
				if m, _ := jsonrpc.Parse(body); m.Method != "tools/call" && m.Method != "notifications/n" {
					r.Body = io.NopCloser(bytes.NewReader(body))
					fine.ServeHTTP(w, r)
					return
				}
				posted <- struct{}{}
				<-lost
				tc.answer(w)
			}))
			defer srv.Close()
			s := connect(t, link.Target{URL: srv.URL + "/sse", SSE: true}, &listener{}, 1<<20)
			failures := make(chan error, 2)
			go func() { _, err := call(t, s, "echo"); failures <- err }()
			<-posted
			go func() { failures <- s.Notify(t.Context(), "notifications/n", nil) }()
			<-posted
			close(end)
			<-s.Done()
			close(lost)
			for range 2 {
				err := <-failures
				if f := failure(err); (err != nil || !tc.delivered) && (f.MaybeDelivered != tc.delivered || f.Reason != reason.Disconnected) {
					t.Errorf("got %v (%+v), want disconnected, delivered: %t", err, f, tc.delivered)
				}
			}
		})
	}
}

// A server may use the id of a question again as soon as it has the answer.
func TestQuestionsWithOneID(t *testing.T) {
	const n = 200
	left, refused := n, 0
	done := make(chan struct{})
	s := connect(t, raw(func(m jsonrpc.Message, send func(string, ...any)) {
		if m.IsResponse() {
			left--
			if m.Err != nil {
				refused++
			}
		}
		switch {
		case m.IsResponse() && left == 0: // the cancellation of the ping follows
			close(done)
		case m.IsResponse() || m.Method == "ping":
			send(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
		}
	}), &listener{}, 1<<20)
	go s.Ping(t.Context()) // it is never answered
	<-done
	if refused > 0 {
		t.Errorf("got %d of %d questions refused, want each answered", refused, n)
	}
}

// A ping that a call may have caused is answered also beyond the number of requests that are answered at once.
func TestPingBeyondTheBound(t *testing.T) {
	answers := make(chan string, 200)
	ask := make(chan func(format string, args ...any), 1)
	w := &waiting{started: make(chan string, 200), causes: make(chan error, 200)}
	s := connect(t, raw(func(m jsonrpc.Message, send func(string, ...any)) {
		switch {
		case m.IsResponse():
			answers <- string(m.Raw)
		case m.Method == "tools/call":
			ask <- send
		}
	}), w, 1<<20)
	go s.Call(t.Context(), &link.Call{Method: "tools/call", Params: []byte(`{"name":"x"}`), Client: "c"}) // it is never answered
	send := <-ask
	const bound = 64
	for i := range bound + 1 {
		send(`{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`, i)
	}
	if got := <-answers; !strings.Contains(got, "Too many requests at once") {
		t.Errorf("request %d: got %s, want a refusal", bound+1, got)
	}
	send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	if got, want := <-answers, `{"jsonrpc":"2.0","id":"p","result":{}}`; got != want {
		t.Errorf("the ping: got %s, want %s", got, want)
	}
}

// Calls of one caller leave room for the requests that others cause.
func TestRequestsOfOneCaller(t *testing.T) {
	const bound = 64
	refused := make(chan string, 200)
	w := &waiting{started: make(chan string, 200), causes: make(chan error, 200)}
	srv := answering(t, func(rw http.ResponseWriter, r *http.Request, m jsonrpc.Message) bool {
		switch {
		case m.ID != "" && m.IsResponse():
			refused <- string(m.ID)
			rw.WriteHeader(http.StatusAccepted)
			return true
		case m.Method != "tools/call":
			return false
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		for i := range bound + 1 {
			fmt.Fprintf(rw, "data: "+`{"jsonrpc":"2.0","id":"%s%d","method":"roots/list"}`+"\n\n", jsonrpc.Text(jsonrpc.Get(m.Params, "name")), i)
		}
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done()
		return true
	})
	s := connect(t, link.Target{URL: srv.URL}, w, 1<<20)
	for _, caller := range []string{"a", "b"} {
		go s.Call(t.Context(), &link.Call{Method: "tools/call", Params: fmt.Appendf(nil, `{"name":%q}`, caller), Client: caller, Caller: caller}) // it is never answered
		for range bound {
			<-w.started
		}
		if got, want := <-refused, fmt.Sprintf("%q", caller+"64"); got != want {
			t.Errorf("got %s refused, want %s alone", got, want)
		}
	}
}
