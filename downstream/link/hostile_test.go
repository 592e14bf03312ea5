package link_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"runtime"
	"runtime/debug"
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
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// raw is a server on a pipe that answers the handshake and leaves the rest to the test.
func raw(each func(m jsonrpc.Message, send func(format string, args ...any))) link.Target {
	return pipe(func(conn net.Conn, lines *bufio.Reader) {
		send := func(format string, args ...any) { fmt.Fprintf(conn, format+"\n", args...) }
		for m, ok := next(lines); ok; m, ok = next(lines) {
			if m.Method == "initialize" {
				fmt.Fprintf(conn, welcome, m.ID)
			} else {
				each(m, send)
			}
		}
	})
}

// Nothing that a server says out of turn reaches a call, before or after its response.
func TestOutOfTurn(t *testing.T) {
	var late atomic.Int64
	s := connect(t, raw(func(m jsonrpc.Message, send func(string, ...any)) {
		if m.Method != "tools/call" {
			return
		}
		token := jsonrpc.Get(m.Params, "_meta", "progressToken")
		progress := func(token string) {
			send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, token)
		}
		send(`{"jsonrpc":"2.0","id":99999,"result":{"of":"nobody"}}`)
		send(`{"jsonrpc":"2.0","id":"%s","result":{"of":"a string"}}`, m.ID)
		send(`{"jsonrpc":"2.0","id":%s.0,"result":{"of":"a fraction"}}`, m.ID)
		send(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`)
		send(`{"jsonrpc":"2.0","id":%s,"id":%s,"result":{"of":"twice"}}`, m.ID, m.ID)
		send(`[{"jsonrpc":"2.0","id":%s,"result":{"of":"a batch"}}]`, m.ID)
		send(`{{{`)
		send(``)
		progress("99999")
		progress(`"` + string(token) + `"`)
		progress(string(token))
		send(`{"jsonrpc":"2.0","id":%s,"result":{"of":"me"}}`, m.ID)
		send(`{"jsonrpc":"2.0","id":%s,"result":{"of":"me again"}}`, m.ID)
		for range 10 {
			progress(string(token))
		}
	}), &listener{}, 1<<20)
	for range 200 {
		over := false
		reports := 0
		var mu sync.Mutex
		got, err := s.Call(t.Context(), &link.Call{Method: "tools/call", Progress: func([]byte) {
			mu.Lock()
			defer mu.Unlock()
			if reports++; over {
				late.Add(1)
			}
		}})
		mu.Lock()
		over = true
		if err != nil || string(got.Result) != `{"of":"me"}` || reports != 1 {
			t.Fatalf("got %s, %v after %d reports; want its own result after one", got.Result, err, reports)
		}
		mu.Unlock()
	}
	if n := late.Load(); n > 0 {
		t.Errorf("%d reports came after the result", n)
	}
}

// Notifications, progress and responses are handed over in the order they were sent.
func TestOrder(t *testing.T) {
	l := &ordered{}
	s := connect(t, raw(func(m jsonrpc.Message, send func(string, ...any)) {
		if m.Method != "tools/call" {
			return
		}
		for i := range 100 {
			send(`{"jsonrpc":"2.0","method":"notifications/n%d"}`, i)
			send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.ID, i)
		}
		send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	}), &l.listener, 1<<20)
	var got []string
	if _, err := s.Call(t.Context(), &link.Call{Method: "tools/call", Progress: func(p []byte) {
		l.mu.Lock()
		defer l.mu.Unlock()
		got = append(got, fmt.Sprintf("%s after %d", jsonrpc.Get(p, "progress"), len(l.notified)))
	}}); err != nil {
		t.Fatal(err)
	}
	for i, p := range got {
		if want := fmt.Sprintf("%d after %d", i, i+1); p != want {
			t.Fatalf("got %s, want %s", p, want)
		}
	}
	if len(got) != 100 || l.notified[99] != "notifications/n99" {
		t.Errorf("got %d reports and notifications %v", len(got), l.notified)
	}
}

type ordered struct{ listener }

// A server that asks without reading the answers costs a bounded number of goroutines.
func TestFloodOfQuestions(t *testing.T) {
	released := make(chan struct{})
	target := pipe(func(conn net.Conn, lines *bufio.Reader) {
		greet(conn, lines)
		for i := range 20_000 {
			fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%d,"method":%q}`+"\n", i, []string{"roots/list", "ping"}[i%2])
		}
		close(released)
		io.Copy(io.Discard, lines)
	})
	// While the garbage collector frees the stacks of goroutines that have ended, NumGoroutine counts them.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := runtime.NumGoroutine()
	s := connect(t, target, &listener{}, 1<<20)
	most := 0
	for done := false; !done; {
		select {
		case <-released:
			done = true
		case <-time.After(time.Millisecond):
		}
		most = max(most, runtime.NumGoroutine()-before)
	}
	if most > 1500 {
		t.Errorf("got %d goroutines more, want them to be bounded", most)
	}
	s.Close()
}

// A child that does not read holds no caller beyond its time, and no Close; what it never saw is not
// cancelled, and surely was not delivered.
func TestBlockedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		got := map[string]int{}
		gate := make(chan struct{})
		target := pipe(func(conn net.Conn, lines *bufio.Reader) {
			for m, ok := next(lines); ok; m, ok = next(lines) {
				mu.Lock()
				got[m.Method]++
				mu.Unlock()
				switch m.Method {
				case "initialize":
					fmt.Fprintf(conn, welcome, m.ID)
				case "notifications/initialized":
					<-gate
				}
			}
		})
		s := connect(t, target, &listener{}, 1<<20)
		synctest.Wait()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := s.Call(ctx, &link.Call{Method: "tools/call", Params: []byte(`{"x":"` + strings.Repeat("y", 1000) + `"}`)}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		close(gate)
		synctest.Wait()
		mu.Lock()
		if got["tools/call"] != 1 || got["notifications/cancelled"] != 1 {
			t.Errorf("the server saw %v, want the call that was being written and its cancellation", got)
		}
		mu.Unlock()
		s.Close()
	})
}

