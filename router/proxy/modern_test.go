package proxy_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"}}`

// modern sends a request of 2026-07-28; name is what Mcp-Name says, if anything.
func (w *world) modern(path, method, params, name string) *answer {
	if params != "" {
		params = "," + params
	}
	return w.modernDo(path, method, name, "{"+modernMeta+params+"}")
}

// modernDo is modern with whole params.
func (w *world) modernDo(path, method, name, params string) *answer {
	w.t.Helper()
	return w.modernWith(http.Header{}, path, method, params, name)
}

// modernWith sends further headers with the request.
func (w *world) modernWith(header http.Header, path, method, params, name string) *answer {
	w.t.Helper()
	c := w.newClient(path)
	c.header = header.Clone()
	c.header.Set("MCP-Protocol-Version", "2026-07-28")
	c.header.Set("Mcp-Method", method)
	if name != "" {
		c.header.Set("Mcp-Name", name)
	}
	a := c.do(method, params)
	c.close()
	return a
}

// Clients of 2026-07-28 use servers of either kind, without a session of theirs.
func TestModernClients(t *testing.T) {
	for _, kind := range []string{overHTTP, overSSE, overPipe, "modern"} {
		t.Run(kind, func(t *testing.T) {
			s := withResources("file:///x")
			s.lists["tools/list"] = append(s.lists["tools/list"], `{"name":"ns:tool",`+object+`}`)
			transport := kind
			if kind == "modern" {
				transport, s.modern = overHTTP, true
			}
			w := newWorld(t, nil, place{"s", transport, s, ""})
			for path, prefix := range map[string]string{proxyPath: "s__", "/servers/s/mcp": ""} {
				a := w.modern(path, "server/discover", "", "")
				for _, want := range []string{`"resultType":"complete"`, `"ttlMs":0`, `"cacheScope":"private"`, `"supportedVersions":["2026-07-28","2025-11-25"`, `"io.modelcontextprotocol/serverInfo":{"name":`, `"resources":{`} {
					if !strings.Contains(a.result, want) {
						t.Errorf("%s discover: got %s %s %s, want %s in it", path, a.result, a.err, a.refused, want)
					}
				}
				if strings.Contains(a.result, "protocolVersion") {
					t.Errorf("%s discover: got %s, want no handshake version", path, a.result)
				}
				subscribe := strings.Contains(a.result, `"subscribe":true`)
				if subscribe != (kind != "modern") || !strings.Contains(a.result, `"listChanged":true`) {
					t.Errorf("%s discover: got %s, want subscribe only if the router subscribes, and listChanged", path, a.result)
				}
				for _, list := range kinds {
					a := w.modern(path, list[0], "", "")
					for _, want := range []string{`"resultType":"complete"`, `"ttlMs":0`, `"cacheScope":"private"`, `"` + list[1] + `":[`} {
						if !strings.Contains(a.result, want) {
							t.Errorf("%s %s: got %s %s %s, want %s in it", path, list[0], a.result, a.err, a.refused, want)
						}
					}
				}
				listed := names(w.modern(path, "tools/list", "", "").result, "tools", "name")
				want := []string{"echo", "ns:tool"}
				if prefix != "" {
					want = []string{"s__echo", "s__ns_tool_19c070"}
				}
				if !slices.Equal(listed, want) {
					t.Errorf("%s: got tools %q, want %q", path, listed, want)
				}
				for i, name := range listed {
					a := w.modern(path, "tools/call", `"name":`+quote(name)+`,"arguments":{"n":9007199254740993}`, name)
					own := []string{"echo", "ns:tool"}[i]
					if !strings.Contains(a.result, `"resultType":"complete"`) || !strings.Contains(a.result, `"name":`+quote(own)+`,"arguments":{"n":9007199254740993}`) {
						t.Errorf("%s call %s: got %s %s %s, want a complete result of %s", path, name, a.result, a.err, a.refused, own)
					}
					if sent := s.got("tools/call"); strings.Contains(sent[len(sent)-1], "io.modelcontextprotocol/protocolVersion") != (kind == "modern") {
						t.Errorf("%s: got %s at the server, want who asks only where that is part of the protocol", path, sent[len(sent)-1])
					}
					if h := s.header("tools/call"); kind == "modern" && (h.Get("Mcp-Name") != own || h.Get("Mcp-Method") != "tools/call" || h.Get("MCP-Protocol-Version") != "2026-07-28") {
						t.Errorf("%s: got headers %v at the server, want those of %s", path, h, own)
					}
				}
				uri := "file:///x"
				if prefix != "" {
					uri = "s__file:///x"
				}
				a = w.modern(path, "resources/read", `"uri":`+quote(uri), uri)
				if got := names(a.result, "contents", "uri"); len(got) != 2 || got[0] != uri || !strings.Contains(a.result, `"ttlMs":0`) || !strings.Contains(a.result, `"cacheScope":"private"`) {
					t.Errorf("%s read: got %s %s %s, want %s and how long it may be kept", path, a.result, a.err, a.refused, uri)
				}
				a = w.modern(path, "prompts/get", `"name":`+quote(prefix+"greet"), prefix+"greet")
				if !strings.Contains(a.result, `"messages":[]`) {
					t.Errorf("%s prompt: got %s %s %s, want it", path, a.result, a.err, a.refused)
				}
			}
			if got := s.got("initialize"); kind != "modern" && len(got) != 1 {
				t.Errorf("at the server: got %d sessions, want the router's own alone", len(got))
			}
			if n := w.edge.Sessions(); n != 0 {
				t.Errorf("sessions: got %d, want none", n)
			}
		})
	}
}

