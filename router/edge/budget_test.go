package edge_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// own is what one caller may hold by default.
const own = 68 << 20

const (
	tooMuch  = `"reason":"overloaded"`
	tooLarge = `"reason":"too_large"`
)

// Results that clients do not read are charged to their caller. Beyond the limit its requests get an error.
func TestResultsAreCharged(t *testing.T) {
	w := newWire(t, edge.Options{})
	const big = 60 << 20
	var conns []net.Conn
	for i := range 2 {
		body := call(fmt.Sprint(i), "big", fmt.Sprintf(`{"n":%d}`, big))
		conns = append(conns, w.raw(body, len(body), header{"Accept": []string{"application/json", "text/event-stream"}[i]}))
		mcptest.Eventually(t, "a result waits, the other is refused", func() bool {
			return w.edge.Tracked() == 0 &&
				w.edge.Refused() == i && len(w.srv.log()) == i+1
		})
	}
	if held := w.edge.Held(); held < big || held > own {
		t.Errorf("got %d bytes held, want those of one result", held)
	}
	w.want("a result of 10 MiB more", call("3", "big", `{"n":10485760}`), nil, 200, tooLarge)
	w.want("a result of 1 MiB more", call("4", "big", `{"n":1048576}`), nil, 200, `"result"`)
	resp, err := http.ReadResponse(bufio.NewReader(conns[1]), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), tooLarge) {
		t.Errorf("the second: got %.200s, want too_large", body)
	}
	conns[0].Close()
	mcptest.Eventually(t, "the result is released", func() bool { return w.edge.Held() == 0 })
	w.want("a result of 64 MiB to a caller that holds nothing", call("5", "big", fmt.Sprintf(`{"n":%d}`, 64<<20-100)), nil, 200, `"result"`)
}

// Each result of a batch that does not fit into the caller's memory limit is replaced by an error, in order.
func TestBatchIsCharged(t *testing.T) {
	w := newWire(t, edge.Options{})
	var calls, want []string
	for i := range 20 {
		calls = append(calls, call(fmt.Sprint(i), "big", `{"n":8388608}`))
		want = append(want, fmt.Sprintf(`"id":%d`, i))
	}
	_, _, got := w.post("["+strings.Join(calls, ",")+"]", nil)
	results, errs := strings.Count(got, `"result":`), strings.Count(got, tooLarge)
	if results < 1 || results > 8 || results+errs != 20 {
		t.Errorf("got %d results and %d errors, want 20, of which 8 results at most", results, errs)
	}
	for _, id := range want {
		i := strings.Index(got, id+",")
		if i < 0 {
			t.Fatalf("got no answer with %s behind those before it", id)
		}
		got = got[i:]
	}
}

// A body is charged as it is read. An announced length is not charged.
func TestBodiesAreCharged(t *testing.T) {
	w := newWire(t, edge.Options{})
	const announced = 4 << 20
	for range 100 {
		w.raw("{", announced, nil)
	}
	if status, _, _ := w.post(call("1", "echo", "{}"), nil); status != 200 || w.edge.Held() > 0 {
		t.Errorf("100 bodies that only were announced: got %d and %d bytes held, want 200 and none", status, w.edge.Held())
	}
	part := strings.Repeat(" ", 3<<20)
	for range 17 {
		w.raw(part, announced, nil)
	}
	mcptest.Eventually(t, "what has come is charged", func() bool { return w.edge.Held() == own })
	resp, err := http.ReadResponse(bufio.NewReader(w.raw(part, announced, nil)), nil)
	if err != nil || resp.StatusCode != 429 {
		t.Fatalf("a body too many: got %v, %v; want 429", resp, err)
	}
	if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), tooMuch) {
		t.Errorf("a body too many: got %s, want overloaded", body)
	}
	p := newStdio(t, w.edge, w.srv)
	p.send(call("1", "echo", "{}"))
	contains(t, "another caller", p.line(), `"result"`)
	p.finish()
}

