package edge_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestBatches(t *testing.T) {
	w := newWire(t, edge.Options{})
	echo := func(id string) string { return call(id, "echo", id) }
	result := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{"echo":` + id + `}}` }
	const note = `{"jsonrpc":"2.0","method":"notifications/x"}`
	failure := func(id, message string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32600,"message":"Invalid request: ` + message + `"}}`
	}
	rows := []struct {
		name, body string
		status     int
		want       string
	}{
		{"two", `[` + echo("1") + `,` + echo(`"1"`) + `]`, 200, `[` + result("1") + `,` + result(`"1"`) + `]`},
		{"with a notification", ` [` + note + `, ` + echo("1") + `]`, 200, `[` + result("1") + `]`},
		{"notifications and responses only", `[` + note + `,{"jsonrpc":"2.0","id":1,"result":{}}]`, 202, ``},
		{"no message", `[7,` + echo("1") + `]`, 200, `[` + failure("null", "a message must be an object") + `,` +
			result("1") + `]`},
		{"initialize", `[` + initialize("2025-03-26") + `]`, 200, `[` + failure(`"init"`,
			"initialize must not be in a batch") + `]`},
		{"an id twice", `[` + echo("1") + `,` + echo("1") + `,` + echo(`"1"`) + `]`, 200,
			`[` + result("1") + `,` + failure("1", "the id 1 is already in flight") + `,` + result(`"1"`) + `]`},
		{"modern", `[` + modernCall("echo") + `]`, 200,
			`[` + failure("1", "protocol version 2026-07-28 has no batches") + `]`},
		{"progress first", `[` + call("1", "burst", `{"n":1}`) + `,` + echo("2") + `]`, 200,
			"event: message\ndata: " + string(progress([]byte("1"), 0)) + "\n\nevent: message\ndata: [" +
				`{"jsonrpc":"2.0","id":1,"result":{"done":true}},` + result("2") + "]\n\n"},
	}
	sessions := map[string]header{
		"no session": nil, "session": w.open("2025-03-26"), "header": {"MCP-Protocol-Version": "2025-03-26"},
	}
	for name, h := range sessions {
		for _, row := range rows {
			if status, _, body := w.post(row.body, h); status != row.status || body != row.want {
				t.Errorf("%s, %s: got %d %s, want %d %s", name, row.name, status, body, row.status, row.want)
			}
		}
	}
	for _, version := range []string{"2024-11-05", "2025-06-18", "2025-11-25"} {
		w.want(version, rows[0].body, w.open(version), 400)
		w.want(fmt.Sprintf("%s by header", version), rows[0].body, header{"MCP-Protocol-Version": version}, 400)
	}
}

// The handler of a request in a batch may send requests to the client, which opens a stream.
func TestAskInBatch(t *testing.T) {
	w := newWire(t, edge.Options{Heartbeat: 10 * time.Millisecond})
	h := w.open("2025-03-26")
	resp := w.do(context.Background(), "POST", "/mcp", `[`+call("1", "ask", "{}")+`,`+call("2", "hold", "{}")+`]`, h)
	ev := readEvents(t, resp.Body)
	id := string(jsonrpc.Get([]byte(ev.message()), "id"))
	w.post(`[{"jsonrpc":"2.0","id":`+id+`,"result":7}]`, h)
	close(w.srv.release)
	want := `[{"jsonrpc":"2.0","id":1,"result":{"answer":7}},{"jsonrpc":"2.0","id":2,"result":{"held":true}}]`
	equal(t, "answer", ev.message(), want)
}

// Each request of a batch counts towards the limit.
func TestOverloadedBatch(t *testing.T) {
	w := newWire(t, edge.Options{Limits: limit.Config{TrackedRequests: 1}})
	go func() {
		mcptest.Eventually(t, "one is served and one refused", func() bool { return len(w.srv.log()) == 1 && w.edge.Refused() == 1 })
		close(w.srv.release)
	}()
	_, _, body := w.post(`[`+call("1", "hold", "{}")+`,`+call("2", "hold", "{}")+`]`, nil)
	if !strings.HasPrefix(body, `[{"jsonrpc":"2.0","id":1,"result":{"held":true}},{"jsonrpc":"2.0","id":2,"error":`+
		`{"code":-32000,`) {
		t.Errorf("got %s, want a result and an error", body)
	}
}

// A cancelled request of a batch has no response in the array.
func TestCancelInBatch(t *testing.T) {
	w := newWire(t, edge.Options{})
	h := w.open("2025-03-26")
	answer := w.start(`[`+call("1", "sleep", "{}")+`,`+call("2", "echo", "{}")+`]`, h)
	w.served(2)
	w.post(cancelOf("1", "null"), h)
	equal(t, "one of two", <-answer, `[{"jsonrpc":"2.0","id":2,"result":{"echo":{}}}]`)
	answer = w.start(`[`+call("1", "sleep", "{}")+`]`, h)
	w.served(3)
	w.post(`[`+cancelOf("1", "null")+`]`, h)
	equal(t, "the only one", <-answer, "")
}

func TestBatchesOnSharedStreams(t *testing.T) {
	const want = `[{"jsonrpc":"2.0","id":1,"result":{"echo":{}}},{"jsonrpc":"2.0","id":2,"result":{"echo":{}}}]`
	body := `[` + call("1", "echo", "{}") + `,` + call("2", "echo", "{}") + `]`
	w := newWire(t, edge.Options{})
	c := w.sse(nil)
	c.want("before initialize", body, nil, 400)
	c.post(initialize("2025-03-26"), nil)
	c.events.message()
	c.post(body, nil)
	equal(t, "sse", c.events.message(), want)
	p := newStdio(t, w.edge, w.srv)
	p.send(initialize("2025-03-26"))
	p.line()
	p.send(body)
	equal(t, "stdio", p.line(), want)
	p.finish()
}

// Of a large batch a part is served at once. The rest is tracked, can be cancelled, and follows.
func TestBatchIsServedInPart(t *testing.T) {
	const width = 64
	w := newWire(t, edge.Options{})
	h := w.open("2025-03-26")
	var calls []string
	for i := range 200 {
		calls = append(calls, call(strconv.Itoa(i), "hold", "{}"))
	}
	answer := w.start("["+strings.Join(calls, ",")+"]", h)
	mcptest.Eventually(t, "all are tracked and a part is served", func() bool {
		return w.edge.Tracked() == 200 && len(w.srv.log()) >= width
	})
	w.post(cancelOf("199", "null"), h)
	w.post(call(`"x"`, "echo", "{}"), h)
	equal(t, "served", len(w.srv.log()), width+1)
	close(w.srv.release)
	got := <-answer
	if n := strings.Count(got, `"held":true`); n != 199 || strings.Contains(got, `"id":199,`) {
		t.Errorf("got %d results, want 199, all but the one that was cancelled", n)
	}
}
