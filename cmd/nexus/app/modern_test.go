package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// modern is a client of 2026-07-28 over streamable HTTP: it answers input_required results with a retry.
type modern struct {
	r    *running
	c    *client
	path string
	caps string
}

// dialModern returns a client of 2026-07-28 of a surface, which needs no session.
func (r *running) dialModern(path, caps string) *client {
	c := newClient(r.t)
	m := &modern{r, c, path, caps}
	var legs sync.WaitGroup
	r.t.Cleanup(legs.Wait)
	c.send = func(raw string, to *reply) { legs.Go(func() { m.travel([]byte(raw), to) }) }
	return c
}

// inEras runs a test with a client of the handshake era and with one of 2026-07-28, at the same time as others.
func inEras(t *testing.T, name string, test func(t *testing.T, dial func(r *running, caps string) *client)) {
	for era, dial := range map[string]func(r *running, caps string) *client{
		"2025-06-18": func(r *running, caps string) *client { return r.dial(caps, nil) },
		"2026-07-28": func(r *running, caps string) *client { return r.dialModern("/mcp", caps) },
	} {
		t.Run(name+"/"+era, func(t *testing.T) {
			t.Parallel()
			test(t, dial)
		})
	}
}

// travel sends a request, and again with answers as long as there are questions.
func (m *modern) travel(raw []byte, to *reply) {
	id, method, params := jsonrpc.Get(raw, "id"), jsonrpc.Text(jsonrpc.Get(raw, "method")), jsonrpc.Get(raw, "params")
	meta := jsonrpc.Get(params, "_meta")
	meta = jsonrpc.Set(meta, "io.modelcontextprotocol/protocolVersion", []byte(`"2026-07-28"`))
	meta = jsonrpc.Set(meta, "io.modelcontextprotocol/clientCapabilities", []byte(m.caps))
	params = jsonrpc.Set(params, "_meta", meta)
	header := map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Accept": "application/json, text/event-stream"}
	if name := jsonrpc.Text(jsonrpc.Get(params, "name")); name != "" {
		header["Mcp-Name"] = name
	}
	for leg := 1; ; leg++ {
		legID := jsonrpc.StringID(fmt.Sprintf("%s-%d", id, leg))
		resp, body := m.r.raw(http.MethodPost, m.path, string(jsonrpc.Request(legID, method, params)), header)
		messages := []string{body}
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			messages = nil
			_ = mcptest.Events(strings.NewReader(body), func(_, data string) { messages = append(messages, data) })
		}
		more := false
		for _, message := range messages {
			if jsonrpc.Get([]byte(message), "method") == nil {
				if got := string(jsonrpc.Get([]byte(message), "id")); got != string(legID) {
					m.c.t.Errorf("got an answer to %s, want one to %s", got, legID)
				}
				if result := jsonrpc.Get([]byte(message), "result"); jsonrpc.Text(jsonrpc.Get(result, "resultType")) == "input_required" {
					params, more = m.answered(params, result), true
					continue
				}
				message = string(jsonrpc.Set([]byte(message), "id", id))
			}
			m.c.take([]byte(message), to)
		}
		if !more {
			return
		}
	}
}

// answered returns the params of the retry.
func (m *modern) answered(params, result []byte) []byte {
	answers := []byte(`{}`)
	jsonrpc.Members(jsonrpc.Get(result, "inputRequests"), func(key []byte, place jsonrpc.Span) bool {
		question := place.Of(jsonrpc.Get(result, "inputRequests"))
		answer := m.c.answer(message{Raw: string(question), Method: jsonrpc.Text(jsonrpc.Get(question, "method")), Params: json.RawMessage(jsonrpc.Get(question, "params"))})
		if answer == "" {
			answer = "null"
		}
		answers = jsonrpc.Set(answers, string(key), []byte(answer))
		return true
	})
	return jsonrpc.Set(jsonrpc.Set(params, "inputResponses", answers), "requestState", jsonrpc.Get(result, "requestState"))
}

// A server of the handshake era asks the client of 2026-07-28 whose call caused it, on every surface.
func TestServersAskModernClients(t *testing.T) {
	asker := peerTool{"book", object, func(c *peerCall) (string, string) {
		c.progress(`"progress":1`)
		answer := c.ask("elicitation/create", `{"message":"Which city?","requestedSchema":{"type":"object","properties":{}}}`)
		c.progress(`"progress":2`)
		roots := c.ask("roots/list", `{}`)
		return textResult(string(answer.Result) + " " + string(roots.Error)), ""
	}}
	r, p := withPeer(t, nil, nil, asker)
	for path, tool := range map[string]string{"/proxy/mcp": "peer__book", "/servers/peer/mcp": "book", "/mcp": "peer__book"} {
		c := r.dialModern(path, `{"elicitation":{}}`)
		var asked []string
		c.answer = func(m message) string {
			asked = append(asked, m.Raw)
			return `{"action":"accept","content":{"city":"Oslo"}}`
		}
		before := len(p.calls())
		reply := c.call(tool, `{}`, `{"progressToken":"t"}`)
		if got := c.result(reply).text(); !strings.HasPrefix(got, `{"action":"accept","content":{"city":"Oslo"}}`) || !strings.Contains(got, "-32601") {
			t.Errorf("%s: got %s, want the answer of the client, and that it has no roots", path, got)
		}
		want := `"message":"Server peer asks: Which city?"`
		if path == "/servers/peer/mcp" {
			want = `"message":"Which city?"`
		}
		if len(asked) != 1 || !strings.Contains(asked[0], want) {
			t.Errorf("%s: got the questions %q, want one with %s", path, asked, want)
		}
		if got := len(p.calls()) - before; got != 1 {
			t.Errorf("%s: got %d calls of the tool, want one", path, got)
		}
		if len(reply.notes) != 2 {
			t.Errorf("%s: got %d reports of progress, want one with each leg", path, len(reply.notes))
		}
	}
}

