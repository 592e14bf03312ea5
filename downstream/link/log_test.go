package link_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/link/http1"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// connectAs is connect with another handler.
func connectAs(t *testing.T, target link.Target, h link.Handler) *link.Session {
	return connectLogging(t, target, h, &mcptest.Log{})
}

func connectLogging(t *testing.T, target link.Target, h link.Handler, l *mcptest.Log) *link.Session {
	t.Helper()
	transport := http1.New(&http.Transport{})
	s, err := link.Connect(t.Context(), link.Options{
		Server: "srv", Target: target, Initialize: []byte(`{"protocolVersion":"2025-11-25","capabilities":{}}`), Handler: h, MaxMessage: 1 << 20, HTTP: transport,
		Logger: slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() { s.Close(); transport.CloseIdleConnections() })
	return s
}

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
	}), &listener{}, &l)
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
			s := connectLogging(t, target, &listener{}, &l)
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
	s := connectLogging(t, link.Target{URL: srv.URL}, &listener{}, &l)
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
func TestFailedConnectIsNoLoss(t *testing.T) {
	for name, target := range map[string]link.Target{
		"nobody listens":        {URL: "http://127.0.0.1:1"},
		"the program ends":      {Command: []string{"false"}},
		"nobody listens to SSE": {URL: "http://127.0.0.1:1", SSE: true},
	} {
		t.Run(name, func(t *testing.T) {
			var l mcptest.Log
			_, err := link.Connect(t.Context(), link.Options{
				Server: "srv", Target: target, Initialize: []byte(`{}`), Handler: &listener{}, MaxMessage: 1 << 20, HTTP: &http.Transport{},
				Logger: slog.New(slog.NewTextHandler(&l, nil)),
			})
			if got := l.Lines("lost"); err == nil || len(got) > 0 {
				t.Errorf("got %v and the log %q, want an error and no line of a loss", err, got)
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
		_, err := link.Connect(t.Context(), link.Options{Server: "srv", Target: link.Target{URL: srv.URL}, MaxMessage: 1000, HTTP: http.DefaultTransport, Logger: slog.New(slog.DiscardHandler), Handler: &listener{}})
		f, ok := err.(*link.Failure)
		if !ok || f.After < tc.min || f.After > tc.max {
			t.Errorf("%q: got %+v, want a wait of %v to %v", tc.header, f, tc.min, tc.max)
		}
		srv.Close()
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// A server that refuses the handshake and says nothing to the other one does not hold up whoever connects.
func TestRefusalAndSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := link.Connect(t.Context(), link.Options{Server: "srv", Target: refusing(), MaxMessage: 1000, Logger: slog.New(slog.DiscardHandler), Handler: &listener{}})
		f, ok := err.(*link.Failure)
		if took := time.Since(began); !ok || f.Reason != reason.Protocol || !strings.Contains(f.Message, "not you") || took > 5*time.Second {
			t.Errorf("got %+v after %v, want the refusal within 5 s", err, took)
		}
	})
}

// refusing is a server that refuses initialize and ignores all else.
func refusing() link.Target {
	return link.Target{Dial: func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			for lines := bufio.NewScanner(theirs); lines.Scan(); {
				if m, _ := jsonrpc.Parse(lines.Bytes()); m.Method == "initialize" {
					fmt.Fprintf(theirs, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"not you"}}`+"\n", m.ID)
				}
			}
		}()
		return ours, nil
	}}
}
