package edge_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// A POST with nothing but a body is served in version 2025-03-26. A request of a session has the client's description
// from initialize.
func TestLenientPost(t *testing.T) {
	w := newWire(t, edge.Options{})
	status, h, body := w.post(`{"jsonrpc":"2.0","id":1,"method":"seen","params":{"a":1}}`, nil)
	if status != 200 || h.Get("Content-Type") != "application/json" || h.Get("Mcp-Session-Id") != "" {
		t.Errorf("got %d %v, want 200, JSON and no session", status, h)
	}
	contains(t, "no session", body, `"Session":""`, `"Version":"2025-03-26"`, `"Caller":"addr:127.0.0.1"`, `"Params":{"a":1}`)
	session := w.open("2025-06-18")
	w.want("session", `{"jsonrpc":"2.0","id":1,"method":"seen"}`, session, 200,
		`"Session":"`+session["Mcp-Session-Id"]+`"`, `"Version":"2025-06-18"`, `"Capabilities":{"sampling":{}}`,
		`"Info":{"name":"c","version":"1"}`)
}

func TestNegotiation(t *testing.T) {
	rows := []struct{ asked, want string }{
		{"2024-11-05", "2024-11-05"}, {"2025-03-26", "2025-03-26"}, {"2025-06-18", "2025-06-18"},
		{"2025-11-25", "2025-11-25"},
		{"2024-11", "2025-11-25"}, {"2026-07-28", "2025-11-25"}, {"", "2025-11-25"}, {`9\u0000`, "2025-11-25"},
	}
	w := newWire(t, edge.Options{})
	c := w.sse(nil)
	p := newStdio(t, w.edge, w.srv)
	for _, row := range rows {
		want := `"protocolVersion":"` + row.want + `"`
		w.want(fmt.Sprintf("/mcp, %q", row.asked), initialize(row.asked), nil, 200, want)
		c.post(initialize(row.asked), nil)
		contains(t, fmt.Sprintf("/sse, %q", row.asked), c.events.message(), want)
		p.send(initialize(row.asked))
		contains(t, fmt.Sprintf("stdio, %q", row.asked), p.line(), want)
	}
	p.finish()
}

// Each message is refused with the given status and code, and none reaches the handler.
func TestRefusedPosts(t *testing.T) {
	w := newWire(t, edge.Options{Limits: limit.Config{BodyBytes: 2000}})
	session := w.open("2025-06-18")
	with := func(more header) header {
		h := header{"Mcp-Session-Id": session["Mcp-Session-Id"]}
		for k, v := range more {
			h[k] = v
		}
		return h
	}
	ok := call("1", "echo", "{}")
	deep := strings.Repeat("[", jsonrpc.MaxDepth)
	rows := []struct {
		name, body string
		h          header
		status     int
		id         string
		code       int
	}{
		{"no JSON", `{"jsonrpc"`, nil, 400, "null", -32700},
		{"empty", ``, nil, 400, "null", -32700},
		{"trailing data", ok + "x", nil, 400, "null", -32700},
		{"too deep", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":` + deep + `}}`, nil, 400, "null", -32700},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\xff\"}", nil, 400, "null", -32600},
		{"no object", `7`, nil, 400, "null", -32600},
		{"wrong version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, nil, 400, "1", -32600},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, nil, 400, "null", -32600},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, nil, 400, "null", -32600},
		{"fraction id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, nil, 400, "null", -32600},
		{"duplicate member", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, nil, 400, "null", -32600},
		{"case variant", `{"jsonrpc":"2.0","id":1,"Method":"x","method":"ping"}`, nil, 400, "null", -32600},
		{"two _meta", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{},"_meta":{}}}`, nil, 400, "1", -32600},
		{"two keys", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"api_key":"a","api_key":"b"}}}`, nil, 400,
			"1", -32600},
		{"array params", `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, nil, 400, "1", -32600},
		{"too large", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat("a", 2000) + `"}}`, nil,
			413, "null", -32600},
		{"content type", ok, header{"Content-Type": "text/plain"}, 415, "null", -32600},
		{"unknown version header", ok, header{"MCP-Protocol-Version": "2024-11"}, 400, "1", -32022},
		{"unknown version header in a session", ok, with(header{"MCP-Protocol-Version": "1900-01-01"}), 400, "1", -32022},
		{"unknown session", ok, header{"Mcp-Session-Id": "nobody"}, 404, "1", -32600},
		{"session and unknown session for initialize", initialize("2025-06-18"), header{"Mcp-Session-Id": "nobody"}, 404,
			`"init"`, -32600},
		{"batch", `[` + ok + `]`, session, 400, "null", -32600},
		{"empty batch", `[]`, nil, 400, "null", -32600},
		{"broken batch", `[` + ok, nil, 400, "null", -32700},
	}
	served := len(w.srv.log())
	for _, row := range rows {
		status, _, body := w.post(row.body, row.h)
		if status != row.status {
			t.Errorf("%s: got %d %s, want %d", row.name, status, body, row.status)
		}
		checkError(t, body, row.id, row.code)
	}
	if got := w.srv.log(); len(got) != served {
		t.Errorf("served: got %q, want nothing", got[served:])
	}
}

