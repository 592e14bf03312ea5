package link_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/http1"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// TestMain lets the test binary be the child process of stdio tests.
func TestMain(m *testing.M) {
	if os.Getenv("LINK_TEST_CHILD") != "" {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// child is a stdio server that makes noise.
func child() {
	fmt.Println("starting up, this is no JSON")
	fmt.Fprintln(os.Stderr, "last words")
	newScript().ServeLines(os.Stdin, os.Stdout)
	if os.Getenv("LINK_TEST_CHILD") == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Minute)
	}
}

// script is a server that does what the names of its tools say. As an http.Handler it serves HTTP+SSE at /sse.
type script struct {
	mcptest.Server
	version   string // 2025-11-25 if it is empty
	mu        sync.Mutex
	received  []string // notifications and responses, raw
	cancelled chan string
}

func newScript() *script {
	s := &script{cancelled: make(chan string, 16)}
	s.OnMessage = s.handle
	return s
}

func (s *script) got(part string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.received, func(raw string) bool { return strings.Contains(raw, part) })
}

// handle answers one message by any number of messages.
func (s *script) handle(_ context.Context, m mcptest.Message, send func(raw string)) bool {
	if m.ID == nil || m.Method == "" {
		s.mu.Lock()
		s.received = append(s.received, m.Raw)
		s.mu.Unlock()
		if m.Method == "notifications/cancelled" {
			s.cancelled <- string(m.Params)
		}
		return true
	}
	token := jsonrpc.Get(m.Params, "_meta", "progressToken")
	progress := func(i int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"x":9007199254740993}}`, token, i)
	}
	response := func(members string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s%s}`, m.ID, members) }
	switch name := jsonrpc.Text(jsonrpc.Get(m.Params, "name")); {
	case m.Method == "initialize":
		send(m.Response(`{"protocolVersion":"` + cmp.Or(s.version, "2025-11-25") + `","capabilities":{},"serverInfo":{"name":"script","version":"1"}}`))
	case m.Method == "ping":
		send(m.Response("{}"))
	case name == "progress":
		for i := range 100 {
			send(progress(i))
		}
		send(m.Response(`{"content":[]}`))
	case name == "ask":
		// A request of ours with the very id of the call must not be taken for its answer.
		send(response(`,"method":"ping"`))
		send(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
		send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}`)
		send(m.Response(`{"asked":true}`))
	case name == "batch":
		send("[" + progress(1) + ", 7, " + m.Response(string(m.Params)) + `,{"jsonrpc":"2.0","method":"notifications/after"}]`)
	case name == "latin-1":
		send(m.Response("\"caf\xe9\""))
	case name == "both":
		send(response(`,"result":{},"error":{}`))
	case name == "neither":
		send(response(""))
	case name == "hang":
	case name == "env":
		send(m.Response(string(jsonrpc.StringID(strings.Join(os.Environ(), "\n")))))
	case name == "pid":
		send(m.Response(strconv.Itoa(os.Getpid())))
	case name == "big":
		send(m.Response(`"` + strings.Repeat("x", 200_000) + `"`))
	case name == "fail":
		send(response(`,"error":{"code":-32050,"message":"no","data":{"n":9007199254740993}}`))
	case name == "mute":
		os.Stdout.Close()
	default:
		send(m.Response(string(m.Params))) // echo
	}
	return true
}

// http serves streamable HTTP; every answer is a stream.
func (s *script) http() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		var m mcptest.Message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.ID == nil || m.Method == "" {
			w.WriteHeader(http.StatusAccepted)
			s.handle(r.Context(), m, nil)
			return
		}
		w.Header().Set("Mcp-Session-Id", "the-session")
		mcptest.BeginEvents(w)
		_, _ = io.WriteString(w, ": hello\r\n\r\nid: 1\nretry: 10\ndata:\n\n")
		s.handle(r.Context(), m, func(raw string) { mcptest.WriteEvent(w, raw) })
		if m.Call().Name == "hang" {
			<-r.Context().Done()
		}
	})
}

// listener is the Handler of the tests.
type listener struct {
	mu       sync.Mutex
	notified []string
	asked    []string
}

func (l *listener) Notified(m jsonrpc.Message, from []*link.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notified = append(l.notified, m.Method)
}

func (l *listener) Asked(_ context.Context, m jsonrpc.Message, from []*link.Call) (result, err []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	who := "nobody"
	if len(from) > 0 {
		who = from[0].Client
	}
	l.asked = append(l.asked, m.Method+" from "+who)
	return []byte(`{"roots":[]}`), nil
}

func (l *listener) has(list *[]string, want string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(strings.Join(*list, "|"), want)
}

func connect(t testing.TB, target link.Target, h link.Handler, max int) *link.Session {
	t.Helper()
	return connectLogging(t, target, h, max, io.Discard)
}

func connectLogging(t testing.TB, target link.Target, h link.Handler, max int, log io.Writer) *link.Session {
	t.Helper()
	s, err := tryConnect(t.Context(), t, target, h, max, log)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	return s
}

func tryConnect(
	ctx context.Context, t testing.TB, target link.Target, h link.Handler, max int, log io.Writer,
) (*link.Session, error) {
	transport := http1.New(&http.Transport{})
	t.Cleanup(transport.CloseIdleConnections)
	logger := slog.New(slog.DiscardHandler)
	if log != io.Discard {
		logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	s, err := link.Connect(ctx, link.Options{
		Server: "srv", Target: target, Initialize: []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`),
		Handler: h, MaxMessage: max, HTTP: transport, Logger: logger, Handshake: target.URL == "",
	})
	if err == nil {
		t.Cleanup(s.Close)
	}
	return s, err
}

