package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// A slow response becomes a stream with heartbeats, as the streams of sessions have.
func TestHeartbeats(t *testing.T) {
	w := newWire(t, edge.Options{Heartbeat: 20 * time.Millisecond})
	beats := func(name string, ev *events) {
		t.Helper()
		for range 3 {
			if f, more := ev.next(); !more || f.comment == "" || f.data != "" {
				t.Errorf("%s: got %+v, %v; want a comment", name, f, more)
			}
		}
	}
	h, old := w.open("2025-11-25"), w.open("2025-06-18")
	for name, session := range map[string]header{"2025-11-25": h, "2025-06-18": old, "no session": nil} {
		ctx, hangUp := context.WithCancel(context.Background())
		beats("answer, "+name, readEvents(t, w.do(ctx, "POST", "/mcp", call("1", "hold", "{}"), session).Body))
		hangUp()
	}
	beats("GET", readEvents(t, w.do(context.Background(), "GET", "/mcp", "", h).Body))
	beats("sse", w.sse(nil).events)
	resp := w.do(context.Background(), "POST", "/mcp", modernCall("hold"), modernHeader("tools/call", "hold"))
	ev := readEvents(t, resp.Body)
	beats("modern", ev)
	close(w.srv.release)
	equal(t, "after the beats", ev.message(), `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","held":true}}`)
}

// A client that accepts no event stream gets none, however long the call takes.
func TestNoHeartbeatInJSON(t *testing.T) {
	w := newWire(t, edge.Options{Heartbeat: 5 * time.Millisecond})
	answer := w.start(call("1", "hold", "{}"), header{"Accept": "application/json"})
	mcptest.Eventually(t, "the call is served", func() bool { return len(w.srv.log()) == 1 })
	<-time.After(50 * time.Millisecond) // ten heartbeats that must not show
	close(w.srv.release)
	equal(t, "answer", <-answer, `{"jsonrpc":"2.0","id":1,"result":{"held":true}}`)
}

// A client that does not read delays neither its handler nor others, and takes bounded memory: of more than 1,000
// unwritten notifications the oldest are dropped. The response still comes last.
func TestSlowReader(t *testing.T) {
	const n = 300_000
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	body := call("1", "burst", fmt.Sprintf(`{"n":%d}`, n))
	check := func(transport string, next func() string) {
		mcptest.Eventually(t, "the burst is over although nobody reads", func() bool {
			log := w.srv.log()
			return len(log) > 0 && log[len(log)-1] == "tools/call:burst" && w.edge.Tracked() == 0
		})
		w.want("another request of the session", call("2", "echo", "{}"), h, 200)
		var got []string
		for m := ""; !strings.Contains(m, `"result"`); got = append(got, m) {
			m = next()
		}
		if len(got) >= n {
			t.Errorf("%s: got all %d messages, want fewer: the test has no slow reader", transport, len(got))
		}
		for i, m := range got[len(got)-1001 : len(got)-1] {
			if want := string(progress([]byte("1"), n-1000+i)); m != want {
				t.Fatalf("%s, notification %d from the end: got %s, want %s", transport, 1000-i, m, want)
			}
		}
	}
	conn := w.raw(body, len(body), h)
	var ev *events
	check("streamable HTTP", func() string {
		if ev == nil {
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			ev = readEvents(t, resp.Body)
		}
		return ev.message()
	})
	p := newStdio(t, w.edge, w.srv)
	p.send(body)
	check("stdio", p.line)
	p.finish()
}

