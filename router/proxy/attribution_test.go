package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Whatever era a server and its client speak, the user reads which server asks, except where the server is alone or the
// configuration says so.
func TestServersAskInTheirNames(t *testing.T) {
	const question = `{"q":{"method":"elicitation/create","params":{"mode":"url","url":"https://u@x/y","message":"Log in","requestedSchema":{}}}}`
	const named = `"Server s asks you to open x: Log in"`
	for _, attribute := range []bool{true, false} {
		old := newServer("form")
		old.on = func(r *request) bool {
			if r.Method != "tools/call" {
				return false
			}
			r.ask("elicitation/create", string(jsonrpc.Get([]byte(question), "q", "params")))
			r.result(`{"content":[]}`)
			return true
		}
		for era, s := range map[string]*server{"handshake": old, "modern": curious(question)} {
			w := newWorld(t, func(s *setup) { s.config.Attribute = attribute }, place{"s", overHTTP, s, ""})
			for path, tool := range map[string]string{proxyPath: "s__form", "/servers/s/mcp": "form"} {
				want := `"Log in"`
				if attribute && path == proxyPath {
					want = named
				}
				c := w.dialAs(path, "test", func(jsonrpc.Message) string { return `"result":{"action":"accept"}` })
				c.call(tool)
				if asked := c.questions(); len(asked) != 1 || string(jsonrpc.Get(asked[0].Params, "message")) != want {
					t.Errorf("%s server, handshake client, %s, attribute %t: got %v, want the message %s", era, path, attribute, asked, want)
				}
				meta := strings.Replace(modernMeta, `Capabilities":{}`, `Capabilities":{"elicitation":{"url":{}}}`, 1)
				a := w.modernWith(http.Header{}, path, "tools/call", fmt.Sprintf(`{"name":%q,%s}`, tool, meta), tool)
				if !strings.Contains(a.result, `"message":`+want+`,"requestedSchema":{}`) {
					t.Errorf("%s server, modern client, %s, attribute %t: got %s %s, want the message %s", era, path, attribute, a.result, a.err, want)
				}
			}
		}
	}
}

// A server asks nothing but what its requests allow, whoever answers, and learns of no capability to answer more.
func TestRequestsOfServers(t *testing.T) {
	old := newServer("form", "ping")
	old.on = func(r *request) bool {
		switch {
		case r.Method != "tools/call":
			return false
		case r.name() == "ping":
			r.result(`{"content":[],"raw":` + quote(string(r.ask("ping", `{}`).Result)) + `}`)
		default:
			roots := r.ask("roots/list", `{}`)
			r.result(`{"content":[],"raw":` + quote(string(r.ask("elicitation/create", `{"message":"m"}`).Err)+string(r.ask("acme/ask", `{}`).Err)+string(roots.Result)) + `}`)
		}
		return true
	}
	for _, path := range []string{proxyPath, "/servers/s/mcp"} {
		prefix := map[bool]string{true: "s__"}[path == proxyPath]
		modern := curious(`{"who":{"method":"elicitation/create","params":{"message":"Who?"}}}`)
		for era, s := range map[string]*server{"handshake": old, "modern": modern} {
			w := newWorld(t, func(s *setup) { s.downstream.Servers[0].Requests = []string{"roots"} }, place{"s", overHTTP, s, ""})
			c := w.dialAs(path, "test", func(jsonrpc.Message) string { return `"result":{"roots":[]}` })
			a := c.call(prefix + "form")
			meta := strings.Replace(modernMeta, `Capabilities":{}`, `Capabilities":{"elicitation":{},"roots":{}}`, 1)
			if era == "modern" {
				const refused = "the configuration does not let the server ask for it"
				b := w.modernWith(http.Header{}, path, "tools/call", fmt.Sprintf(`{"name":%q,%s}`, prefix+"form", meta), prefix+"form")
				if !strings.Contains(a.err, refused) || !strings.Contains(b.err, refused) || len(c.questions()) > 0 {
					t.Errorf("%s, modern server: got %s, %s and the questions %v, want both calls refused", path, a.err, b.err, c.questions())
				}
				for _, params := range s.got("tools/call") {
					got := string(jsonrpc.Get([]byte(params), "_meta", "io.modelcontextprotocol/clientCapabilities"))
					if strings.Contains(got, "elicitation") || !strings.Contains(got, "roots") {
						t.Errorf("%s: got the capabilities %s at the server, want roots alone", path, got)
					}
				}
				continue
			}
			if strings.Count(a.result, "-32601") != 2 || !strings.Contains(a.result, `{\"roots\":[]}`) || len(c.questions()) != 1 {
				t.Errorf("%s: got %s and the questions %v, want the roots, and nothing else asked", path, a.result, c.questions())
			}
			if a := c.call(prefix + "ping"); !strings.Contains(a.result, `"raw":"{`) {
				t.Errorf("%s ping: got %s, want an answer", path, a.result)
			}
			for _, params := range s.got("initialize") {
				got := string(jsonrpc.Get([]byte(params), "capabilities"))
				if strings.Contains(got, "elicitation") || strings.Contains(got, "sampling") || !strings.Contains(got, "roots") {
					t.Errorf("%s: got the capabilities %s at the server, want roots alone", path, got)
				}
			}
		}
	}
}
