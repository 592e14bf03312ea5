package link_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// spoken is how a server of one era or both answers.
type spoken struct {
	discover, initialize string // raw members of the responses; empty = no answer
	late                 string // response to server/discover that follows initialize; over a stream
	dies                 bool   // at server/discover
	status               int    // of what answers server/discover; 0 = 200
}

type eraServer struct {
	spoken
	mu  sync.Mutex
	got []string // methods
}

const (
	yes2026 = `"result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{}}`
	yes2025 = `"result":{"protocolVersion":"2025-11-25","capabilities":{}}`
	unknown = `"error":{"code":-32601,"message":"Method not found"}`
)

// answer returns the response to a request; ok is false if there is none.
func (s *eraServer) answer(m jsonrpc.Message) (response string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, m.Method)
	members := map[string]string{"server/discover": s.discover, "initialize": s.initialize}[m.Method]
	if m.Method == "tools/call" {
		members = `"result":{}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, members), members != ""
}

// take returns the methods that it got since the last call.
func (s *eraServer) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := slices.DeleteFunc(s.got, func(method string) bool { return method == "" })
	s.got = nil
	return strings.Join(got, " ")
}

func (s *eraServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	raw, _ := io.ReadAll(r.Body)
	m, _ := jsonrpc.Parse(raw)
	answer, ok := s.answer(m)
	switch {
	case m.IsNotification():
		w.WriteHeader(http.StatusAccepted)
	case !ok: // a stream without end
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, ": not yet\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	case m.Method == "server/discover" && s.status != 0:
		status(s.status, s.discover)(w, nil)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}
}

func (s *eraServer) pipe() link.Target {
	return pipe(func(conn net.Conn, lines *bufio.Reader) {
		var first jsonrpc.ID
		for m, ok := next(lines); ok; m, ok = next(lines) {
			answer, ok := s.answer(m)
			if m.Method == "server/discover" && s.dies {
				return
			}
			if m.Method == "initialize" && s.late != "" {
				fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", first, s.late)
			}
			first = m.ID
			if ok {
				fmt.Fprintln(conn, answer)
			}
		}
	})
}

// open opens a session with what an Era remembers, and returns its version.
func open(t *testing.T, target link.Target, era *link.Era, handshake bool) (string, error) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := link.Connect(ctx, link.Options{
		Server: "srv", Target: target, Initialize: []byte(`{"protocolVersion":"2025-11-25","capabilities":{}}`),
		Handler: &listener{}, MaxMessage: 1 << 20, HTTP: transport, Logger: slog.New(slog.DiscardHandler),
		Era: era, Handshake: handshake,
	})
	if err != nil {
		return "", err
	}
	defer s.Close()
	_, err = s.Call(ctx, &link.Call{Method: "tools/call"})
	return s.Version, err
}

// A session is of the preferred era if the server speaks it, else of the other, and the next one begins with what the
// server speaks.
func TestEras(t *testing.T) {
	const (
		modern, old = "2026-07-28", "2025-11-25"
		handshake   = "initialize notifications/initialized tools/call"
	)
	named := func(versions string) string {
		return `"error":{"code":-32022,"message":"no","data":{"supported":[` + versions + `],"requested":"2026-07-28"}}`
	}
	for _, tt := range []struct {
		name                string
		server              spoken
		only                bool // over HTTP
		handshake           bool
		version, got, after string // after = of the second session
	}{
		{name: "both", server: spoken{discover: yes2026, initialize: yes2025},
			version: modern, got: "server/discover tools/call", after: "server/discover tools/call"},
		{name: "both, for a client with the handshake", server: spoken{discover: yes2026, initialize: yes2025}, handshake: true,
			version: old, got: handshake, after: handshake},
		{name: "the new one, for a client with the handshake", server: spoken{discover: yes2026, initialize: unknown}, handshake: true,
			version: modern, got: "initialize server/discover tools/call", after: "server/discover tools/call"},
		{name: "the old one", server: spoken{discover: unknown, initialize: yes2025},
			version: old, got: "server/discover " + handshake, after: handshake},
		{name: "it answers anything", server: spoken{discover: `"result":{}`, initialize: yes2025},
			version: old, got: "server/discover " + handshake, after: handshake},
		{name: "it names old versions", server: spoken{discover: named(`"2025-06-18"`), initialize: yes2025},
			version: old, got: "server/discover " + handshake, after: handshake},
		{name: "its result names old versions", server: spoken{initialize: yes2025,
			discover: `"result":{"supportedVersions":["2025-11-25"],"capabilities":{}}`},
			version: old, got: "server/discover " + handshake, after: handshake},
		{name: "no answer", server: spoken{initialize: yes2025}, // it may answer the next time
			version: old, got: "server/discover " + handshake, after: "server/discover " + handshake},
		{name: "an answer after initialize", server: spoken{late: yes2026, initialize: yes2025},
			version: old, got: "server/discover " + handshake, after: "server/discover " + handshake},
		{name: "a version that is no list", server: spoken{initialize: yes2025,
			discover: `"result":{"supportedVersions":"2026-07-28","capabilities":{}}`},
			version: old, got: "server/discover " + handshake, after: handshake},
		{name: "a result that is no object", server: spoken{discover: `"result":["2026-07-28"]`, initialize: yes2025},
			version: old, got: "server/discover " + handshake, after: handshake},
		{name: "an error that is no object", server: spoken{discover: `"error":["2026-07-28"]`, initialize: yes2025},
			version: old, got: "server/discover " + handshake, after: handshake},
		{name: "members of wrong types", server: spoken{initialize: yes2025,
			discover: `"result":{"supportedVersions":[7,null,["2025-11-25"],"2026-07-28"],"capabilities":7,"_meta":[],"ttlMs":{}}`},
			version: modern, got: "server/discover tools/call", after: "server/discover tools/call"},
		{name: "a huge result", server: spoken{initialize: yes2025, discover: yes2026[:len(yes2026)-1] + `,"x":"` + strings.Repeat("x", 1<<20) + `"}`}, only: true,
			version: old, got: "server/discover " + handshake, after: "server/discover " + handshake},
		{name: "text", server: spoken{discover: "unsupported method", status: 400, initialize: yes2025}, only: true,
			version: old, got: "server/discover " + handshake, after: handshake},
		{name: "not found", server: spoken{discover: "no", status: 404, initialize: yes2025}, only: true,
			version: old, got: "server/discover " + handshake, after: handshake},
		{name: "it fails", server: spoken{discover: "no", status: 500, initialize: yes2025}, only: true,
			version: old, got: "server/discover " + handshake, after: "server/discover " + handshake},
	} {
		over := func(t *testing.T, target link.Target, server *eraServer) {
			var era link.Era
			for i, want := range []string{tt.got, tt.after} {
				version, err := open(t, target, &era, tt.handshake)
				if got := server.take(); version != tt.version || got != want || err != nil {
					t.Errorf("session %d: got version %q after %q, %v; want %q after %q", i+1, version, got, err, tt.version, want)
				}
			}
		}
		if !tt.only {
			t.Run(tt.name+"/stream", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { s := &eraServer{spoken: tt.server}; over(t, s.pipe(), s) })
			})
		}
		t.Run(tt.name+"/HTTP", func(t *testing.T) {
			t.Parallel()
			s := &eraServer{spoken: tt.server}
			srv := httptest.NewServer(s)
			defer srv.Close()
			over(t, link.Target{URL: srv.URL}, s)
		})
	}
}

// A process that reads late is not taken for one of another era, and starts once.
func TestSlowStart(t *testing.T) {
	for _, tt := range []struct {
		name, discover, initialize string
		known                      bool // to lack the handshake
		version                    string
	}{
		{"both", yes2026, yes2025, false, "2025-11-25"},
		{"the new one", yes2026, unknown, false, "2026-07-28"},
		{"the new one, known", yes2026, unknown, true, "2026-07-28"},
		{"the old one", unknown, yes2025, false, "2025-11-25"},
		{"the old one, in place of the new one", unknown, yes2025, true, "2025-11-25"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var era link.Era
				if tt.known {
					s := &eraServer{spoken: spoken{discover: yes2026, initialize: unknown}}
					if _, err := open(t, s.pipe(), &era, true); err != nil {
						t.Fatal(err)
					}
				}
				starts, began := 0, time.Now()
				s := &eraServer{spoken: spoken{discover: tt.discover, initialize: tt.initialize}}
				fast := s.pipe()
				target := link.Target{Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
					starts++
					return slowly(ctx, t, fast)
				}}
				version, err := open(t, target, &era, true)
				if took := time.Since(began); version != tt.version || err != nil || starts != 1 || took > 16*time.Second {
					t.Errorf("got %q, %v after %d starts and %v; want %s after one of 15 s", version, err, starts, took, tt.version)
				}
			})
		})
	}
}

// slowly connects to a server that begins to read after 15 s.
func slowly(ctx context.Context, t *testing.T, to link.Target) (io.ReadWriteCloser, error) {
	t.Helper()
	server, err := to.Dial(ctx)
	if err != nil {
		return nil, err
	}
	ours, theirs := io.Pipe()
	go func() {
		defer server.Close()
		time.Sleep(15 * time.Second) // of synctest
		_, _ = io.Copy(server, bufio.NewReader(ours))
	}()
	return &pair{server, theirs}, nil
}

// pair reads from a server and writes to what reads for it.
type pair struct {
	io.ReadCloser
	in *io.PipeWriter
}

func (p *pair) Write(b []byte) (int, error) { return p.in.Write(b) }

func (p *pair) Close() error { return errors.Join(p.in.Close(), p.ReadCloser.Close()) }

// What forbids server/discover is the reason why there is no session, and a server that cannot be used now is not asked
// in the other way.
func TestUnusable(t *testing.T) {
	for code, want := range map[int]string{401: reason.Unauthorized, 403: reason.Unauthorized, 429: reason.Overloaded} {
		s := &eraServer{spoken: spoken{discover: "no", status: code, initialize: unknown}}
		srv := httptest.NewServer(s)
		_, err := open(t, link.Target{URL: srv.URL}, &link.Era{}, false)
		if f, got := failure(err), s.take(); f.Reason != want || got != "server/discover" {
			t.Errorf("%d: got %v after %q, want it %s after server/discover", code, err, got, want)
		}
		srv.Close()
	}
}

// A server that is replaced by one of the other era is used again: at once, or the next time if it ends at the request
// that it does not know.
func TestReplacedByOtherEra(t *testing.T) {
	const handshake = "initialize notifications/initialized tools/call"
	modern, old := spoken{discover: yes2026, initialize: unknown}, spoken{discover: unknown, initialize: yes2025}
	type session struct {
		server       spoken
		version, got string // version is empty if there is no session
	}
	test := func(t *testing.T, target link.Target, s *eraServer, handshake bool, sessions []session) {
		var era link.Era
		for i, want := range sessions {
			s.mu.Lock()
			s.spoken = want.server
			s.mu.Unlock()
			version, err := open(t, target, &era, handshake)
			if got := s.take(); version != want.version || got != want.got || (err == nil) != (want.version != "") {
				t.Errorf("session %d: got version %q after %q, %v; want %q after %q", i+1, version, got, err, want.version, want.got)
			}
		}
	}
	t.Run("HTTP", func(t *testing.T) {
		s := &eraServer{}
		srv := httptest.NewServer(s)
		defer srv.Close()
		test(t, link.Target{URL: srv.URL}, s, false, []session{
			{modern, "2026-07-28", "server/discover tools/call"},
			{old, "2025-11-25", "server/discover " + handshake},
			{old, "2025-11-25", handshake},
			{modern, "2026-07-28", "initialize server/discover tools/call"},
			{modern, "2026-07-28", "server/discover tools/call"},
		})
	})
	for name, sessions := range map[string][]session{
		"process, silent": {
			{modern, "2026-07-28", "initialize server/discover tools/call"},
			{modern, "2026-07-28", "server/discover tools/call"},
			{spoken{initialize: yes2025}, "2025-11-25", "server/discover " + handshake},
			{spoken{initialize: yes2025}, "2025-11-25", handshake},
		},
		"process, ends": {
			{modern, "2026-07-28", "initialize server/discover tools/call"},
			{spoken{initialize: yes2025, dies: true}, "", "server/discover"},
			{spoken{initialize: yes2025, dies: true}, "2025-11-25", handshake},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &eraServer{}
				test(t, s.pipe(), s, true, sessions)
			})
		})
	}
}

// A session is gone when its server no longer supports the session's version, or the request that opened it.
func TestReplacedDuringSession(t *testing.T) {
	refusal := func(versions string) string {
		return `"error":{"code":-32022,"message":"no","data":{"supported":` + versions + `}}`
	}
	for _, tc := range []struct {
		version, method, answer string
		gone                    bool
	}{
		{"2026-07-28", "tools/call", refusal(`["2025-11-25","2025-06-18"]`), true},
		{"2026-07-28", "tools/call", refusal(`["2026-07-28"]`), false},
		{"2026-07-28", "tools/call", refusal(`[]`), false},
		{"2026-07-28", "tools/call", unknown, false},
		{"2026-07-28", "server/discover", unknown, true},
		{"2025-11-25", "tools/call", refusal(`["2026-07-28"]`), true},
		{"2025-11-25", "tools/call", refusal(`["2026-07-28","2025-11-25"]`), false},
		{"2025-11-25", "ping", unknown, false},
	} {
		var replaced atomic.Bool
		srv := answering(t, func(w http.ResponseWriter, _ *http.Request, m jsonrpc.Message) bool {
			answer, status := yes2026, http.StatusOK
			switch {
			case replaced.Load():
				answer, status = tc.answer, http.StatusBadRequest
			case m.Method != "server/discover" || tc.version != "2026-07-28":
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)
			return true
		})
		s := connect(t, link.Target{URL: srv.URL}, &listener{}, 1<<20)
		if s.Version != tc.version {
			t.Fatalf("got version %s, want %s", s.Version, tc.version)
		}
		replaced.Store(true)
		_, err := s.Call(t.Context(), &link.Call{Method: tc.method})
		if got := failure(err); got.Unknown != tc.gone || (s.Err() != nil) != tc.gone {
			t.Errorf("%s, %s answered with %s: got %v and the end %v, want it gone: %t", tc.version, tc.method, tc.answer, err, s.Err(), tc.gone)
		}
	}
}

// A server that names 2026-07-28 when it refuses that version is asked once more.
func TestUnsupportedVersion(t *testing.T) {
	s := &eraServer{spoken: spoken{
		discover: `"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}`, initialize: unknown}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	_, err := open(t, link.Target{URL: srv.URL}, &link.Era{}, false)
	if got := s.take(); got != "server/discover server/discover initialize" || failure(err).Reason != reason.Protocol {
		t.Errorf("got %v after %q, want two attempts, then the handshake", err, got)
	}
}