func TestResume(t *testing.T) {
	const last, result = `{"jsonrpc":"2.0","id":1,"result":{"held":true}}`, `"result":{"held":true}`
	t.Run("while the call runs", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		h := w.open("2025-11-25")
		id := w.resumable(h, "1")
		_, ev := w.resume(h, id)
		close(w.srv.release)
		equal(t, "answer", ev.message(), string(progress([]byte("1"), 1)))
		equal(t, "answer", ev.message(), last)
		if f, more := ev.next(); more {
			t.Errorf("after the response: got %+v, want the end", f)
		}
		// All of it is still there for who lost it again.
		_, ev = w.resume(h, id)
		for _, want := range []string{string(progress([]byte("1"), 1)), last} {
			equal(t, "again", ev.message(), want)
		}
	})
	t.Run("after the call", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		h := w.open("2025-11-25")
		id := w.resumable(h, "1")
		other := w.resumable(h, "2")
		close(w.srv.release)
		mcptest.Eventually(t, "the calls have ended", func() bool { return w.edge.Tracked() == 0 })
		_, ev := w.resume(h, id)
		for _, want := range []string{string(progress([]byte("1"), 1)), last} {
			equal(t, "answer", ev.message(), want)
		}
		if f, more := ev.next(); more {
			t.Errorf("after the response: got %+v, want the end", f)
		}
		_, ev = w.resume(h, other)
		equal(t, "the other stream", ev.message(), string(progress([]byte("2"), 1)))
	})
	t.Run("a half-open connection is replaced", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		h := w.open("2025-11-25")
		resp := w.do(context.Background(), "POST", "/mcp", call("1", "notify-hold", "{}"), h)
		first := readEvents(t, resp.Body)
		f, _ := first.next()
		_, ev := w.resume(h, f.id)
		close(w.srv.release)
		ev.message()
		equal(t, "answer", ev.message(), last)
		if f, more := first.next(); more {
			t.Errorf("the first connection: got %+v, want its end", f)
		}
	})
	t.Run("the own stream", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		h := w.open("2025-11-25")
		ctx, hangUp := context.WithCancel(context.Background())
		ev := readEvents(t, w.do(ctx, "GET", "/mcp", "", h).Body)
		f, _ := ev.next()
		if f.id == "" || f.retry == "" || f.data != "" {
			t.Errorf("the opening: got %+v, want id and retry without data", f)
		}
		for i := range 3 {
			w.edge.Send(h["Mcp-Session-Id"], progress([]byte("0"), i))
		}
		f, _ = ev.next()
		hangUp()
		_, ev = w.resume(h, f.id)
		for i := 1; i < 3; i++ {
			equal(t, "answer", ev.message(), string(progress([]byte("0"), i)))
		}
	})
	t.Run("what cannot be resumed", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		h, foreign, old := w.open("2025-11-25"), w.open("2025-11-25"), w.open("2025-06-18")
		id := w.resumable(h, "1")
		rows := []struct {
			name, id string
			h        header
			status   int
		}{
			{"nonsense", "x", h, 400}, {"unknown", "99-1", h, 400}, {"overflow", "1-99999999999999999999", h, 400},
			{"foreign", id, foreign, 400}, {"ignored in older versions", id, old, 200},
		}
		for _, row := range rows {
			if resp, _ := w.resume(row.h, row.id); resp.StatusCode != row.status {
				t.Errorf("%s: got %d, want %d", row.name, resp.StatusCode, row.status)
			}
		}
		close(w.srv.release)
		if _, _, body := w.post(call("5", "burst", `{"n":1}`), old); strings.Contains(body, "id: ") {
			t.Errorf("older version: got %q, want no event ids", body)
		}
	})
}

// The replay log of a session is bounded: the oldest events are dropped, and results too large for it are not kept.
func TestReplayIsBounded(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-11-25")
	resp := w.do(context.Background(), "POST", "/mcp", call("1", "burst", `{"n":1000}`), h)
	f, _ := readEvents(t, resp.Body).next()
	_, _ = io.Copy(io.Discard, resp.Body)
	_, ev := w.resume(h, f.id)
	n := 0
	for _, more := ev.next(); more; _, more = ev.next() {
		n++
	}
	equal(t, "replayed events", n, 256)
}

// The responses of lost connections are kept, but none that is too large for the replay log.
func TestLostResponsesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, srv, endpoint := newDirect(t, edge.Options{})
		h := session(endpoint, "2025-11-25", nil)
		// start makes a call that has sent one event when its connection breaks.
		start := func(id, tool string) (event string) {
			ctx, hangUp := context.WithCancel(t.Context())
			r := httptest.NewRequestWithContext(ctx, "POST", "http://127.0.0.1/mcp", reader(call(id, tool, "{}")))
			r.Header.Set("Mcp-Session-Id", h["Mcp-Session-Id"])
			w := httptest.NewRecorder()
			go endpoint.ServeHTTP(w, r)
			synctest.Wait()
			hangUp()
			synctest.Wait()
			f, _ := readEvents(t, w.Body).next()
			return f.id
		}
		var ids []string
		for i := range 20 {
			ids = append(ids, start(fmt.Sprint(i), "notify-hold"))
		}
		tooLarge := start(`"big"`, "notify-big")
		close(srv.release)
		close(srv.gate)
		synctest.Wait()
		for _, id := range ids {
			w := direct(endpoint, "GET", "", with(h, "Last-Event-ID", id))
			if got := w.Body.String(); w.Code != 200 || strings.Count(got, `"result":{"held":true}`) != 1 {
				t.Errorf("resumed: got %d %q, want the response once", w.Code, got)
			}
		}
		equal(t, "an answer that is too large", direct(endpoint, "GET", "", with(h, "Last-Event-ID", tooLarge)).Code, 400)
	})
}