// A requestState continues the request of its caller on its path, once; all others are refused.
func TestForeignRequestStates(t *testing.T) {
	asker := peerTool{"book", object, func(c *peerCall) (string, string) {
		return textResult(string(c.ask("elicitation/create", `{"message":"Which city?"}`).Result)), ""
	}}
	r, p := withPeer(t, nil, func(o *app.Options) { o.Config.Auth.APIKeys = keys("ann", "bob") }, asker)
	call := func(key, path, state string) (int, []byte) {
		tool, more := "peer__book", ""
		if path == "/servers/peer/mcp" {
			tool = "book"
		}
		if state != "" {
			more = `"inputResponses":{"q1":{"action":"decline"}},"requestState":` + state + ","
		}
		resp, body := r.raw("POST", path, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`",`+more+strings.Replace(modernMeta, `Capabilities":{}`, `Capabilities":{"elicitation":{}}`, 1)+`}}`,
			map[string]string{"X-API-Key": key, "Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool})
		return resp.StatusCode, []byte(body)
	}
	for _, path := range []string{"/proxy/mcp", "/servers/peer/mcp", "/mcp"} {
		_, first := call("ann", path, "")
		state := string(jsonrpc.Get(first, "result", "requestState"))
		for what, row := range map[string][3]string{
			"another caller": {"bob", path, state},
			"forged":         {"ann", path, `"nexus-` + strings.Repeat("A", 26) + `"`},
			"another path":   {"ann", map[bool]string{true: "/mcp", false: "/proxy/mcp"}[path == "/proxy/mcp"], state},
			"of a server":    {"ann", "/mcp", `"s"`},
			"no text":        {"ann", "/mcp", `7`},
		} {
			if status, got := call(row[0], row[1], row[2]); status != 400 || string(jsonrpc.Get(got, "error", "code")) != "-32602" || !strings.Contains(string(got), "call again without it") {
				t.Errorf("%s, %s: got %d %s, want 400 and -32602", path, what, status, got)
			}
		}
		if status, got := call("ann", path, state); status != 200 || !strings.Contains(string(got), "decline") {
			t.Errorf("%s: got %d %q %s, want the result", path, status, state, got)
		}
		if status, got := call("ann", path, state); status != 400 {
			t.Errorf("%s, again: got %d %s, want 400", path, status, got)
		}
	}
	if got := len(p.calls()); got != 3 {
		t.Errorf("got %d calls at the server, want one for each path", got)
	}
}

// One caller's listeners leave room for what others send, and those beyond its share are refused until some end.
func TestFloodOfListeners(t *testing.T) {
	_, url := taskServer(t)
	r := start(t, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("peer", url))
		o.Config.Auth.APIKeys = keys("ann", "bob")
		o.Config.Limits.TrackedRequests = 20
	})
	for path, call := range map[string]string{
		"/mcp": callOf("health_check", "{}"), "/proxy/mcp": callOf("peer__greet", "{}"), "/servers/peer/mcp": callOf("greet", "{}"),
	} {
		ann, bob := r.taskClient(path, "ann"), r.taskClient(path, "bob")
		transport := &http.Transport{}
		ann.HTTP = &http.Client{Transport: mcptest.WithKey(transport, "ann")} // without a time limit
		listen := func() *http.Response {
			resp, err := ann.Post(t.Context(), `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"taskIds":["x"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+mcptest.Tasks+`}}}`)
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		var open []*http.Response
		refused := 0
		for range 40 {
			resp := listen()
			if resp.StatusCode == http.StatusOK {
				open = append(open, resp)
			} else if refused++; resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
				t.Errorf("%s: got %d, want 429 and when to come again", path, resp.StatusCode)
			}
			if resp.StatusCode != http.StatusOK {
				resp.Body.Close()
			}
			if got := bob.Do(t.Context(), "tools/call", call); got.Outcome() != "result" {
				t.Fatalf("%s: another caller beside %d listeners: got %s", path, len(open), got.Outcome())
			}
		}
		if len(open) > 20 || refused < 20 {
			t.Errorf("%s: got %d listeners and %d refusals, want 20 listeners at most", path, len(open), refused)
		}
		for _, resp := range open {
			resp.Body.Close()
		}
		mcptest.Eventually(t, "room for another listener", func() bool {
			resp := listen()
			defer resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		})
		transport.CloseIdleConnections()
	}
}