// A client that sends its whole message before it reads gets the reason for the refusal.
func TestTooLargeIsTold(t *testing.T) {
	const limited = 4 << 20
	w := newWire(t, edge.Options{Limits: limit.Config{BodyBytes: limited}})
	for _, length := range []string{"Content-Length: %[1]d\r\n\r\n%[2]s",
		"Transfer-Encoding: chunked\r\n\r\n%[1]x\r\n%[2]s\r\n0\r\n\r\n"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.http.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		const size = 2*limited - 100
		if _, err := fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"+length,
			size, strings.Repeat("a", size)); err != nil {
			t.Fatalf("sending: got %v, want it taken", err)
		}
		answer, _ := io.ReadAll(conn)
		if !strings.HasPrefix(string(answer), "HTTP/1.1 413 ") || !strings.HasSuffix(string(answer),
			`"The message is larger than 4MiB"}}`) {
			t.Errorf("got %q, want 413 and why", answer)
		}
	}
}

// A body that ends before its announced length is no message.
func TestCutBody(t *testing.T) {
	w := newWire(t, edge.Options{})
	conn := w.raw(call("1", "echo", "{}"), 500, nil)
	_ = conn.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(conn)
	contains(t, "cut", string(answer), "HTTP/1.1 400 ")
	equal(t, "served", len(w.srv.log()), 0)
}

func TestMethods(t *testing.T) {
	w := newWire(t, edge.Options{})
	rows := []struct {
		method, path string
		h            header
		status       int
	}{
		{"PUT", "/mcp", nil, 405},
		{"HEAD", "/mcp", nil, 405},
		{"GET", "/mcp", nil, 405},
		{"GET", "/mcp", header{"Mcp-Session-Id": "nobody"}, 404},
		{"GET", "/mcp", header{"MCP-Protocol-Version": "1"}, 400},
		{"GET", "/mcp", header{"Mcp-Session-Id": w.open("2025-06-18")["Mcp-Session-Id"], "Accept": "application/json"}, 406},
		{"DELETE", "/mcp", nil, 400},
		{"DELETE", "/mcp", header{"Mcp-Session-Id": "nobody"}, 404},
		{"OPTIONS", "/mcp", nil, 204},
		{"POST", "/sse", nil, 405},
		{"GET", "/messages/?session_id=x", nil, 405},
		{"POST", "/messages/", nil, 400},
		{"POST", "/messages", nil, 400},
		{"POST", "/messages/?session_id=nobody", nil, 404},
	}
	for _, row := range rows {
		resp := w.do(context.Background(), row.method, row.path, "", row.h)
		if resp.StatusCode != row.status {
			t.Errorf("%s %s %v: got %d, want %d", row.method, row.path, row.h, resp.StatusCode, row.status)
		}
		if row.status == 405 && resp.Header.Get("Allow") == "" {
			t.Errorf("%s %s: got no Allow header, want one", row.method, row.path)
		}
	}
}