// A client that stops reading, or sends its body too slowly, loses its connection.
func TestStuckClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, srv, endpoint := newDirect(t, edge.Options{})
		mux := http.NewServeMux()
		mux.Handle("/mcp", endpoint)
		stream, _ := e.SSE("/messages", srv)
		mux.Handle("/sse", stream)
		dial := pipeServer(t, mux)
		reading := dial("GET /sse HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(reading), nil)
		if err != nil {
			t.Fatal(err)
		}
		f, _ := readEvents(t, resp.Body).next()
		_, id, _ := strings.Cut(f.data, "session_id=")
		e.Send(id, progress([]byte("0"), 1)) // nobody reads it
		time.Sleep(29 * time.Second)
		equal(t, "sessions after 29 s", e.Sessions(), 1)
		time.Sleep(2 * time.Second)
		equal(t, "sessions after 31 s of not reading", e.Sessions(), 0)

		sending := dial("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n" +
			"Content-Length: 1000\r\n\r\n{")
		var sender sync.WaitGroup
		sender.Go(func() {
			for {
				if _, err := io.WriteString(sending, " "); err != nil {
					return
				}
				time.Sleep(5 * time.Second)
			}
		})
		began := time.Now()
		answer, _ := io.ReadAll(sending) // until the server closes the connection
		if took := time.Since(began); took < 55*time.Second || took > 65*time.Second {
			t.Errorf("a slow body: got the connection closed after %v, want a minute", took)
		}
		contains(t, "a slow body", string(answer), "HTTP/1.1 400")
		sending.Close()
		sender.Wait()
	})
}

// recorder is a listener that records the writes of its connections, and the time left for each.
type recorder struct {
	net.Listener
	mu     sync.Mutex
	writes []write
}

type write struct {
	data []byte
	left time.Duration
}

type recorded struct {
	net.Conn
	to    *recorder
	until time.Time
}

func (l *recorder) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &recorded{Conn: c, to: l}, err
}

func (c *recorded) SetWriteDeadline(t time.Time) error {
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	c.until = t
	return c.Conn.SetWriteDeadline(t)
}

func (c *recorded) Write(b []byte) (int, error) {
	c.to.mu.Lock()
	c.to.writes = append(c.to.writes, write{bytes.Clone(b), time.Until(c.until)})
	c.to.mu.Unlock()
	return c.Conn.Write(b)
}

// An event longer than the buffers of net/http leaves in one piece. Every write has a deadline: otherwise a client that
// never reads would keep its connection.
func TestWrites(t *testing.T) {
	e := edge.New(edge.Options{})
	defer stop(t, e)
	web := httptest.NewUnstartedServer(e.Streamable(newServer(), nil))
	l := &recorder{Listener: web.Listener}
	web.Listener = output.CoalesceWrites(web.Config, l)
	web.Start()
	defer web.Close()
	w := &wire{t: t, edge: e, http: web, client: web.Client()}
	h := w.open("2025-11-25")
	for _, accept := range []string{"application/json", "text/event-stream", "application/json"} {
		w.want(accept, request("1", "ping", ""), header{"Accept": accept}, 200)
	}
	stream := w.do(t.Context(), "GET", "/mcp", "", h)
	defer stream.Body.Close()
	events := readEvents(t, stream.Body)
	events.next() // it is open
	long := `{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"` + strings.Repeat("x", 20_000) + `"}}`
	equal(t, "Send", e.Send(h["Mcp-Session-Id"], []byte(long)), true)
	equal(t, "the notification", events.message(), long)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.writes) < 5 {
		t.Fatalf("got %d writes, want one for each answer at least", len(l.writes))
	}
	for i, one := range l.writes {
		if one.left <= 0 || one.left > 30*time.Second {
			t.Errorf("write %d: got %v until the deadline, want 30 s at most", i, one.left)
		}
		if bytes.Contains(one.data, []byte("xxx")) && !bytes.Contains(one.data, []byte(long)) {
			t.Errorf("got a write of %d bytes, want the whole event in one", len(one.data))
		}
	}
}