// What was never written whole did not reach the server.
func TestUndelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		target := pipe(func(conn net.Conn, lines *bufio.Reader) {
			greet(conn, lines)
			next(lines)
			<-leave
		})
		s := connect(t, target, &listener{}, 1<<20)
		errs := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := s.Call(t.Context(), &link.Call{Method: "tools/call", Params: []byte(`{"x":"` + strings.Repeat("y", 1000) + `"}`)})
				errs <- err
			}()
		}
		synctest.Wait() // one is being written, two wait
		close(leave)
		for range 3 {
			err := <-errs
			if f := failure(err); f.MaybeDelivered || !f.Lost {
				t.Errorf("got %v (%+v), want it undelivered and the session lost", err, f)
			}
		}
		s.Close()
	})
}

// The failure of a child says how it ended and which error it named.
func TestLastWords(t *testing.T) {
	for script, want := range map[string]string{
		`node -e 'console.error("ready"); setTimeout(() => undefined.port)'`: "the process ended with exit status 1: TypeError: Cannot read properties",
		`python3 -c 'import nope_module'`:                                    "the process ended with exit status 1: ModuleNotFoundError: No module named 'nope_module'",
		`nope_command --stdio`:                                               "nope_command: not found",
		`echo "cannot find the license" >&2; exit 3`:                         "the process ended with exit status 3: cannot find the license",
		`kill -9 $$`: "signal: killed",
		`i=0; while [ $i -lt 8000 ]; do echo "flood $i" >&2; i=$((i+1)); done; exit 1`: "flood 7999",
		`head -c 300000 /dev/zero | tr '\0' x >&2; exit 1`:                             "xxxx",
	} {
		if program, _, _ := strings.Cut(script, " "); slices.Contains([]string{"node", "python3"}, program) {
			if _, err := exec.LookPath(program); err != nil {
				continue
			}
		}
		if f := connectFails(t, link.Target{Command: []string{"sh", "-c", script}}); f.Reason != reason.Disconnected || !strings.Contains(f.Message, want) || len(f.Message) > 5000 {
			t.Errorf("%s: got %.200s, want %q", script, f.Message, want)
		}
	}
}

// The headers of each request are those that were configured and those of the protocol.
func TestHeaders(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]http.Header{}
	fine := newScript().http()
	gets := make(chan string, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, _ := jsonrpc.Parse(body)
		mu.Lock()
		seen[r.Method+" "+m.Method] = r.Header.Clone()
		mu.Unlock()
		switch r.Method {
		case http.MethodGet:
			gets <- r.Header.Get("Last-Event-ID")
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: event-%d\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n", len(gets))
			return // cut
		case http.MethodDelete:
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		fine.ServeHTTP(w, r)
	}))
	defer srv.Close()
	s := connect(t, link.Target{URL: srv.URL, Headers: map[string]redact.Secret{"Authorization": "Bearer x", "x-own": "1"}}, &listener{}, 1<<20)
	if _, err := call(t, s, "echo"); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for range 2 {
		select {
		case id := <-gets:
			ids = append(ids, id)
		case <-time.After(20 * time.Second):
			t.Fatal("the stream is not opened again")
		}
	}
	if !slices.Equal(ids, []string{"", "event-1"}) && !slices.Equal(ids, []string{"", "event-0"}) {
		t.Errorf("got Last-Event-ID %q, want none and then the last", ids)
	}
	s.Close()
	mu.Lock()
	defer mu.Unlock()
	for _, request := range []string{"POST initialize", "POST notifications/initialized", "POST tools/call", "GET ", "DELETE "} {
		h := seen[request]
		if h.Get("Authorization") != "Bearer x" || h.Get("X-Own") != "1" {
			t.Errorf("%s: got %v, want what was configured", request, h)
		}
		session, version := h.Get("Mcp-Session-Id"), h.Get("Mcp-Protocol-Version")
		if first := request == "POST initialize"; first && session+version != "" || !first && (session != "the-session" || version != "2025-11-25") {
			t.Errorf("%s: got session %q and version %q", request, session, version)
		}
		accept, kind := h.Get("Accept"), h.Get("Content-Type")
		if strings.HasPrefix(request, "POST") && (accept != "application/json, text/event-stream" || kind != "application/json") || request == "GET " && accept != "text/event-stream" {
			t.Errorf("%s: got Accept %q, Content-Type %q", request, accept, kind)
		}
	}
}