// The Accept header decides whether the response is JSON or an event stream.
func TestAccept(t *testing.T) {
	const plain = `{"jsonrpc":"2.0","id":1,"result":{"done":true}}`
	stream := "event: message\ndata: " + string(progress([]byte("1"), 0)) + "\n\nevent: message\ndata: " + plain + "\n\n"
	rows := []struct {
		name, accept, tool string
		json               bool
		want               string
	}{
		{"nothing said, nothing before", "", `burst","x":{"n":0},"y":"`, true, plain},
		{"nothing said", "", "burst", false, stream},
		{"both", "application/json, text/event-stream", "burst", false, stream},
		{"both, turned round", "text/event-stream;q=0.9, application/json", "burst", false, stream},
		{"everything", "*/*", "burst", false, stream},
		{"JSON only", "application/json", "burst", true, plain},
		{"neither", "text/html", "burst", true, plain},
		{"events only", "text/event-stream", "echo", false,
			"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"echo\":{\"n\":1}}}\n\n"},
		{"forced", "", "stream", false, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"streamed\":" +
			"true}}\n\n"},
		{"preferred, nothing said", "", "prefer", true, plain},
		{"preferred, everything", "*/*", "prefer", true, plain},
		{"preferred, both", "application/json, text/event-stream", "prefer", false, "event: message\ndata: " + plain + "\n\n"},
		{"forced in vain", "application/json", "stream", true, `{"jsonrpc":"2.0","id":1,"result":{"streamed":true}}`},
	}
	w := newWire(t, edge.Options{})
	for _, row := range rows {
		body := call("1", row.tool, `{"n":1}`)
		if strings.Contains(row.tool, `"x"`) {
			body = call("1", "burst", `{"n":0}`)
		}
		status, h, got := w.post(body, header{"Accept": row.accept})
		if status != 200 || got != row.want {
			t.Errorf("%s: got %d %q, want 200 %q", row.name, status, got, row.want)
		}
		want := map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache",
			"X-Accel-Buffering": "no", "Connection": "keep-alive"}
		if row.json {
			want = map[string]string{"Content-Type": "application/json"}
		}
		for k, v := range want {
			if h.Get(k) != v {
				t.Errorf("%s: got %s %q, want %q", row.name, k, h.Get(k), v)
			}
		}
	}
}

// Data of an event is one line, whatever the message looks like.
func TestEventsAreSingleLines(t *testing.T) {
	w := newWire(t, edge.Options{})
	_, _, got := w.post(call("1", "lines", "{}"), nil)
	equal(t, "events", got, "event: message\ndata: {\"jsonrpc\":\"2.0\", \"method\":\"notifications/x\"}\n\n"+
		"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{  \"a\":   1 }}\n\n")
	p := newStdio(t, w.edge, w.srv)
	p.send(call("1", "lines", "{}"))
	p.line()
	equal(t, "stdio", p.line(), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{  \"a\":   1 }}")
	p.finish()
}

// Results larger than all buffers arrive whole, on all transports, as JSON and as events.
func TestLargeResults(t *testing.T) {
	const n = 8 << 20
	w := newWire(t, edge.Options{})
	want := `{"jsonrpc":"2.0","id":1,"result":{"big":"` + strings.Repeat("x", n) + `"}}`
	body := call("1", "big", fmt.Sprintf(`{"n":%d}`, n))
	check := func(name, got string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %d bytes, want %d", name, len(got), len(want))
		}
	}
	_, h, got := w.post(body, nil)
	check("JSON", got)
	if h.Get("Content-Length") != fmt.Sprint(len(want)) {
		t.Errorf("Content-Length: got %q, want %d", h.Get("Content-Length"), len(want))
	}
	resp := w.do(context.Background(), "POST", "/mcp", body, header{"Accept": "text/event-stream"})
	check("event", readEvents(t, resp.Body).message())
	c := w.sse(nil)
	c.post(body, nil)
	check("sse", c.events.message())
	p := newStdio(t, w.edge, w.srv)
	p.send(body)
	check("stdio", p.line())
	p.finish()
}

