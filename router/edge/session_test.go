package edge_test

import (
	"context"
	"errors"
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
)

func TestDeleteEndsTheSession(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-11-25")
	answer := make(chan string, 1)
	go func() {
		_, _, body := w.post(call("1", "sleep", "{}"), h)
		answer <- body
	}()
	stream := w.do(context.Background(), "GET", "/mcp", "", h)
	eventually(t, "the call is served", func() bool { return len(w.srv.log()) == 1 })
	if resp := w.do(context.Background(), "DELETE", "/mcp", "", h); resp.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: got %d, want 204", resp.StatusCode)
	}
	if got := w.srv.ends(); got != 1 {
		t.Errorf("Ended when DELETE is answered: got %d calls, want 1", got)
	}
	if got, want := <-answer, `{"jsonrpc":"2.0","id":1,"result":{"too":"late"}}`; got != want {
		t.Errorf("the call: got %s, want %s", got, want)
	}
	if err := w.srv.lastCause(); err != edge.ErrSessionEnded {
		t.Errorf("cause: got %v, want ErrSessionEnded", err)
	}
	ev := readEvents(t, stream.Body)
	for {
		if _, more := ev.next(); !more {
			break
		}
	}
	for _, one := range []struct{ method, body string }{{"POST", call("1", "echo", "{}")}, {"GET", ""}, {"DELETE", ""}} {
		if resp := w.do(context.Background(), one.method, "/mcp", one.body, h); resp.StatusCode != 404 {
			t.Errorf("%s after the end: got %d, want 404", one.method, resp.StatusCode)
		}
	}
	if w.edge.Sessions() != 0 || w.edge.Tracked() != 0 {
		t.Errorf("got %d sessions and %d requests, want none", w.edge.Sessions(), w.edge.Tracked())
	}
}

// A session cannot be used on another surface than its own.
func TestSessionsBelongToTheirSurface(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-11-25")
	resp := w.do(context.Background(), "POST", "/other", call("1", "echo", "{}"), h)
	if resp.StatusCode != 404 {
		t.Errorf("another path: got %d, want 404", resp.StatusCode)
	}
	if resp := w.do(context.Background(), "POST", "/messages/?session_id="+h["Mcp-Session-Id"], call("1", "echo", "{}"), nil); resp.StatusCode != 404 {
		t.Errorf("another transport: got %d, want 404", resp.StatusCode)
	}
	if got := w.srv.log(); len(got) != 0 {
		t.Errorf("served: got %q, want nothing", got)
	}
}

func TestRefusedInitializeLeavesNoSession(t *testing.T) {
	w := newWire(t, edge.Options{})
	status, h, body := w.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"fail":1}}`, nil)
	checkError(t, body, "1", -32602)
	if status != 200 || h.Get("Mcp-Session-Id") != "" {
		t.Errorf("got %d, session %q; want 200 and no session", status, h.Get("Mcp-Session-Id"))
	}
	eventually(t, "the session has ended", func() bool { return w.edge.Sessions() == 0 && w.srv.ends() == 1 })
}

func TestEndOfTheSSEStreamEndsTheSession(t *testing.T) {
	w := newWire(t, edge.Options{})
	c := w.sse(nil)
	c.post(call("1", "sleep", "{}"), nil)
	eventually(t, "the call is served", func() bool { return len(w.srv.log()) == 1 })
	c.close()
	eventually(t, "the session has ended", func() bool { return w.edge.Sessions() == 0 && w.srv.ends() == 1 })
	if err := w.srv.lastCause(); err != edge.ErrSessionEnded {
		t.Errorf("cause: got %v, want ErrSessionEnded", err)
	}
	if status, body := c.post(call("2", "echo", "{}"), nil); status != 404 {
		t.Errorf("POST after the end: got %d %s, want 404", status, body)
	}
}

func TestDuplicateOnSSE(t *testing.T) {
	w := newWire(t, edge.Options{})
	c := w.sse(nil)
	c.post(call("1", "hold", "{}"), nil)
	status, body := c.post(call("1", "echo", "{}"), nil)
	if status != 400 {
		t.Errorf("got %d, want 400", status)
	}
	checkError(t, body, "1", -32600)
	close(w.srv.release)
	if got, want := c.events.message(), `{"jsonrpc":"2.0","id":1,"result":{"held":true}}`; got != want {
		t.Errorf("the first of the two: got %s, want %s", got, want)
	}
	if status, body := c.post("{", nil); status != 400 {
		t.Errorf("bad JSON: got %d %s, want 400", status, body)
	}
	c.post(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"capabilities":{"a":"`+strings.Repeat("a", 70_000)+`"}}}`, nil)
	checkError(t, c.events.message(), "2", -32602)
}