// Hundreds of calls at once on each transport: each gets its own answer.
func TestManyCalls(t *testing.T) {
	t.Parallel()
	for name, dial := range targets(t) {
		t.Run(name, func(t *testing.T) {
			target, _ := dial()
			s := connect(t, target, &listener{}, 1<<20)
			var wg sync.WaitGroup
			var wrong atomic.Int64
			for i := range 300 {
				wg.Go(func() {
					params := fmt.Sprintf(`{"name":"echo","n":%d}`, i)
					if got, err := s.Call(t.Context(), &link.Call{Method: "tools/call", Params: []byte(params)}); err != nil || string(got.Result) != params {
						if wrong.Add(1) == 1 {
							t.Errorf("got %s, %v; want %s", got.Result, err, params)
						}
					}
				})
			}
			wg.Wait()
			if n := wrong.Load(); n > 0 {
				t.Errorf("%d calls went wrong", n)
			}
			if n := s.InFlight(); n != 0 {
				t.Errorf("got %d calls in flight, want none", n)
			}
		})
	}
}

// A session that the server has forgotten, or cannot be reached, is lost for all; its other calls end by
// themselves.
func TestSSEStatus(t *testing.T) {
	for status, want := range map[int]link.Failure{
		401: {Reason: reason.Unauthorized}, 404: {Reason: reason.Disconnected, Lost: true, Unknown: true}, 400: {Reason: reason.Protocol},
		413: {Reason: reason.TooLarge}, 429: {Reason: reason.Overloaded, MaybeDelivered: true, After: 7 * time.Second}, 500: {Reason: reason.Unavailable, MaybeDelivered: true},
		503: {Reason: reason.Unavailable, MaybeDelivered: true, After: 7 * time.Second}, 307: {Reason: reason.Protocol},
	} {
		fine := newScript()
		var bad atomic.Bool
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && bad.Load() {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(status)
				return
			}
			fine.ServeHTTP(w, r)
		}))
		s := connect(t, link.Target{URL: srv.URL + "/sse", SSE: true}, &listener{}, 1<<20)
		bad.Store(true)
		_, err := call(t, s, "echo")
		f := failure(err)
		if f.Reason != want.Reason || f.Lost != want.Lost || f.Unknown != want.Unknown || f.MaybeDelivered != want.MaybeDelivered || f.After != want.After {
			t.Errorf("%d: got %+v, want %+v", status, f, want)
		}
		if lost := s.Err() != nil; lost != want.Lost {
			t.Errorf("%d: session lost: %v", status, lost)
		}
		s.Close()
		srv.Close()
	}
}

func TestHandshake(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"refused":          `"error":{"code":-32602,"message":"not you"}`,
		"refused, silence": `"error":{"code":-32602,"message":"not you"}`,
		"no version":       `"result":{}`,
		"no object":        `"result":[]`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				f := connectFails(t, pipe(func(conn net.Conn, lines *bufio.Reader) {
					for m, ok := next(lines); ok; m, ok = next(lines) {
						if m.Method == "initialize" || m.IsRequest() && !strings.HasSuffix(name, "silence") {
							fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer)
						}
					}
				}))
				if took := time.Since(began); f.Reason != reason.Protocol || took > 5*time.Second {
					t.Errorf("got %+v after %v, want a protocol failure within 5 s", f, took)
				}
				if strings.HasPrefix(name, "refused") && !strings.Contains(f.Message, "not you") {
					t.Errorf("got %q, want the server's reason in it", f.Message)
				}
			})
		})
	}
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	for name, target := range map[string]link.Target{
		"HTTP": {URL: hanging.URL}, "HTTP+SSE": {URL: hanging.URL, SSE: true}, "process": {Command: []string{"sh", "-c", "trap '' TERM; while :; do sleep 20; done"}},
	} {
		t.Run("silence over "+name, func(t *testing.T) {
			t.Parallel()
			const limit = 2 * time.Second
			fastest := time.Hour
			for try := 0; try < 3 && fastest > limit; try++ { // a busy machine is not slow three times
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				began := time.Now()
				_, err := tryConnect(ctx, t, target, &listener{}, 1000, io.Discard)
				fastest = min(fastest, time.Since(began))
				cancel()
				if f := failure(err); f.Reason != reason.Timeout || !strings.Contains(f.Message, "the handshake took too long") {
					t.Errorf("got %v, want a timeout", err)
				}
			}
			if fastest > limit {
				t.Errorf("the attempt took %v with its end, want at most %v", fastest, limit)
			}
		})
	}
}
