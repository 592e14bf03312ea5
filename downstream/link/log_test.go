package link_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// The answer to a call that was cancelled may come late: that is nothing to warn of. An id that was never
// used is.
func TestLateAnswer(t *testing.T) {
	var l mcptest.Log
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan struct{}) // closed when the call is: an answer before that is no late one
	s := connectLogging(t, raw(func(m jsonrpc.Message, send func(string, ...any)) {
		switch m.Method {
		case "tools/call":
			cancel() // not before it has come: what was not sent is not cancelled
		case "notifications/cancelled":
			<-over
			send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, jsonrpc.Get(m.Params, "requestId"))
			send(`{"jsonrpc":"2.0","id":4711,"result":{}}`)
		}
	}), &listener{}, 1<<20, &l)
	if _, err := s.Call(ctx, &link.Call{Method: "tools/call"}); err == nil {
		t.Error("got an answer, want the call cancelled")
	}
	close(over)
	mcptest.Eventually(t, "the answers", func() bool { return len(l.Lines("level=WARN")) == 1 && len(l.Lines("request that is over")) == 1 })
	if got := l.Lines("level=WARN")[0]; !strings.Contains(got, "4711") {
		t.Errorf("got the warning %s, want one of id 4711", got)
	}
}

// However a session is lost, and by whomever that is seen first, it is logged once; its end is not a loss.
func TestLossIsLoggedOnce(t *testing.T) {
	for name, open := range targets(t) {
		t.Run(name, func(t *testing.T) {
			target, _ := open()
			var l mcptest.Log
			s := connectLogging(t, target, &listener{}, 1<<20, &l)
			s.Close()
			if got := l.Lines("session with server lost"); len(got) > 0 {
				t.Errorf("closed: got %q, want nothing", got)
			}
		})
	}
	fine := newScript().http()
	gone := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-gone:
			w.WriteHeader(http.StatusNotFound)
		default:
			fine.ServeHTTP(w, r)
		}
	}))
	defer srv.Close()
	var l mcptest.Log
	s := connectLogging(t, link.Target{URL: srv.URL}, &listener{}, 1<<20, &l)
	close(gone)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { _ = s.Notify(t.Context(), "notifications/n", nil) }) // it fails
	}
	wg.Wait()
	if got := l.Lines("session with server lost"); len(got) != 1 {
		t.Errorf("20 see the loss: got %d lines, want one", len(got))
	}
}

// Who never connected has lost nothing: the error of Connect is all that there is to tell.
func TestFailedConnect(t *testing.T) {
	for name, tc := range map[string]struct {
		target link.Target
		reason string
	}{
		"nobody listens":        {link.Target{URL: "http://127.0.0.1:1"}, reason.Unavailable},
		"nobody listens to SSE": {link.Target{URL: "http://127.0.0.1:1", SSE: true}, reason.Unavailable},
		"no such program":       {link.Target{Command: []string{"/no/such/program"}}, reason.Unavailable},
		"the program ends":      {link.Target{Command: []string{"false"}}, reason.Disconnected},
	} {
		t.Run(name, func(t *testing.T) {
			var l mcptest.Log
			_, err := tryConnect(t.Context(), t, tc.target, &listener{}, 1000, &l)
			if f := failure(err); f.Reason != tc.reason || f.MaybeDelivered && f.Reason == reason.Unavailable || l.Has("lost") {
				t.Errorf("got %v and the log %q, want %s and no line of a loss", err, l.String(), tc.reason)
			}
		})
	}
}

// Retry-After may be a date.
func TestRetryAfterDate(t *testing.T) {
	for _, tc := range []struct {
		header   string
		min, max time.Duration
	}{
		{"7", 7 * time.Second, 7 * time.Second},
		{time.Now().Add(30 * time.Minute).UTC().Format(http.TimeFormat), 20 * time.Minute, 30 * time.Minute},
		{time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat), 0, 0},
		{"999999", time.Hour, time.Hour}, {"-1", 0, 0}, {"soon", 0, 0}, {"", 0, 0},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", tc.header)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		if f := connectFails(t, link.Target{URL: srv.URL}); f.Reason == "" || f.After < tc.min || f.After > tc.max {
			t.Errorf("%q: got %+v, want a wait of %v to %v", tc.header, f, tc.min, tc.max)
		}
		srv.Close()
	}
}