// direct serves requests without a network, so that time can be made to pass.
func direct(e http.Handler, method, body string, h header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1/mcp", reader(body))
	for k, v := range h {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

func TestIdleSessionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer()
		e := edge.New(edge.Options{Limits: limit.Config{SessionIdle: 30 * time.Minute}})
		h := e.Streamable(srv)
		open := func() header {
			w := direct(h, "POST", initialize("2025-11-25"), nil)
			return header{"Mcp-Session-Id": w.Header().Get("Mcp-Session-Id")}
		}
		used, _, streaming, calling, gone := open(), open(), open(), open(), open()
		ctx, hangUp := context.WithCancel(t.Context())
		serve := func(ctx context.Context, method, body string, s header) {
			r := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1/mcp", reader(body))
			r.Header.Set("Mcp-Session-Id", s["Mcp-Session-Id"])
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		go serve(ctx, "GET", "", streaming)
		go serve(ctx, "POST", call("1", "sleep", "{}"), calling)
		left, leave := context.WithCancel(t.Context())
		go serve(left, "POST", call("1", "sleep", "{}"), gone)
		synctest.Wait()
		leave() // its connection is closed, its call goes on
		alive := func(s header) bool {
			return direct(h, "POST", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, s).Code == 200
		}
		time.Sleep(20 * time.Minute)
		if !alive(used) {
			t.Error("after 20 minutes: the session has expired, want it alive")
		}
		time.Sleep(29 * time.Minute)
		if got := e.Sessions(); got != 3 {
			t.Errorf("after 49 minutes: got %d sessions, want the used, the streaming and the calling one", got)
		}
		if err := srv.lastCause(); err != edge.ErrSessionEnded {
			t.Errorf("cause for the call nobody waits for: got %v, want ErrSessionEnded", err)
		}
		hangUp()
		time.Sleep(31 * time.Minute)
		if e.Sessions() != 0 || e.Tracked() != 0 || srv.ends() != 5 {
			t.Errorf("at the end: got %d sessions, %d requests, %d ended; want 0, 0, 5", e.Sessions(), e.Tracked(), srv.ends())
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
	})
}

// What the router asks goes to the client whose call caused it, on the stream of that call.
func TestServerRequests(t *testing.T) {
	answerTo := func(m string) string {
		id := string(jsonrpc.Get([]byte(m), "id"))
		if method := jsonrpc.Text(jsonrpc.Get([]byte(m), "method")); method != "sampling/createMessage" || !strings.HasPrefix(id, `"nexus-`) {
			t.Errorf("got %s, want a request with an id of our own", m)
		}
		return `{"jsonrpc":"2.0","id":` + id + `,"result":{"n":9007199254740993}}`
	}
	const want = `{"jsonrpc":"2.0","id":5,"result":{"answer":{"n":9007199254740993}}}`
	t.Run("streamable", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		h, foreign := w.open("2025-06-18"), w.open("2025-06-18")
		resp := w.do(context.Background(), "POST", "/mcp", call("5", "ask", "{}"), h)
		ev := readEvents(t, resp.Body)
		m := answerTo(ev.message())
		for _, wrong := range []struct {
			h    header
			body string
		}{{foreign, m}, {nil, m}, {h, strings.Replace(m, "nexus-1", "nexus-9", 1)}} {
			if status, _, body := w.post(wrong.body, wrong.h); status != 202 || body != "" {
				t.Errorf("an answer that nobody waits for: got %d %q, want 202 and no body", status, body)
			}
		}
		if status, _, body := w.post(m, h); status != 202 || body != "" {
			t.Errorf("answer: got %d %q, want 202 and no body", status, body)
		}
		if got := ev.message(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("sse", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		c := w.sse(nil)
		c.post(call("5", "ask", "{}"), nil)
		c.post(answerTo(c.events.message()), nil)
		if got := c.events.message(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("stdio", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		p := newStdio(t, w.edge, w.srv)
		p.send(call("5", "ask", "{}"))
		p.send(answerTo(p.line()))
		if got := p.line(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		p.finish()
	})
}

// Where the client cannot be asked, or is not there any more, the call learns it at once.
func TestNobodyToAsk(t *testing.T) {
	noClient := func(t *testing.T, body string) {
		t.Helper()
		if !strings.Contains(body, edge.ErrNoClient.Error()) && !strings.Contains(body, edge.ErrClientGone.Error()) {
			t.Errorf("got %s, want ErrNoClient", body)
		}
	}
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	_, _, body := w.post(call("1", "ask", "{}"), nil)
	noClient(t, body)
	_, _, body = w.post(call("1", "ask", "{}"), header{"Mcp-Session-Id": h["Mcp-Session-Id"], "Accept": "application/json"})
	noClient(t, body)
	if _, err := w.edge.Request(t.Context(), "nobody", "ping", nil); err != edge.ErrNoClient {
		t.Errorf("unknown session: got %v, want ErrNoClient", err)
	}
	if _, err := w.edge.Request(t.Context(), h["Mcp-Session-Id"], "ping", nil); err != edge.ErrNoClient {
		t.Errorf("session without a stream: got %v, want ErrNoClient", err)
	}
	p := newStdio(t, w.edge, w.srv)
	p.send(call("1", "ask", "{}"))
	p.line()
	p.in.Close() // the answer can never come
	noClient(t, p.line())
	if err := <-p.done; err != nil {
		t.Errorf("ServeStdio: got %v, want nil", err)
	}
	ctx, hangUp := context.WithCancel(context.Background())
	resp := w.do(ctx, "POST", "/mcp", call("2", "ask", "{}"), h)
	readEvents(t, resp.Body).message()
	hangUp()
	eventually(t, "the call has ended", func() bool { return w.edge.Tracked() == 0 })
}

// A client that takes no event stream on its POST is asked on the session's own stream.
func TestAskElsewhere(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	own := readEvents(t, w.do(context.Background(), "GET", "/mcp", "", h).Body)
	own.next() // it is open
	answer := make(chan string, 1)
	go func() {
		_, _, body := w.post(call("1", "ask", "{}"), header{"Mcp-Session-Id": h["Mcp-Session-Id"], "Accept": "application/json"})
		answer <- body
	}()
	id := string(jsonrpc.Get([]byte(own.message()), "id"))
	w.post(`{"jsonrpc":"2.0","id":`+id+`,"error":{"code":1,"message":"no"}}`, h)
	if got, want := <-answer, `{"jsonrpc":"2.0","id":1,"result":{"answer":null}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Send and Request use the session's own stream.
func TestOwnStream(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	id := h["Mcp-Session-Id"]
	note := func(i int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%d"}`, i) }
	if w.edge.Send("nobody", []byte(note(0))) {
		t.Error("Send to an unknown session: got true, want false")
	}
	for i := range 3 {
		if !w.edge.Send(id, []byte(note(i))) {
			t.Error("Send: got false, want true")
		}
	}
	first := readEvents(t, w.do(context.Background(), "GET", "/mcp", "", h).Body)
	for i := range 3 {
		if got := first.message(); got != note(i) {
			t.Errorf("message %d: got %s, want what was sent before there was a stream", i, got)
		}
	}
	// A second stream takes the place of the first.
	resp := w.do(context.Background(), "GET", "/mcp", "", h)
	second := readEvents(t, resp.Body)
	if _, more := first.next(); more {
		t.Error("the first stream: got an event, want its end")
	}
	done := make(chan error, 1)
	go func() {
		m, err := w.edge.Request(context.Background(), id, "roots/list", nil)
		if err == nil && string(m.Result) != `{"roots":[]}` {
			err = fmt.Errorf("got result %s", m.Result)
		}
		done <- err
	}()
	m := second.message()
	w.post(`{"jsonrpc":"2.0","id":`+string(jsonrpc.Get([]byte(m), "id"))+`,"result":{"roots":[]}}`, h)
	if err := <-done; err != nil {
		t.Errorf("Request: got %v, want the answer", err)
	}
	ctx, giveUp := context.WithCancelCause(context.Background())
	go func() {
		_, err := w.edge.Request(ctx, id, "roots/list", nil)
		done <- err
	}()
	m = second.message()
	cause := errors.New("given up")
	giveUp(cause)
	if err := <-done; err != cause {
		t.Errorf("Request: got %v, want the cause of its context", err)
	}
	want := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + string(jsonrpc.Get([]byte(m), "id")) + `}}`
	if got := second.message(); got != want {
		t.Errorf("after giving up: got %s, want %s", got, want)
	}
}

func TestStop(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	c := w.sse(nil)
	p := newStdio(t, w.edge, w.srv)
	answers := make(chan string, 2)
	for _, tool := range []string{"hold", "sleep"} {
		go func() {
			_, _, body := w.post(call(`"`+tool+`"`, tool, "{}"), h)
			answers <- body
		}()
	}
	eventually(t, "both are served", func() bool { return len(w.srv.log()) == 2 })
	stopped := make(chan error, 1)
	ctx, force := context.WithCancel(context.Background())
	go func() { stopped <- w.edge.Stop(ctx) }()
	eventually(t, "new requests are refused", func() bool {
		status, _, body := w.post(call("2", "echo", "{}"), h)
		return status == 503 && strings.Contains(body, `"code":-32000`) && strings.Contains(body, `"reason":"unavailable"`)
	})
	if status, _, _ := w.post(initialize("2025-11-25"), nil); status != 503 {
		t.Errorf("a new session: got %d, want 503", status)
	}
	close(w.srv.release)
	if got, want := <-answers, `{"jsonrpc":"2.0","id":"hold","result":{"held":true}}`; got != want {
		t.Errorf("what was in flight: got %s, want %s", got, want)
	}
	force()
	<-answers
	if err := w.srv.lastCause(); err != edge.ErrStopped {
		t.Errorf("cause of what did not end in time: got %v, want ErrStopped", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Stop: got %v, want nil", err)
	}
	if f, more := c.events.next(); more {
		t.Errorf("SSE stream: got %+v, want its end", f)
	}
	if err := <-p.done; err != nil {
		t.Errorf("ServeStdio: got %v, want nil", err)
	}
	if got := w.srv.ends(); got != 3 {
		t.Errorf("sessions ended: got %d, want 3", got)
	}
	if status, _, _ := w.post(call("2", "echo", "{}"), h); status != 503 {
		t.Errorf("after Stop: got %d, want 503", status)
	}
	if err := w.edge.ServeStdio(t.Context(), reader(""), &logs{}, w.srv); err != edge.ErrStopped {
		t.Errorf("ServeStdio after Stop: got %v, want ErrStopped", err)
	}
}

// Many sessions with calls that never answer leave nothing behind.
func TestNothingIsLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("10,000 calls")
	}
	synctest.Test(t, func(t *testing.T) {
		const sessions, calls = 1000, 10
		srv := newServer()
		e := edge.New(edge.Options{Limits: limit.Config{SessionIdle: time.Minute}})
		h := e.Streamable(srv)
		ctx, hangUp := context.WithCancel(t.Context())
		for range sessions {
			id := direct(h, "POST", initialize("2025-11-25"), nil).Header().Get("Mcp-Session-Id")
			for c := range calls {
				go func() {
					r := httptest.NewRequestWithContext(ctx, "POST", "http://127.0.0.1/mcp", reader(call(fmt.Sprint(c), "sleep", "{}")))
					r.Header.Set("Mcp-Session-Id", id)
					h.ServeHTTP(httptest.NewRecorder(), r)
				}()
			}
		}
		synctest.Wait()
		if got := e.Tracked(); got != sessions*calls {
			t.Errorf("in flight: got %d, want %d", got, sessions*calls)
		}
		id := direct(h, "POST", initialize("2025-11-25"), nil).Header().Get("Mcp-Session-Id")
		w := direct(h, "POST", call("1", "echo", "{}"), header{"Mcp-Session-Id": id})
		if !strings.Contains(w.Body.String(), `"reason":"overloaded"`) {
			t.Errorf("one more: got %s, want overloaded", w.Body)
		}
		time.Sleep(2 * time.Minute)
		if got := e.Sessions(); got != sessions {
			t.Errorf("while the clients wait: got %d sessions, want %d", got, sessions)
		}
		hangUp()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if e.Sessions() != 0 || e.Tracked() != 0 || srv.ends() != sessions+1 {
			t.Errorf("at the end: got %d sessions, %d requests, %d ended", e.Sessions(), e.Tracked(), srv.ends())
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
	})
}

// Whatever moment Stop comes in, a request is answered or refused: it is never cut off, and its session is
// never said to be unknown.
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
		eventually(t, "requests are served", func() bool { return len(w.srv.log()) > 8 })
		if err := w.edge.Stop(t.Context()); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
		wg.Wait()
	}
}

// A client may read the answers to its calls slowly: it has the time that Stop gives.
func TestStopWaitsForReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := edge.New(edge.Options{})
		h, srv := e.Streamable(newServer()), newServer()
		var clients sync.WaitGroup

		slow := &slowWriter{ResponseRecorder: httptest.NewRecorder(), pause: 10 * time.Second}
		clients.Go(func() {
			h.ServeHTTP(slow, httptest.NewRequest("POST", "http://127.0.0.1/mcp", reader(call("1", "echo", "{}"))))
		})
		in, feed := io.Pipe()
		printed, out := io.Pipe()
		line := make(chan string, 1)
		clients.Go(func() {
			if err := e.ServeStdio(t.Context(), in, out, srv); err != nil {
				t.Errorf("ServeStdio: got %v, want nil", err)
			}
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
		if err := e.Stop(ctx); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
		if took := time.Since(began); took < 20*time.Second || took >= 30*time.Second {
			t.Errorf("Stop: took %v, want as long as the slowest answer, 20 s", took)
		}
		clients.Wait()
		if got := slow.Body.String(); !strings.Contains(got, `"id":1,"result"`) {
			t.Errorf("over HTTP: got %q, want the answer", got)
		}
		if got := <-line; !strings.Contains(got, `"id":2,"result"`) {
			t.Errorf("on stdio: got %q, want the answer", got)
		}
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

// While the edge stops each answer closes its connection, those to calls in flight too.
func TestStopPartsWays(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	answers := make(chan *http.Response, 2)
	for _, accept := range []string{"application/json", "text/event-stream"} {
		go func() {
			answers <- w.do(context.Background(), "POST", "/mcp", call(strconv.Quote(accept), "hold", "{}"), header{"Mcp-Session-Id": h["Mcp-Session-Id"], "Accept": accept})
		}()
	}
	eventually(t, "both are served", func() bool { return len(w.srv.log()) == 2 })
	stopped := make(chan error, 1)
	go func() { stopped <- w.edge.Stop(t.Context()) }()
	eventually(t, "new requests are refused", func() bool {
		resp := w.do(context.Background(), "POST", "/mcp", call("2", "echo", "{}"), nil)
		if resp.StatusCode == 503 && !resp.Close {
			t.Error("refused: got the connection kept, want it closed")
		}
		return resp.StatusCode == 503
	})
	if resp := w.do(context.Background(), "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, h); resp.StatusCode != 202 || !resp.Close {
		t.Errorf("a notification: got %d and closed %v, want 202 and the connection closed", resp.StatusCode, resp.Close)
	}
	close(w.srv.release)
	for range 2 {
		if resp := <-answers; resp.StatusCode != 200 || !resp.Close {
			t.Errorf("a call in flight: got %d and closed %v, want 200 and the connection closed", resp.StatusCode, resp.Close)
		}
	}
	if err := <-stopped; err != nil {
		t.Errorf("Stop: got %v, want nil", err)
	}
}

// A panic of a handler that is told of the end of a session does not end the process.
func TestPanicAtTheEnd(t *testing.T) {
	out := &logs{}
	w := newWire(t, edge.Options{Logger: slog.New(slog.NewTextHandler(out, nil))})
	w.srv.clumsy = true
	for range 2 {
		if resp := w.do(t.Context(), "DELETE", "/mcp", "", w.open("2025-11-25")); resp.StatusCode != http.StatusNoContent {
			t.Errorf("DELETE: got %d, want 204", resp.StatusCode)
		}
	}
	eventually(t, "the panic is in the log", func() bool { return out.contains("while leaving") })
	if got := w.srv.ends(); got != 2 {
		t.Errorf("got %d sessions ended, want 2", got)
	}
}