// Clients with a handshake use servers that have none.
func TestModernServers(t *testing.T) {
	s := newServer("echo")
	s.modern = true
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	c := w.newClient(proxyPath)
	c.hello()
	if got := c.tools(); !slices.Equal(got, []string{"s__echo"}) {
		t.Errorf("got %q, want s__echo", got)
	}
	a := c.do("tools/call", `{"name":"s__echo","_meta":{"x":1}}`)
	for _, want := range []string{`"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{"sampling":{}`, `"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}`, `"x":1`} {
		if !strings.Contains(a.result, want) {
			t.Errorf("got %s %s, want %s at the server", a.result, a.err, want)
		}
	}
}

// What is wrong with a modern request is said as the specification asks, and nothing is forwarded.
func TestModernRefusals(t *testing.T) {
	s := newServer("echo")
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__echo",` + modernMeta + `}}`
	good := map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "s__echo"}
	for _, row := range []struct {
		name   string
		header map[string]string // changes; empty = absent
		body   string
		status int
		code   string
	}{
		{"fine", nil, call, 200, ""},
		{"the name is the server's", map[string]string{"Mcp-Name": "echo"}, call, 400, "-32020"},
		{"no name", map[string]string{"Mcp-Name": ""}, call, 400, "-32020"},
		{"another method", map[string]string{"Mcp-Method": "tools/list"}, call, 400, "-32020"},
		{"another version in the header", map[string]string{"MCP-Protocol-Version": "2025-11-25"}, call, 400, "-32020"},
		{"an unknown version in both", map[string]string{"MCP-Protocol-Version": "2027-01-01"}, strings.Replace(call, "2026-07-28", "2027-01-01", 1), 400, "-32022"},
		{"an unknown tool", map[string]string{"Mcp-Name": "s__nope"}, strings.Replace(call, `"s__echo"`, `"s__nope"`, 1), 400, "-32602"},
		{"an unknown method", map[string]string{"Mcp-Method": "nope"}, strings.Replace(call, `tools/call`, `nope`, 1), 404, "-32601"},
	} {
		c := w.newClient(proxyPath)
		for name, value := range good {
			c.header.Set(name, value)
		}
		for name, value := range row.header {
			c.header.Set(name, value)
			if value == "" {
				c.header.Del(name)
			}
		}
		before := len(s.got("tools/call"))
		resp, err := c.request(http.MethodPost, row.body)
		if err != nil {
			t.Fatal(err)
		}
		body := readAll(t, resp)
		m, _ := jsonrpc.Parse([]byte(body))
		if got := string(jsonrpc.Get(m.Err, "code")); resp.StatusCode != row.status || got != row.code {
			t.Errorf("%s: got %d %s, want %d and code %q", row.name, resp.StatusCode, body, row.status, row.code)
		}
		if row.code != "" && len(s.got("tools/call")) != before {
			t.Errorf("%s: got a call at the server, want none", row.name)
		}
		if row.code == "-32022" && !strings.Contains(body, `"supported":["2026-07-28","2025-11-25"`) {
			t.Errorf("%s: got %s, want the supported versions", row.name, body)
		}
	}
	dead := newServer("echo")
	dead.fail(status(503))
	down := newWorld(t, nil, place{"s", overHTTP, dead, ""})
	if a := down.modern(proxyPath, "tools/call", `"name":"s__echo"`, "s__echo"); !strings.Contains(a.err, `"code":-32603`) || !strings.Contains(a.err, `"reason":"unavailable"`) {
		t.Errorf("a dead server: got %s %s %s, want -32603 with the reason", a.result, a.err, a.refused)
	}
}

// A connection that closes cancels in the modern era.
func TestModernConnectionCancels(t *testing.T) {
	for _, transport := range transports {
		s := newServer("hang")
		started, ended := hanging(s)
		w := newWorld(t, nil, place{"s", transport, s, ""})
		c := w.newClient(proxyPath)
		c.header = http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"s__hang"}}
		c.start("1", "tools/call", `{"name":"s__hang",`+modernMeta+`}`)
		receive(t, "the call", started)
		c.close()
		receive(t, "the cancellation", ended)
		mcptest.Eventually(t, "the notification", func() bool { return len(s.got("notifications/cancelled")) == 1 })
		w.stop()
	}
}
