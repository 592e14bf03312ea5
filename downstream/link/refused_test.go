package link_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// answering serves script over streamable HTTP. answer deals with a message before it and returns false to leave it.
func answering(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) bool) *httptest.Server {
	fine := newScript().http()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		m, _ := jsonrpc.Parse(raw)
		if answer(w, r, m) {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(raw))
		fine.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv
}

// A request that is refused with 400 fails alone while the server knows the session.
func TestBadRequest(t *testing.T) {
	const no = `{"code":-32602,"message":"no","data":{"n":9007199254740993}}`
	for _, tc := range []struct {
		name, kind, body string
		want             string // the error object that is passed on; empty for a failure
	}{
		{"id null", "application/json", `{"jsonrpc":"2.0","id":null,"error":` + no + `}`, no},
		{"an id that is none", "application/json", `{"jsonrpc":"2.0","id":"server-error","error":` + no + `}`, no},
		{"another id", "application/json", `{"jsonrpc":"2.0","id":99,"error":` + no + `}`, no},
		{"text", "text/plain", "unsupported method\n", ""},
		{"unknown/method", "text/plain", "unsupported method\n", `{"code":-32601,"message":"Method not found: unknown/method"}`},
		{"nothing", "application/json", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var pings atomic.Int64
			srv := answering(t, func(w http.ResponseWriter, _ *http.Request, m jsonrpc.Message) bool {
				if m.Method == "ping" {
					pings.Add(1)
				}
				if m.Method != "tools/call" && m.Method != tc.name {
					return false
				}
				w.Header().Set("Content-Type", tc.kind)
				status(400, tc.body)(w, nil)
				return true
			})
			s := connect(t, link.Target{URL: srv.URL}, &listener{}, 1<<20)
			method := "tools/call"
			if tc.name == "unknown/method" {
				method = tc.name
			}
			got, err := s.Call(t.Context(), &link.Call{Method: method, Client: "c1"})
			f := failure(err)
			switch {
			case tc.want != "" && (err != nil || string(got.Err) != tc.want):
				t.Errorf("got %s, %v; want %s", got.Err, err, tc.want)
			case tc.want == "" && (f.Reason != reason.Protocol || f.Lost):
				t.Errorf("got %s, %+v; want a failure of the call alone", got.Err, err)
			}
			if s.Err() != nil || pings.Load() != 1 {
				t.Errorf("got session %v and %d pings, want it kept after one ping", s.Err(), pings.Load())
			}
		})
	}
}

// Many refused requests cause one ping at a time, and none waits for it longer than its caller does.
func TestOneProbeAtATime(t *testing.T) {
	var pings, most, current atomic.Int64
	release := make(chan struct{})
	srv := answering(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) bool {
		if m.Method == "ping" {
			pings.Add(1)
			most.Store(max(most.Load(), current.Add(1)))
			defer current.Add(-1)
			<-release
		}
		if m.Method == "tools/call" {
			status(400, "bad")(w, nil)
		}
		return m.Method == "tools/call"
	})
	s := connect(t, link.Target{URL: srv.URL}, &listener{}, 1<<20)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Call(ctx, &link.Call{Method: "tools/call"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of its context", err)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := call(t, s, "echo"); err == nil || s.Err() != nil {
				t.Errorf("got %v in session %v, want a failure of the call alone", err, s.Err())
			}
		})
	}
	close(release)
	wg.Wait()
	if pings.Load() > 50 || most.Load() != 1 {
		t.Errorf("got %d pings, %d at once; want one at a time", pings.Load(), most.Load())
	}
}

// Ids begin somewhere else in each session, and can be counted on in a float.
func TestIDsOfSessions(t *testing.T) {
	const exact = 1 << 53
	first := make(chan string, 1)
	srv := answering(t, func(_ http.ResponseWriter, _ *http.Request, m jsonrpc.Message) bool {
		if m.Method == "initialize" {
			first <- string(m.ID)
		}
		return false
	})
	seen := map[string]bool{}
	for range 5 {
		connect(t, link.Target{URL: srv.URL}, &listener{}, 1<<20)
		id := <-first
		if n, err := strconv.ParseInt(id, 10, 64); err != nil || n <= 0 || n > exact/2 || seen[id] {
			t.Errorf("got first id %s after %v, want another positive one with as much room above it", id, seen)
		}
		seen[id] = true
	}
}

// A server that answers the handshake and refuses what follows it with 400 is asked whether it speaks the modern
// protocol.
func TestHandshakeRefusedLate(t *testing.T) {
	for name, modern := range map[string]bool{"it does": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var later []http.Header // of the requests after the handshake
			srv := answering(t, func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) bool {
				switch m.Method {
				case "initialize":
					return false
				case "notifications/initialized":
					status(400, "unsupported protocol version\n")(w, nil)
					return true
				case "server/discover", "tools/call":
					mu.Lock()
					defer mu.Unlock()
					later = append(later, r.Header.Clone())
					if !modern {
						status(400, "unsupported method\n")(w, nil)
						return true
					}
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write(jsonrpc.Result(m.ID, []byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}`)))
				default:
					w.WriteHeader(http.StatusMethodNotAllowed)
				}
				return true
			})
			if !modern {
				if f := connectFails(t, link.Target{URL: srv.URL}); f.Reason != reason.Protocol {
					t.Errorf("got %+v, want the failure of the handshake", f)
				}
				return
			}
			s := connect(t, link.Target{URL: srv.URL}, &listener{}, 1<<20)
			if s.Version != "2026-07-28" {
				t.Errorf("got version %s, want the modern one", s.Version)
			}
			if _, err := call(t, s, "echo"); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, h := range later {
				if h.Get("Mcp-Session-Id") != "" || h.Get("Mcp-Protocol-Version") != "2026-07-28" || h.Get("Mcp-Method") == "" {
					t.Errorf("got headers %v, want those of the modern protocol and no session", h)
				}
			}
			if len(later) != 2 {
				t.Errorf("got %d requests, want 2", len(later))
			}
		})
	}
}
