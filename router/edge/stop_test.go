package edge_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestStop(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	c := w.sse(nil)
	p := newStdio(t, w.edge, w.srv)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	p.line() // its session is open
	answers := make(chan string, 2)
	for _, tool := range []string{"hold", "sleep"} {
		go func() {
			_, _, body := w.post(call(`"`+tool+`"`, tool, "{}"), h)
			answers <- body
		}()
	}
	mcptest.Eventually(t, "both are served", func() bool { return len(w.srv.log()) == 2 })
	stopped := make(chan error, 1)
	ctx, force := context.WithCancel(context.Background())
	go func() { stopped <- w.edge.Stop(ctx) }()
	mcptest.Eventually(t, "new requests are refused", func() bool {
		status, _, body := w.post(call("2", "echo", "{}"), h)
		return status == 503 && strings.Contains(body, `"code":-32000`) && strings.Contains(body, `"reason":"unavailable"`)
	})
	w.want("a new session", initialize("2025-11-25"), nil, 503)
	close(w.srv.release)
	equal(t, "what was in flight", <-answers, `{"jsonrpc":"2.0","id":"hold","result":{"held":true}}`)
	force()
	<-answers
	equal(t, "cause of what did not end in time", w.srv.lastCause(), edge.ErrStopped)
	equal(t, "Stop", <-stopped, nil)
	if f, more := c.events.next(); more {
		t.Errorf("SSE stream: got %+v, want its end", f)
	}
	equal(t, "ServeStdio", <-p.done, nil)
	equal(t, "sessions ended", w.srv.ends(), 3)
	w.want("after Stop", call("2", "echo", "{}"), h, 503)
	equal(t, "ServeStdio after Stop", w.edge.ServeStdio(t.Context(), reader(""), &mcptest.Log{}, w.srv), edge.ErrStopped)
}

// Many sessions with calls that never return leave nothing behind.
func TestNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions, calls = 100, 10
		e, srv, endpoint := newDirect(t, edge.Options{
			Limits: limit.Config{SessionIdle: time.Minute, TrackedRequests: sessions * calls}})
		ctx, hangUp := context.WithCancel(t.Context())
		for range sessions {
			h := session(endpoint, "2025-11-25", nil)
			for c := range calls {
				go directly(ctx, endpoint, "POST", call(fmt.Sprint(c), "sleep", "{}"), h)
			}
		}
		synctest.Wait()
		equal(t, "in flight", e.Tracked(), sessions*calls)
		one := session(endpoint, "2025-11-25", nil)
		contains(t, "one more", direct(endpoint, "POST", call("1", "echo", "{}"), one).Body.String(), tooMuch)
		time.Sleep(2 * time.Minute)
		equal(t, "sessions while the clients wait", e.Sessions(), sessions)
		hangUp()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		equal(t, "sessions and requests at the end", e.Sessions()+e.Tracked(), 0)
		equal(t, "ended", srv.ends(), sessions+1)
	})
}

// Whenever Stop is called, a request is answered or refused. It is never cut off, and its session never unknown.
func TestStopRace(t *testing.T) {
	for range 30 {
		w := newWire(t, edge.Options{})
		h := w.open("2025-06-18")
		var wg sync.WaitGroup
		for id := range 4 {
			wg.Go(func() {
				for {
					status, _, body := w.post(call(strconv.Itoa(id), "echo", "{}"), h)
					if status == 503 {
						return
					}
					if status != 200 || !strings.Contains(body, `"result"`) {
						t.Errorf("got %d %s, want a result or 503", status, body)
						return
					}
				}
			})
		}
		mcptest.Eventually(t, "requests are served", func() bool { return len(w.srv.log()) > 8 })
		equal(t, "Stop", w.edge.Stop(t.Context()), nil)
		wg.Wait()
	}
}

// A client may read its responses slowly, until the context of Stop ends.
func TestStopWaitsForReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := edge.New(edge.Options{})
		h, srv := e.Streamable(newServer(), nil), newServer()
		var clients sync.WaitGroup

		slow := &slowWriter{ResponseRecorder: httptest.NewRecorder(), pause: 10 * time.Second}
		clients.Go(func() {
			h.ServeHTTP(slow, httptest.NewRequest("POST", "http://127.0.0.1/mcp", reader(call("1", "echo", "{}"))))
		})
		in, feed := io.Pipe()
		printed, out := io.Pipe()
		line := make(chan string, 1)
		clients.Go(func() {
			equal(t, "ServeStdio", e.ServeStdio(t.Context(), in, out, srv), nil)
			out.Close()
		})
		clients.Go(func() {
			time.Sleep(20 * time.Second)
			text, _ := io.ReadAll(printed)
			line <- string(text)
		})
		fmt.Fprintln(feed, call("2", "echo", "{}"))
		synctest.Wait()

		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		equal(t, "Stop", e.Stop(ctx), nil)
		if took := time.Since(began); took < 20*time.Second || took >= 30*time.Second {
			t.Errorf("Stop: took %v, want as long as the slowest answer, 20 s", took)
		}
		clients.Wait()
		contains(t, "over HTTP", slow.Body.String(), `"id":1,"result"`)
		contains(t, "on stdio", <-line, `"id":2,"result"`)
	})
}

