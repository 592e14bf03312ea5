package proxy_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// deploy is a tool whose argument region, nested or not, is repeated in a header.
func deploy(header string) string {
	return `{"name":"deploy","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"` + header + `"},` +
		`"size":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"Size"}}},"note":{"type":"string"}}}}`
}

// strict is a server that refuses calls without the headers which its tool wants, as MCP 2026-07-28 asks.
func strict(header string, modern bool) *server {
	s := newServer()
	s.modern = modern
	s.lists["tools/list"] = []string{deploy(header)}
	s.gate = func(w http.ResponseWriter, r *http.Request) bool {
		raw, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(raw))
		m, _ := jsonrpc.Parse(raw)
		if m.Method != "tools/call" || !modern {
			return false
		}
		s.mu.Lock()
		schema := jsonrpc.Get([]byte(s.lists["tools/list"][0]), "inputSchema")
		s.mu.Unlock()
		err := mcp.ValidateParamHeadersLookup(func(name string) (string, bool) {
			return r.Header.Get(name), r.Header[http.CanonicalHeaderKey(name)] != nil
		}, &mcp.Tool{RawInputSchema: json.RawMessage(schema)}, m.Params)
		if err == nil {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(jsonrpc.RawError(m.ID, []byte(`{"code":-32020,"message":"Header mismatch at the server"}`)))
		return true
	}
	return s
}

const deployArguments = `"arguments":{"region":"süd","size":{"n":7},"note":"x"}`

// Clients of either era call tools whose arguments are repeated in headers, on servers of either era.
func TestParamHeaders(t *testing.T) {
	for _, modern := range []bool{true, false} {
		s := strict("Region", modern)
		w := newWorld(t, nil, place{"s", overHTTP, s, ""})
		for path, name := range map[string]string{proxyPath: "s__deploy", "/servers/s/mcp": "deploy"} {
			c := w.newClient(path)
			c.hello()
			if a := c.do("tools/call", `{"name":`+quote(name)+`,`+deployArguments+`}`); !strings.Contains(a.result, `"seen"`) {
				t.Errorf("%s, modern %t: got %s %s %s, want a result", path, modern, a.result, a.err, a.refused)
			}
			for _, tc := range []struct {
				name   string
				header http.Header
				ok     bool
			}{
				{"right", http.Header{"Mcp-Param-Region": {"=?base64?c8O8ZA==?="}, "Mcp-Param-Size": {"7"}}, true},
				{"none", http.Header{}, false},
				{"one is missing", http.Header{"Mcp-Param-Region": {"=?base64?c8O8ZA==?="}}, false},
				{"another value", http.Header{"Mcp-Param-Region": {"nord"}, "Mcp-Param-Size": {"7"}}, false},
				{"twice", http.Header{"Mcp-Param-Region": {"=?base64?c8O8ZA==?="}, "Mcp-Param-Size": {"7", "7"}}, false},
			} {
				before := len(s.got("tools/call"))
				a := w.modernWith(tc.header, path, "tools/call", "{"+modernMeta+`,"name":`+quote(name)+`,`+deployArguments+"}", name)
				switch {
				case tc.ok && !strings.Contains(a.result, `"seen"`):
					t.Errorf("%s, modern %t, %s: got %s %s %s, want a result", path, modern, tc.name, a.result, a.err, a.refused)
				case !tc.ok && (a.status != http.StatusBadRequest || !strings.Contains(a.refused+a.err, "-32020") || len(s.got("tools/call")) != before):
					t.Errorf("%s, modern %t, %s: got %d %s %s %s, want 400 and -32020 of the router's own", path, modern, tc.name, a.status, a.result, a.err, a.refused)
				}
			}
		}
		if h := s.header("tools/call"); modern && (h.Get("Mcp-Param-Region") != "=?base64?c8O8ZA==?=" || h.Get("Mcp-Param-Size") != "7" || h.Get("Mcp-Param-Note") != "") {
			t.Errorf("got headers %v at the server, want those that the tool asks for", h)
		}
	}
}

// A definition that has changed is listed again where the server refuses the headers of a call.
func TestParamHeadersOfAnOldDefinition(t *testing.T) {
	s := strict("Region", true)
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	c := w.newClient("/servers/s/mcp")
	c.hello()
	call := func() *answer { return c.do("tools/call", `{"name":"deploy",`+deployArguments+`}`) }
	if a := call(); !strings.Contains(a.result, `"seen"`) {
		t.Fatalf("got %s %s, want a result", a.result, a.err)
	}
	s.change(func() { s.lists["tools/list"] = []string{deploy("Zone")} })
	if a := call(); !strings.Contains(a.result, `"seen"`) || s.header("tools/call").Get("Mcp-Param-Zone") == "" {
		t.Errorf("got %s %s, want a result with the headers of the new definition", a.result, a.err)
	}
	s.change(func() { s.lists["tools/list"] = []string{deploy("not a header")} })
	lists := len(s.got("tools/list"))
	if a := call(); !strings.Contains(a.err, "-32020") || len(s.got("tools/list")) > lists+1 {
		t.Errorf("got %s %s after %d more lists, want the server's error after one", a.result, a.err, len(s.got("tools/list"))-lists)
	}
}