// connectFails returns why a session cannot be opened, an empty failure if it can.
func connectFails(t testing.TB, target link.Target) link.Failure {
	_, err := tryConnect(t.Context(), t, target, &listener{}, 1000, io.Discard)
	return failure(err)
}

// failure returns the failure in err, an empty one if there is none.
func failure(err error) link.Failure {
	var f *link.Failure
	if !errors.As(err, &f) {
		return link.Failure{}
	}
	return *f
}

// pipe is a server on a pipe, which ends with serve.
func pipe(serve func(conn net.Conn, lines *bufio.Reader)) link.Target {
	return link.Target{Dial: func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			serve(theirs, bufio.NewReaderSize(theirs, 16))
		}()
		return ours, nil
	}}
}

// next reads a message.
func next(lines *bufio.Reader) (m jsonrpc.Message, ok bool) {
	line, err := lines.ReadBytes('\n')
	m, _ = jsonrpc.Parse(line)
	return m, err == nil
}

// welcome is the response to initialize, with the id to fill in.
const welcome = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}` + "\n"

// greet answers initialize, and refuses what comes before.
func greet(conn io.Writer, lines *bufio.Reader) {
	m, ok := next(lines)
	for ; ok && m.Method != "initialize"; m, ok = next(lines) {
		fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`+"\n", m.ID)
	}
	fmt.Fprintf(conn, welcome, m.ID)
}

// targets are the same server over every transport.
func targets(t *testing.T) map[string]func() (link.Target, *script) {
	return map[string]func() (link.Target, *script){
		"pipe": func() (link.Target, *script) {
			s := newScript()
			return pipe(func(conn net.Conn, lines *bufio.Reader) { s.ServeLines(lines, conn) }), s
		},
		"process": func() (link.Target, *script) {
			return link.Target{Command: []string{os.Args[0]}, Env: map[string]redact.Secret{"LINK_TEST_CHILD": "1"}}, nil
		},
		"http": func() (link.Target, *script) {
			s := newScript()
			srv := httptest.NewServer(s.http())
			t.Cleanup(srv.Close)
			return link.Target{URL: srv.URL + "/mcp"}, s
		},
		"sse": func() (link.Target, *script) {
			s := newScript()
			srv := httptest.NewServer(s)
			t.Cleanup(srv.Close)
			return link.Target{URL: srv.URL + "/sse", SSE: true}, s
		},
	}
}