// An unread stream drops its oldest messages to make room for a large one. All streams of a caller together hold at
// most half of its memory limit.
func TestQueuesAreCharged(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	for i := range 900 {
		w.edge.Send(h["Mcp-Session-Id"], logMessage(i, 1000))
	}
	if !w.edge.Send(h["Mcp-Session-Id"], logMessage(900, 1<<20)) {
		t.Error("a message as large as the queue: got it refused, want it in place of the others")
	}
	if held := w.edge.Held(); held > 1<<20+1000 {
		t.Errorf("got %d bytes held, want those of the last message", held)
	}
	for range 100 {
		id := w.open("2025-06-18")["Mcp-Session-Id"]
		w.edge.Send(id, logMessage(0, 1<<20-200))
	}
	if held := w.edge.Held(); held > own/2 || held < own/4 {
		t.Errorf("100 sessions: got %d bytes held, want half of %d at most", held, own)
	}
	w.want("a request meanwhile", call("1", "echo", "{}"), h, 200)
	resp := w.do(context.Background(), "GET", "/mcp", "", h)
	equal(t, "answer", readEvents(t, resp.Body).message(), string(logMessage(900, 1<<20)))
}

// If the response is to be JSON, notifications of the call go to the session's own stream if that is open. Progress
// does not: it belongs to the stream of its request.
func TestNotificationsBesideJSON(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-06-18")
	ev := readEvents(t, w.do(context.Background(), "GET", "/mcp", "", h).Body)
	if f, _ := ev.next(); f.comment == "" {
		t.Fatalf("got %+v, want the stream opened", f)
	}
	only := header{"Mcp-Session-Id": h["Mcp-Session-Id"], "Accept": "application/json"}
	if _, _, got := w.post(call("1", "burst", `{"n":3}`), only); got != `{"jsonrpc":"2.0","id":1,"result":{"done":true}}` {
		t.Errorf("got %s, want the result alone", got)
	}
	w.post(call("2", "messages", `{"n":3,"bytes":1}`), only)
	for i := range 3 {
		equal(t, "answer", ev.message(), string(logMessage(i, 1)))
	}
}

// brokenWriter panics in the middle of a response.
type brokenWriter struct {
	*httptest.ResponseRecorder
	writes int
}

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.writes++; w.writes == 2 {
		panic("oops")
	}
	return w.ResponseRecorder.Write(b)
}

// A panic on a goroutine of the edge affects only the work of that goroutine.
func TestPanicsStayInside(t *testing.T) {
	srv := newServer()
	e := edge.New(edge.Options{})
	h := e.Streamable(srv, nil)
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		session := header{"Mcp-Session-Id": direct(h, "POST", initialize(version), nil).Header().Get("Mcp-Session-Id")}
		r := httptest.NewRequest("POST", "http://127.0.0.1/mcp", reader(call("1", "burst", `{"n":500}`)))
		r.Header.Set("Mcp-Session-Id", session["Mcp-Session-Id"])
		h.ServeHTTP(&brokenWriter{ResponseRecorder: httptest.NewRecorder()}, r)
		if w := direct(h, "POST", call("2", "echo", "{}"), session); !strings.Contains(w.Body.String(), `"echo"`) {
			t.Errorf("%s, the next call: got %s, want a result", version, w.Body)
		}
	}
	pr, pw := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- e.ServeStdio(t.Context(), pr, panicking{}, srv) }()
	fmt.Fprintln(pw, call("1", "echo", "{}"))
	select {
	case err := <-served:
		if err == nil {
			t.Error("stdio: got no error, want one")
		}
	case <-time.After(10 * time.Second):
		t.Error("stdio: got stuck, want an error")
	}
	equal(t, "Stop", e.Stop(t.Context()), nil)
	if held := e.Held(); held != 0 {
		t.Errorf("got %d bytes held in the end, want none", held)
	}
}

type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic(errors.New("oops")) }

// When the memory limit is reached, requests are refused before their body is read. They are served again when the
// memory is free, without a garbage collection by others.
func TestMemoryShort(t *testing.T) {
	runtime.GC()
	var before runtime.MemStats // what earlier tests left
	runtime.ReadMemStats(&before)
	limit := int64(2*(before.HeapAlloc+before.StackInuse) + 64<<20)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	w := newWire(t, edge.Options{})
	used := make([]byte, limit)
	runtime.GC() // what lives is known from here on
	status, got, body := w.post(call("1", "echo", "{}"), nil)
	if status != http.StatusTooManyRequests || got.Get("Retry-After") != "1" || !strings.Contains(body,
		`"reason":"overloaded","retryable":true`) {
		t.Errorf("got %d %v %s, want 429 with Retry-After and overloaded", status, got, body)
	}
	equal(t, "refused", w.edge.Refused(), 1)
	if len(w.srv.log()) != 0 {
		t.Errorf("the handler got %v, want nothing", w.srv.log())
	}
	runtime.KeepAlive(used)
	mcptest.Eventually(t, "requests are served again", func() bool {
		status, _, _ := w.post(call("1", "echo", "{}"), nil)
		return status == http.StatusOK
	})
}