// slowWriter takes its time for each write.
type slowWriter struct {
	*httptest.ResponseRecorder
	pause time.Duration
}

func (w *slowWriter) Write(b []byte) (int, error) {
	time.Sleep(w.pause)
	return w.ResponseRecorder.Write(b)
}

// During Stop each response closes its connection, also those of calls in flight.
func TestStopClosesConnections(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	answers := make(chan *http.Response, 2)
	for _, accept := range []string{"application/json", "text/event-stream"} {
		go func() {
			answers <- w.do(context.Background(), "POST", "/mcp", call(strconv.Quote(accept), "hold", "{}"),
				header{"Mcp-Session-Id": h["Mcp-Session-Id"], "Accept": accept})
		}()
	}
	mcptest.Eventually(t, "both are served", func() bool { return len(w.srv.log()) == 2 })
	stopped := make(chan error, 1)
	go func() { stopped <- w.edge.Stop(t.Context()) }()
	mcptest.Eventually(t, "new requests are refused", func() bool {
		resp := w.do(context.Background(), "POST", "/mcp", call("2", "echo", "{}"), nil)
		if resp.StatusCode == 503 && !resp.Close {
			t.Error("refused: got the connection kept, want it closed")
		}
		return resp.StatusCode == 503
	})
	if resp := w.do(context.Background(), "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		h); resp.StatusCode != 202 || !resp.Close {
		t.Errorf("a notification: got %d and closed %v, want 202 and the connection closed", resp.StatusCode, resp.Close)
	}
	close(w.srv.release)
	for range 2 {
		if resp := <-answers; resp.StatusCode != 200 || !resp.Close {
			t.Errorf("a call in flight: got %d and closed %v, want 200 and the connection closed", resp.StatusCode, resp.Close)
		}
	}
	equal(t, "Stop", <-stopped, nil)
}

// Stop waits until a client that reads slowly has read its answer, also if messages were dropped for a request that
// must not be.
func TestStopDrainsCrowdedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, srv, _ := newDirect(t, edge.Options{})
		stream, messages := e.SSE("/messages", srv)
		reading := pipeServer(t, stream)("GET /sse HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(reading), nil)
		if err != nil {
			t.Fatal(err)
		}
		ev := readEvents(t, resp.Body)
		f, _ := ev.next()
		messages.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "http://127.0.0.1"+f.data,
			reader(call("1", "crowd", "{}"))))
		time.Sleep(2 * time.Second)
		stopped := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			stopped <- e.Stop(ctx)
		}()
		for got := ""; got != `{"jsonrpc":"2.0","id":1,"result":{"done":true}}`; got = ev.message() {
			time.Sleep(20 * time.Millisecond)
		}
		go func() { _, _ = io.Copy(io.Discard, resp.Body) }()
		equal(t, "Stop", <-stopped, nil)
	})
}

// Refusals with an HTTP error are logged as messages too.
func TestRefusalsAreLogged(t *testing.T) {
	var log mcptest.Log
	w := newWire(t, edge.Options{Logger: slog.New(slog.NewJSONHandler(&log,
		&slog.HandlerOptions{Level: jsonrpc.LevelTrace}))})
	for _, tt := range []struct{ method, path, body, part string }{
		{"POST", "/mcp", `{{{`, `-32700`}, {"PUT", "/mcp", ``, `Method not allowed`},
		{"POST", "/messages/?session_id=none", `{}`, `Session not found`},
	} {
		w.do(context.Background(), tt.method, tt.path, tt.body, nil)
		if !log.Has(tt.part) {
			t.Errorf("%s %s: the log lacks %s", tt.method, tt.path, tt.part)
		}
	}
}

// At level trace every message is logged without its key. At level debug only claimed session ids are.
func TestLogs(t *testing.T) {
	const trace = slog.Level(-8)
	for _, level := range []slog.Level{trace, slog.LevelDebug, slog.LevelInfo} {
		var log mcptest.Log
		w := newWire(t, edge.Options{Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: level}))})
		p := newStdio(t, w.edge, w.srv)
		p.send(`{"jsonrpc":"2.0","id":"in","method":"tools/call","params":{"name":"burst","arguments":{"n":1},` +
			`"_meta":{"api_key":"hidden-key","session_id":"s\n1","progressToken":"out"}}}`)
		p.line()
		p.line()
		p.finish()
		w.post(call("8", "echo", `"over http"`), header{"Authorization": "Bearer hidden-key"})
		for text, from := range map[string]slog.Level{
			`id\":\"in\",\"method`: trace, `progressToken\":\"out\",\"progress\":0`: trace,
			`result\":{\"done`: trace, `echo\":\"over http`: trace, `"session_id":"s\\n1"`: slog.LevelDebug,
		} {
			if got, want := log.Has(text), level <= from; got != want {
				t.Errorf("level %v: the log has %s: %v, want %v", level, text, got, want)
			}
		}
		if log.Has("hidden-key") {
			t.Errorf("level %v: the log has a key", level)
		}
	}
}
