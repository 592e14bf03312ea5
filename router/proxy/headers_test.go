package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// annotated are properties of a tool's arguments by name of the tool: valid ones, and such that break a rule each about
// x-mcp-header.
var annotated = map[string]string{
	"valid":      `"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"object","properties":{"c":{"type":"integer","x-mcp-header":"b-C_1"}}},"d":true`,
	"as_data":    `"a":{"type":"object","default":{"x-mcp-header":""}},"x-mcp-header":{"type":"number"}`,
	"empty":      `"a":{"type":"string","x-mcp-header":""}`,
	"no_text":    `"a":{"type":"string","x-mcp-header":1}`,
	"space":      `"a":{"type":"string","x-mcp-header":"My Region"}`,
	"colon":      `"a":{"type":"string","x-mcp-header":"Region:Primary"}`,
	"line_end":   `"a":{"type":"string","x-mcp-header":"Region\r\nX"}`,
	"umlaut":     `"a":{"type":"string","x-mcp-header":"Région"}`,
	"number":     `"a":{"type":"number","x-mcp-header":"A"}`,
	"object":     `"a":{"type":"object","x-mcp-header":"A"}`,
	"array":      `"a":{"type":"array","x-mcp-header":"A"}`,
	"null":       `"a":{"type":"null","x-mcp-header":"A"}`,
	"untyped":    `"a":{"x-mcp-header":"A"}`,
	"twice":      `"a":{"type":"string","x-mcp-header":"A"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"a"}}}`,
	"in_items":   `"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`,
	"in_a_union": `"a":{"anyOf":[{"type":"null"},{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}]}`,
	"in_a_map":   `"a":{"additionalProperties":{"type":"string","x-mcp-header":"A"}}`,
	"in_pattern": `"a":{"patternProperties":{"^x":{"type":"string","x-mcp-header":"A"}}}`,
}

// Tools whose schemas name an invalid header are excluded where the specification says so: from servers of 2026-07-28
// over HTTP for all clients, and from other servers for clients of 2026-07-28 over HTTP.
func TestInvalidParamHeaders(t *testing.T) {
	for _, server := range []struct {
		transport string
		modern    bool
	}{{overHTTP, true}, {overHTTP, false}, {overPipe, true}, {overPipe, false}} {
		s := newServer()
		s.modern = server.modern
		for name, properties := range annotated {
			s.lists["tools/list"] = append(s.lists["tools/list"], `{"name":`+quote(name)+`,"inputSchema":{"type":"object","properties":{`+properties+`}}}`)
		}
		s.lists["tools/list"] = append(s.lists["tools/list"], `{"name":"at_the_root","inputSchema":{"type":"object","x-mcp-header":"A"}}`)
		w := newWorld(t, nil, place{"s", server.transport, s, ""})
		excluded := server.modern && server.transport == overHTTP
		lines := w.stdio()
		lines.hello()
		for _, client := range []struct {
			name, path string
			do         func(path, method, params, name string) *answer
			excluded   bool
		}{
			{"modern", proxyPath, w.modern, true},
			{"modern", "/servers/s/mcp", w.modern, true},
			{"handshake", proxyPath, nil, excluded},
			{"handshake", "/servers/s/mcp", nil, excluded},
			{"modern over stdio", proxyPath, func(_, method, params, _ string) *answer {
				return lines.do(method, "{"+strings.TrimSuffix(modernMeta+","+params, ",")+"}")
			}, excluded},
		} {
			name := fmt.Sprintf("%+v, %s client on %s", server, client.name, client.path)
			if client.do == nil {
				c := w.dial(client.path)
				client.do = func(_, method, params, _ string) *answer { return c.do(method, "{"+params+"}") }
			}
			prefix := ""
			if client.path == proxyPath {
				prefix = "s__"
			}
			want := len(s.lists["tools/list"])
			if client.excluded {
				want = 2
			}
			listed := names(client.do(client.path, "tools/list", "", "").result, "tools", "name")
			if len(listed) != want {
				t.Errorf("%s: got tools %q, want %d", name, listed, want)
			}
			for tool := range annotated {
				before := len(s.got("tools/call"))
				a := client.do(client.path, "tools/call", `"name":`+quote(prefix+tool)+`,"arguments":{}`, prefix+tool)
				valid := tool == "valid" || tool == "as_data" || !client.excluded
				if said := a.err + a.refused; valid != (a.result != "") || !valid && (!strings.Contains(said, `"reason":"quarantined"`) || !strings.Contains(said, "x-mcp-header")) {
					t.Errorf("%s, %s: got %s %s", name, tool, a.result, said)
				}
				if called := len(s.got("tools/call")) > before; called != valid {
					t.Errorf("%s, %s: got a call at the server %t, want %t", name, tool, called, valid)
				}
			}
		}
		said := "tool hidden from clients of 2026-07-28 over HTTP"
		if excluded {
			said = "tool quarantined"
		}
		mcptest.Eventually(t, "warnings", func() bool {
			return w.logs.Has("WARN", said, "tool=space", "My Region") && w.logs.Has("WARN", said, "tool=twice") && !w.logs.Has("tool=valid")
		})
		if n := len(w.logs.Lines("WARN", said, "tool=space")); n != 1 {
			t.Errorf("%+v: got %d warnings about a tool, want one for a list that does not change", server, n)
		}
	}
}

// Headers are sent also where the schema of the tool has parts that say nothing about them.
func TestParamHeadersBesideOthers(t *testing.T) {
	s := newServer()
	s.modern = true
	s.lists["tools/list"] = []string{`{"name":"valid","inputSchema":{"type":"object","properties":{` + annotated["valid"] + `}}}`}
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	c := w.dial(proxyPath)
	if a := c.do("tools/call", `{"name":"s__valid","arguments":{"a":"x","b":{"c":7},"d":[]}}`); a.result == "" {
		t.Fatalf("got %s %s, want a result", a.err, a.refused)
	}
	h := s.header("tools/call")
	want := http.Header{"Mcp-Param-A": {"x"}, "Mcp-Param-B-C_1": {"7"}}
	for name := range want {
		if h.Get(name) != want.Get(name) {
			t.Errorf("got %s: %q, want %q", name, h.Get(name), want.Get(name))
		}
	}
}