// A handler that does not reply, or panics, affects no other request.
func TestHandlerFaults(t *testing.T) {
	w := newWire(t, edge.Options{})
	for _, method := range []string{"silent", "panic"} {
		status, _, body := w.post(`{"jsonrpc":"2.0","id":"x","method":"`+method+`"}`, nil)
		if status != 200 {
			t.Errorf("%s: got %d, want 200", method, status)
		}
		checkError(t, body, `"x"`, -32603)
	}
}

func TestOverload(t *testing.T) {
	const want = `"error":{"code":-32000,"message":"The router is overloaded; end requests or sessions, or try again later","data":{"server":"","reason":` +
		`"overloaded","retryable":true}}}`
	w := newWire(t, edge.Options{Limits: limit.Config{TrackedRequests: 1, Sessions: 3}})
	h := w.open("2025-06-18")
	c := w.sse(nil)
	p := newStdio(t, w.edge, w.srv)
	mcptest.Eventually(t, "three sessions", func() bool { return w.edge.Sessions() == 3 })
	if status, _, body := w.post(initialize("2025-06-18"), nil); status != 503 || !strings.HasSuffix(body, want) {
		t.Errorf("a session too many: got %d %s, want 503 %s", status, body, want)
	}
	w.status("a stream too many", "GET", "/sse", "", nil, 503)
	done := make(chan struct{})
	go func() {
		w.post(call("1", "hold", "{}"), h)
		close(done)
	}()
	mcptest.Eventually(t, "the call is served", func() bool { return w.edge.Tracked() == 1 })
	if status, got, body := w.post(call("2", "echo", "{}"), h); status != 429 || got.Get("Retry-After") != "1" ||
		!strings.HasSuffix(body, want) {
		t.Errorf("a request too many: got %d %v %s, want 429 %s", status, got, body, want)
	}
	if r := w.do(context.Background(), "POST", "/mcp", call("2", "echo", "{}"), h); r.StatusCode != 429 || !r.Close {
		t.Errorf("a request too many: got %d and close %v, want 429 and the connection closed", r.StatusCode, r.Close)
	}
	if status, got, body := w.post(`{"jsonrpc":"2.0","method":"notifications/x"}`, nil); status != 429 ||
		got.Get("Retry-After") != "1" || !strings.HasSuffix(body, want) {
		t.Errorf("a notification without a session: got %d %v %s, want 429 %s", status, got, body, want)
	}
	if _, _, body := w.post(modernCall("echo"), modernHeader("tools/call", "echo")); !strings.Contains(body,
		`"code":-32603`) ||
		!strings.Contains(body, `"reason":"overloaded"`) {
		t.Errorf("modern: got %s, want -32603 and the reason", body)
	}
	c.post(call("3", "echo", "{}"), nil)
	if got := c.events.message(); !strings.HasSuffix(got, want) {
		t.Errorf("sse: got %s, want %s", got, want)
	}
	p.send(call("4", "echo", "{}"))
	equal(t, "stdio, which is another caller", p.line(), `{"jsonrpc":"2.0","id":4,"result":{"echo":{}}}`)
	close(w.srv.release)
	<-done
	if status, _, body := w.post(call("2", "echo", "{}"), h); status != 200 || strings.Contains(body, "overloaded") {
		t.Errorf("with room again: got %d %s, want a result", status, body)
	}
	p.finish()
}
