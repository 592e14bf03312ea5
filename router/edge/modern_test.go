package edge_test

import (
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestModernRequests(t *testing.T) {
	w := newWire(t, edge.Options{})
	session := w.open("2025-11-25")
	meta := func(s string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{` + s + `}}}`
	}
	const (
		version = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
		caps    = `"io.modelcontextprotocol/clientCapabilities":{}`
	)
	list := modernHeader("tools/list", "")
	list["Mcp-Name"] = ""
	with := func(h header, k, v string) header {
		out := header{k: v}
		for key, value := range h {
			if key != k {
				out[key] = value
			}
		}
		return out
	}
	echo := modernHeader("tools/call", "echo")
	rows := []struct {
		name, body string
		h          header
		status     int
		code       int // 0 = a result
	}{
		{"good", modern("1", "tools/list", ""), list, 200, 0},
		{"good call", modernCall("echo"), echo, 200, 0},
		{"good call, encoded", modernCall("echo"), with(echo, "Mcp-Name", "=?base64?ZWNobw==?="), 200, 0},
		{"good read", modern("1", "resources/read", `"uri":"file:///ä",`), modernHeader("resources/read",
			"=?base64?ZmlsZTovLy/DpA==?="), 200, 0},
		{"session is ignored", modern("1", "tools/list", ""), with(list, "Mcp-Session-Id", "nobody"), 200, 0},
		{"known session is ignored", modern("1", "tools/list", ""), with(list, "Mcp-Session-Id",
			session["Mcp-Session-Id"]), 200, 0},
		{"no version header", modern("1", "tools/list", ""), with(list, "MCP-Protocol-Version", ""), 400, -32020},
		{"other version header", modern("1", "tools/list", ""), with(list, "MCP-Protocol-Version", "2025-11-25"),
			400, -32020},
		{"unknown version", meta(`"io.modelcontextprotocol/protocolVersion":"2027-01-01",` + caps),
			with(list, "MCP-Protocol-Version", "2027-01-01"), 400, -32022},
		{"unknown version, no version header", meta(`"io.modelcontextprotocol/protocolVersion":"2027-01-01",` + caps),
			with(list, "MCP-Protocol-Version", ""), 400, -32022},
		{"unknown version, other version header", meta(`"io.modelcontextprotocol/protocolVersion":"2027-01-01",` + caps),
			list, 400, -32020},
		{"handshake version", meta(`"io.modelcontextprotocol/protocolVersion":"2025-11-25",` + caps),
			with(list, "MCP-Protocol-Version", "2025-11-25"), 400, -32022},
		{"version is no string", meta(`"io.modelcontextprotocol/protocolVersion":7,` + caps), list, 400, -32602},
		{"version twice", meta(version + "," + version + "," + caps), list, 400, -32600},
		{"progress token twice", meta(version + "," + caps + `,"progressToken":1,"progressToken":2`), list, 400, -32600},
		{"progress token in another case", meta(version + "," + caps + `,"ProgressToken":1`), list, 400, -32600},
		{"no capabilities", meta(version), list, 400, -32602},
		{"capabilities are no object", meta(version + `,"io.modelcontextprotocol/clientCapabilities":[]`), list, 400, -32602},
		{"header but no meta", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, list, 400, -32602},
		{"no method header", modern("1", "tools/list", ""), with(list, "Mcp-Method", ""), 400, -32020},
		{"other method header", modern("1", "tools/list", ""), with(list, "Mcp-Method", "prompts/list"), 400, -32020},
		{"method header in another case", modern("1", "tools/list", ""), with(list, "Mcp-Method", "Tools/List"), 400, -32020},
		{"no name header", modernCall("echo"), with(echo, "Mcp-Name", ""), 400, -32020},
		{"other name header", modernCall("echo"), with(echo, "Mcp-Name", "other"), 400, -32020},
		{"bad encoding", modernCall("echo"), with(echo, "Mcp-Name", "=?base64?!!?="), 400, -32020},
		{"name header without a name", modern("1", "prompts/get", ""), modernHeader("prompts/get", "x"), 400, -32020},
		{"two names", modern("1", "tools/call", `"name":"echo","name":"other",`), echo, 400, -32020},
		{"no name anywhere", modern("1", "tools/call", ""), with(echo, "Mcp-Name", ""), 400, -32602},
		{"unknown method", modern("1", "unknown", ""), with(list, "Mcp-Method", "unknown"), 404, -32601},
		{"unknown tool", modernCall("nope"), modernHeader("tools/call", "nope"), 400, -32602},
		{"no session to ask", modernCall("ask"), modernHeader("tools/call", "ask"), 200, -32603},
		{"removed", modern("1", "ping", ""), modernHeader("ping", ""), 404, -32601},
		{"removed, too", modern("1", "resources/subscribe", `"uri":"x",`), modernHeader("resources/subscribe", ""),
			404, -32601},
		{"batch", "[" + modern("1", "tools/list", "") + "]", list, 400, -32600},
	}
	for _, row := range rows {
		h := header{}
		for k, v := range row.h {
			if v != "" {
				h[k] = v
			}
		}
		status, answer, body := w.post(row.body, h)
		if status != row.status {
			t.Errorf("%s: got %d %s, want %d", row.name, status, body, row.status)
		}
		switch {
		case row.code == 0 && !strings.Contains(body, `"id":1,"result":`):
			t.Errorf("%s: got %s, want a result", row.name, body)
		case row.code != 0:
			id := "1"
			if row.name == "batch" {
				id = "null"
			}
			checkError(t, body, id, row.code)
		}
		if got := answer.Get("Mcp-Session-Id"); got != "" {
			t.Errorf("%s: got session %q, want none", row.name, got)
		}
	}
	if got := w.edge.Sessions(); got != 1 {
		t.Errorf("sessions: got %d, want 1", got)
	}
}

func TestUnsupportedVersionSaysWhatIsSupported(t *testing.T) {
	w := newWire(t, edge.Options{})
	_, _, body := w.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, header{"MCP-Protocol-Version": "1900-01-01"})
	want := `"data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":` +
		`"1900-01-01"}`
	if !strings.Contains(body, want) {
		t.Errorf("got %s, want %s", body, want)
	}
	c := w.sse(nil) // without 2026-07-28
	status, _ := c.post(modernCall("echo"), nil)
	body = c.events.message()
	if want := `"data":{"supported":["2025-11-25","2025-06-18","2025-03-26","2024-11-05"],` +
		`"requested":"2026-07-28"}`; status != 202 || !strings.Contains(body, want) {
		t.Errorf("sse: got %d %s, want 202 and %s", status, body, want)
	}
}

func TestModernExchange(t *testing.T) {
	w := newWire(t, edge.Options{})
	want := []string{`"Session":""`, `"Version":"2026-07-28"`, `"Capabilities":{"x":1}`,
		`"Info":{"name":"m","version":"1"}`}
	check := func(name, body string) {
		t.Helper()
		for _, part := range want {
			if !strings.Contains(body, part) {
				t.Errorf("%s: got %s, want %s in it", name, body, part)
			}
		}
	}
	_, _, body := w.post(modern("1", "seen", ""), header{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "seen"})
	check("http", body)
	if !strings.Contains(body, `"Mcp-Method":["seen"]`) {
		t.Errorf("http: got %s, want the headers in it", body)
	}
	p := newStdio(t, w.edge, w.srv)
	p.send(modern("1", "seen", ""))
	check("stdio", p.line())
	p.send(modern("2", "tools/call", `"name":"sleep",`))
	mcptest.Eventually(t, "the call is served", func() bool { return len(w.srv.log()) == 1 })
	p.send(cancelOf("2", `"x"`))
	mcptest.Eventually(t, "the call is cancelled", func() bool { return w.edge.Tracked() == 0 })
	checkCause(t, w.srv, `"x"`)
	p.send(strings.Replace(modern("3", "ping", ""), "2026-07-28", "2031-01-01", 1))
	checkError(t, p.line(), "3", -32022)
	p.finish()
}

// Notifications of 2026-07-28 are accepted without a session.
func TestModernNotification(t *testing.T) {
	w := newWire(t, edge.Options{})
	body := `{"jsonrpc":"2.0","method":"notifications/x","params":{` + modernMeta + `}}`
	if status, _, got := w.post(body, header{"MCP-Protocol-Version": "2026-07-28"}); status != 202 || got != "" {
		t.Errorf("got %d %q, want 202 and no body", status, got)
	}
	if got := w.srv.log(); len(got) != 1 || got[0] != "notifications/x" {
		t.Errorf("served: got %q, want the notification", got)
	}
}