func call(t *testing.T, s *link.Session, tool string) (link.Reply, error) {
	return s.Call(t.Context(), &link.Call{Method: "tools/call", Params: []byte(`{"name":"` + tool + `"}`), Client: "c1"})
}

func TestTransports(t *testing.T) {
	for name, dial := range targets(t) {
		t.Run(name, func(t *testing.T) {
			target, srv := dial()
			l := &listener{}
			s := connect(t, target, l, 1<<20)

			t.Run("bytes pass unchanged", func(t *testing.T) {
				params := `{"name":"echo", "arguments":{"n":9007199254740993,"e":1.50e+1},"zz":[ ],"_meta":{"a":{"b":1},"progressToken":"theirs"}}`
				got, err := s.Call(t.Context(), &link.Call{Method: "tools/call", Params: []byte(params)})
				if err != nil || string(got.Result) != params {
					t.Errorf("got %s, %v; want %s", got.Result, err, params)
				}
			})
			t.Run("progress comes first, in order and whole", func(t *testing.T) {
				var got []string
				_, err := s.Call(t.Context(), &link.Call{
					Method: "tools/call", Params: []byte(`{"name":"progress","_meta":{"k":1}}`),
					Progress: func(p []byte) { got = append(got, string(jsonrpc.Get(p, "progress"))+string(jsonrpc.Get(p, "x"))) },
				})
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != 100 {
					t.Fatalf("got %d notifications before the result, want 100", len(got))
				}
				for i, p := range got {
					if want := fmt.Sprintf("%d9007199254740993", i); p != want {
						t.Fatalf("notification %d: got %s, want %s", i, p, want)
					}
				}
			})
			t.Run("the server may ask", func(t *testing.T) {
				got, err := call(t, s, "ask")
				if err != nil || string(got.Result) != `{"asked":true}` {
					t.Fatalf("got %s, %v", got.Result, err)
				}
				mcptest.Eventually(t, "roots/list reaches the handler with its client", func() bool { return l.has(&l.asked, "roots/list from c1") })
				mcptest.Eventually(t, "the log message arrives", func() bool { return l.has(&l.notified, "notifications/message") })
				if srv != nil {
					mcptest.Eventually(t, "the answer arrives", func() bool { return srv.got(`"id":"q","result":{"roots":[]}`) })
				}
			})
			t.Run("errors pass unchanged", func(t *testing.T) {
				got, err := call(t, s, "fail")
				if want := `{"code":-32050,"message":"no","data":{"n":9007199254740993}}`; err != nil || string(got.Err) != want {
					t.Errorf("got %s, %v; want %s", got.Err, err, want)
				}
			})
			t.Run("a cancelled call tells the server", func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				sent := make(chan struct{})
				var once sync.Once
				done := make(chan error, 1)
				go func() {
					_, err := s.Call(ctx, &link.Call{Method: "tools/call", Params: []byte(`{"name":"hang"}`), Sent: func() { once.Do(func() { close(sent) }) }})
					done <- err
				}()
				<-sent
				mcptest.Eventually(t, "the call is in flight", func() bool { return s.InFlight() == 1 })
				time.AfterFunc(20*time.Millisecond, func() { cancel(errors.New("enough")) })
				if err := <-done; err == nil || err.Error() != "enough" {
					t.Errorf("got error %v, want the cause", err)
				}
				if srv != nil {
					select {
					case got := <-srv.cancelled:
						if !strings.Contains(got, `"reason":"enough"`) || !strings.Contains(got, `"requestId":`) {
							t.Errorf("got cancelled %s", got)
						}
					case <-time.After(20 * time.Second):
						t.Error("the server was not told")
					}
				}
			})
			t.Run("it works on after all that", func(t *testing.T) {
				if _, err := call(t, s, "echo"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// An answer that its caller has no room for fails the call alone; one that is too large fails it, too.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	for name, dial := range targets(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, _ := dial()
			s := connect(t, target, &listener{}, 1<<20)
			var asked atomic.Int64
			for _, room := range []int{100_000, 1 << 20} {
				r, err := s.Call(t.Context(), &link.Call{Method: "tools/call", Params: []byte(`{"name":"big"}`), Reserve: func(total int) bool {
					asked.Store(int64(total))
					return total <= room
				}})
				f := failure(err)
				switch {
				case room == 1<<20 && (err != nil || asked.Load() < int64(len(r.Result))):
					t.Errorf("with room: got %v and %d bytes reserved, want those of the result", err, asked.Load())
				case room < 1<<20 && (f.Reason != reason.TooLarge || !f.MaybeDelivered || f.Lost):
					t.Errorf("without room: got %v (%+v), want too_large, delivered", err, f)
				}
			}
			target, _ = dial()
			_, err := call(t, connect(t, target, &listener{}, 100_000), "big")
			if f := failure(err); f.Reason != reason.TooLarge || !f.MaybeDelivered {
				t.Errorf("got %v (%+v), want too_large, delivered", err, f)
			}
		})
	}
}

// TestHTTPFailures answers the second request in every wrong way.
func TestHTTPFailures(t *testing.T) {
	for _, tc := range []struct {
		name      string
		answer    http.HandlerFunc
		reason    string
		delivered bool
		lost      bool
	}{
		{"401", status(401, ""), reason.Unauthorized, false, false},
		{"404", status(404, ""), reason.Disconnected, false, true},
		{"429", status(429, ""), reason.Overloaded, true, false},
		{"502", status(502, ""), reason.Unavailable, true, false},
		{"503", status(503, ""), reason.Unavailable, true, false},
		{"504", status(504, ""), reason.Unavailable, true, false},
		{"500", status(500, ""), reason.Unavailable, true, false},
		{"413", status(413, ""), reason.TooLarge, false, false},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://10.0.0.1/", http.StatusTemporaryRedirect)
		}, reason.Protocol, false, false},
		{"HTML", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, reason.Protocol, true, false},
		{"another id", body("application/json", `{"jsonrpc":"2.0","id":99,"result":{}}`), reason.Protocol, true, false},
		{"no JSON", body("application/json", `{"jsonrpc":`), reason.Protocol, true, false},
		{"stream without response", body("text/event-stream", ": nothing\n\n"), reason.Disconnected, true, false},
		{"stream cut in an event", body("text/event-stream", "data: {\"jsonrpc\""), reason.Disconnected, true, false},
		{"connection cut", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, reason.Disconnected, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fine := newScript().http()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				raw, _ := io.ReadAll(r.Body)
				if strings.Contains(string(raw), "tools/call") {
					tc.answer(w, r)
					return
				}
				r.Body = io.NopCloser(strings.NewReader(string(raw)))
				fine.ServeHTTP(w, r)
			}))
			defer srv.Close()
			s := connect(t, link.Target{URL: srv.URL}, &listener{}, 1<<20)
			_, err := call(t, s, "echo")
			if f := failure(err); f.Reason != tc.reason || f.MaybeDelivered != tc.delivered || f.Lost != tc.lost {
				t.Errorf("got %v (%+v); want %s, delivered %v, lost %v", err, f, tc.reason, tc.delivered, tc.lost)
			}
		})
	}
}

func status(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); io.WriteString(w, text) }
}

func body(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, text)
	}
}

func TestSSEFailures(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"endpoint elsewhere": body("text/event-stream", "event: endpoint\ndata: http://10.0.0.1/messages\n\n"),
		"no endpoint":        body("text/event-stream", ": hello\n\n"),
		"no stream":          body("text/html", "<html>"),
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(answer)
			defer srv.Close()
			if f := connectFails(t, link.Target{URL: srv.URL, SSE: true}); f.Reason != reason.Protocol {
				t.Errorf("got %+v, want a protocol failure", f)
			}
		})
	}
}
