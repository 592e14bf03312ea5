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
	"slices"
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
	if got, want := ev.message(), `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","held":true}}`; got != want {
		t.Errorf("after the beats: got %s, want %s", got, want)
	}
}

// A client that accepts no event stream gets none, however long the call takes.
func TestNoHeartbeatInJSON(t *testing.T) {
	w := newWire(t, edge.Options{Heartbeat: 5 * time.Millisecond})
	answer := make(chan string, 1)
	go func() {
		_, _, body := w.post(call("1", "hold", "{}"), header{"Accept": "application/json"})
		answer <- body
	}()
	mcptest.Eventually(t, "the call is served", func() bool { return len(w.srv.log()) == 1 })
	<-time.After(50 * time.Millisecond) // ten heartbeats that must not show
	close(w.srv.release)
	if got, want := <-answer, `{"jsonrpc":"2.0","id":1,"result":{"held":true}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A client that does not read delays neither its handler nor others, and takes bounded memory.
func TestSlowReader(t *testing.T) {
	const n = 300_000
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.http.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := call("1", "burst", fmt.Sprintf(`{"n":%d}`, n))
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nMcp-Session-Id: "+
		"%s\r\nContent-Length: %d\r\n\r\n%s",
		h["Mcp-Session-Id"], len(body), body)
	mcptest.Eventually(t, "the burst is over although nobody reads", func() bool {
		return slices.Contains(w.srv.log(), "tools/call:burst") && w.edge.Tracked() == 0
	})
	if status, _, _ := w.post(call("2", "echo", "{}"), h); status != 200 {
		t.Errorf("another request of the session: got %d, want 200", status)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ev := readEvents(t, resp.Body)
	var got []string
	for {
		m := ev.message()
		if got = append(got, m); strings.Contains(m, `"result"`) {
			break
		}
	}
	if len(got) >= n {
		t.Errorf("got all %d messages, want fewer: the test has no slow reader", len(got))
	}
	for i, m := range got[len(got)-1001 : len(got)-1] {
		if want := string(progress([]byte("1"), n-1000+i)); m != want {
			t.Fatalf("notification %d from the end: got %s, want %s", 1000-i, m, want)
		}
	}
}

func TestResume(t *testing.T) {
	const last, result = `{"jsonrpc":"2.0","id":1,"result":{"held":true}}`, `"result":{"held":true}`
	t.Run("while the call runs", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		h := w.open("2025-11-25")
		id := w.resumable(h, "1")
		_, ev := w.resume(h, id)
		close(w.srv.release)
		if got, want := ev.message(), string(progress([]byte("1"), 1)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := ev.message(); got != last {
			t.Errorf("got %s, want %s", got, last)
		}
		if f, more := ev.next(); more {
			t.Errorf("after the response: got %+v, want the end", f)
		}
		// All of it is still there for who lost it again.
		_, ev = w.resume(h, id)
		for _, want := range []string{string(progress([]byte("1"), 1)), last} {
			if got := ev.message(); got != want {
				t.Errorf("again: got %s, want %s", got, want)
			}
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
			if got := ev.message(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		if f, more := ev.next(); more {
			t.Errorf("after the response: got %+v, want the end", f)
		}
		_, ev = w.resume(h, other)
		if got, want := ev.message(), string(progress([]byte("2"), 1)); got != want {
			t.Errorf("the other stream: got %s, want %s", got, want)
		}
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
		if got := ev.message(); got != last {
			t.Errorf("got %s, want %s", got, last)
		}
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
			if got, want := ev.message(), string(progress([]byte("0"), i)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
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
	for {
		if _, more := ev.next(); !more {
			break
		}
		n++
	}
	if n != 256 {
		t.Errorf("replayed events: got %d, want 256", n)
	}
}

// The responses of lost connections are kept, but none that is too large for the replay log.
func TestLostResponsesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer()
		e := edge.New(edge.Options{})
		h := e.Streamable(srv, nil)
		session := direct(h, "POST", initialize("2025-11-25"), nil).Header().Get("Mcp-Session-Id")
		// start makes a call that has sent one event when its connection breaks.
		start := func(id, tool string) (event string) {
			ctx, hangUp := context.WithCancel(t.Context())
			r := httptest.NewRequestWithContext(ctx, "POST", "http://127.0.0.1/mcp", reader(call(id, tool, "{}")))
			r.Header.Set("Mcp-Session-Id", session)
			w := httptest.NewRecorder()
			go h.ServeHTTP(w, r)
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
		resume := func(id string) *httptest.ResponseRecorder {
			return direct(h, "GET", "", header{"Mcp-Session-Id": session, "Last-Event-ID": id})
		}
		for _, id := range ids {
			w := resume(id)
			if got := w.Body.String(); w.Code != 200 || strings.Count(got, `"result":{"held":true}`) != 1 {
				t.Errorf("resumed: got %d %q, want the response once", w.Code, got)
			}
		}
		if w := resume(tooLarge); w.Code != 400 {
			t.Errorf("an answer that is too large: got %d %s, want 400", w.Code, w.Body)
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
	})
}

// pipes is a listener of in-memory connections, for synctest.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.conns) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// A client that stops reading, or stops sending in the middle of a body, loses its connection.
func TestStuckClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer()
		e := edge.New(edge.Options{})
		mux := http.NewServeMux()
		mux.Handle("/mcp", e.Streamable(srv, nil))
		stream, _ := e.SSE("/messages", srv)
		mux.Handle("/sse", stream)
		l := &pipes{conns: make(chan net.Conn)}
		server := &http.Server{Handler: mux}
		served := make(chan error, 1)
		go func() { served <- server.Serve(output.CoalesceWrites(server, l)) }()
		dial := func() net.Conn {
			client, conn := net.Pipe()
			l.conns <- conn
			return client
		}

		reading := dial()
		fmt.Fprint(reading, "GET /sse HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(reading), nil)
		if err != nil {
			t.Fatal(err)
		}
		f, _ := readEvents(t, resp.Body).next()
		_, id, _ := strings.Cut(f.data, "session_id=")
		e.Send(id, progress([]byte("0"), 1)) // nobody reads it
		sending := dial()
		fmt.Fprint(sending, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: "+
			"100\r\n\r\n{")
		time.Sleep(29 * time.Second)
		if got := e.Sessions(); got != 1 {
			t.Errorf("after 29 s: got %d sessions, want 1", got)
		}
		time.Sleep(2 * time.Second)
		if got := e.Sessions(); got != 0 {
			t.Errorf("after 31 s of not reading: got %d sessions, want 0", got)
		}
		answer, err := http.ReadResponse(bufio.NewReader(sending), nil)
		if err != nil || answer.StatusCode != 400 {
			t.Errorf("half a body: got %v, %v; want 400", answer, err)
		}
		reading.Close()
		sending.Close()
		if err := e.Stop(t.Context()); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
		server.Close()
		<-served
	})
}

// writes counts the writes to connections.
type writes struct {
	net.Listener
	mu  sync.Mutex
	all [][]byte
}

type counted struct {
	net.Conn
	w *writes
}

func (w *writes) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	return counted{c, w}, err
}

// Every write has a deadline: otherwise a client that never reads would keep its connection.
func TestAnswersHaveADeadline(t *testing.T) {
	e := edge.New(edge.Options{})
	defer stop(t, e)
	web := httptest.NewUnstartedServer(e.Streamable(newServer(), nil))
	d := &deadlines{Listener: web.Listener}
	web.Listener = output.CoalesceWrites(web.Config, d)
	web.Start()
	defer web.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for _, accept := range []string{"application/json", "text/event-stream", "application/json"} {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", web.URL,
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		r.Header.Set("Accept", accept)
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.left) < 3 {
		t.Fatalf("got %d writes, want one for each answer at least", len(d.left))
	}
	for i, left := range d.left {
		if left <= 0 || left > 30*time.Second {
			t.Errorf("write %d: got %v until the deadline, want 30 s at most", i, left)
		}
	}
}

// deadlines records the time left for each write.
type deadlines struct {
	net.Listener
	mu   sync.Mutex
	left []time.Duration
}

type timed struct {
	net.Conn
	d     *deadlines
	until time.Time
}

func (d *deadlines) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	return &timed{Conn: c, d: d}, err
}

func (c *timed) SetWriteDeadline(t time.Time) error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.until = t
	return c.Conn.SetWriteDeadline(t)
}

func (c *timed) Write(b []byte) (int, error) {
	c.d.mu.Lock()
	c.d.left = append(c.d.left, time.Until(c.until))
	c.d.mu.Unlock()
	return c.Conn.Write(b)
}

func (c counted) Write(b []byte) (int, error) {
	c.w.mu.Lock()
	c.w.all = append(c.w.all, bytes.Clone(b))
	c.w.mu.Unlock()
	return c.Conn.Write(b)
}

// An event longer than the buffers of net/http leaves in one piece.
func TestEventsInOnePiece(t *testing.T) {
	srv := newServer()
	e := edge.New(edge.Options{})
	defer stop(t, e)
	web := httptest.NewUnstartedServer(e.Streamable(srv, nil))
	w := &writes{Listener: web.Listener}
	web.Listener = output.CoalesceWrites(web.Config, w)
	web.Start()
	defer web.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	do := func(method, body, session string) *http.Response {
		r, _ := http.NewRequestWithContext(t.Context(), method, web.URL, reader(body))
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	resp := do("POST", initialize("2025-11-25"), "")
	resp.Body.Close()
	session := resp.Header.Get("Mcp-Session-Id")
	stream := do("GET", "", session)
	defer stream.Body.Close()
	events := readEvents(t, stream.Body)
	events.next() // it is open
	long := `{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"` + strings.Repeat("x", 20_000) + `"}}`
	if !e.Send(session, []byte(long)) {
		t.Fatal("Send: got false, want the notification sent")
	}
	if got := events.message(); got != long {
		t.Errorf("got %d bytes, want the notification of %d", len(got), len(long))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.all {
		if bytes.Contains(b, []byte("xxx")) && !bytes.Contains(b, []byte(long)) {
			t.Errorf("got a write of %d bytes, want the whole event in one", len(b))
		}
	}
}
