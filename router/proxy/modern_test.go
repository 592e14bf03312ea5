package proxy_test

import (
	"bytes"
	"context"
	"fmt"
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
	w.t.Helper()
	if params != "" {
		params = "," + params
	}
	return w.modernWith(http.Header{}, path, method, "{"+modernMeta+params+"}", name)
}

// modernWith is modern with whole params and further headers.
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
				if !subscribe || !strings.Contains(a.result, `"listChanged":true`) {
					t.Errorf("%s discover: got %s, want subscribe and listChanged", path, a.result)
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

// announcing returns a server of 2026-07-28 that announces changes of its tools.
func announcing() *server {
	s := newServer("echo")
	s.modern, s.caps = true, `{"tools":{"listChanged":true}}`
	return s
}

// announcements waits until the server announces on n requests.
func (s *server) announcements(t *testing.T, n int) {
	t.Helper()
	mcptest.Eventually(t, "the listen requests", func() bool { return s.streams() == n })
}

// Clients of both eras learn of list changes of a server of 2026-07-28 once, also after it has ended the request.
func TestModernServerAnnounces(t *testing.T) {
	for _, row := range []struct{ transport, session string }{
		{overHTTP, ""}, {overHTTP, "shared"}, {overPipe, ""},
	} {
		t.Run(row.transport+" "+row.session, func(t *testing.T) {
			t.Parallel()
			s := announcing()
			w := newWorld(t, nil, place{"s", row.transport, s, row.session})
			w.wait("s")
			old, modern := w.newClient(proxyPath), w.newClient(proxyPath)
			old.hello()
			old.listen()
			onModern := modern.listens("7", `{"toolsListChanged":true}`)
			if got := acknowledged(modern, onModern, "toolsListChanged"); got != "true" {
				t.Fatalf("acknowledged: got %q, want true", got)
			}
			sessions := 1
			if row.transport == overHTTP && row.session == "" {
				sessions = 2 // the router's own, and that of the client
			}
			for round := range 2 {
				s.announcements(t, sessions)
				mcptest.Eventually(t, "a list that is kept", func() bool {
					before := len(s.got("tools/list"))
					old.tools()
					return len(s.got("tools/list")) == before
				})
				s.change(func() {
					s.lists["tools/list"] = append(s.lists["tools/list"], `{"name":`+quote("new"+strings.Repeat("er", round))+`,`+object+`}`)
				})
				s.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"x":1}}}`)
				mcptest.Eventually(t, "the notifications", func() bool {
					return len(old.heard()) > round && len(modern.noted(onModern)) > round+1
				})
				want := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"x":1}}}`
				if got := old.heard(); len(got) != round+1 || got[round] != want {
					t.Errorf("2025-11-25: got %q, want %d times %s", got, round+1, want)
				}
				if got := told(modern, onModern); len(got) != round+1 {
					t.Errorf("2026-07-28: got %q, want %d", got, round+1)
				}
				if got := old.tools(); len(got) != round+2 {
					t.Errorf("got tools %q, want the new one", got)
				}
				requests := len(s.got("subscriptions/listen"))
				for _, p := range s.all() {
					p.cutStream()
				}
				mcptest.Eventually(t, "other listen requests", func() bool {
					return len(s.got("subscriptions/listen")) == requests+sessions
				})
			}
			for _, params := range s.got("subscriptions/listen") {
				if got := string(jsonrpc.Get([]byte(params), "notifications")); got != `{"toolsListChanged":true}` {
					t.Errorf("asked for %s, want changes of tools alone", got)
				}
			}
			if status := w.manager.Status()["s"]; status.InFlight != 0 {
				t.Errorf("in flight: got %d, want no listen request", status.InFlight)
			}
		})
	}
}

// A server that declares changes but does not know subscriptions/listen is asked once, and is used without.
func TestModernServerDoesNotListen(t *testing.T) {
	for _, transport := range []string{overHTTP, overPipe} {
		t.Run(transport, func(t *testing.T) {
			s := announcing()
			s.errors["subscriptions/listen"] = `{"code":-32601,"message":"Method not found"}`
			w := newWorld(t, nil, place{"s", transport, s, "shared"})
			w.wait("s")
			const refused = "the server declares changes of lists, but does not announce them"
			mcptest.Eventually(t, "the log line", func() bool { return w.logs.Has(refused) })
			c := w.newClient(proxyPath)
			c.hello()
			for range 2 {
				before := len(s.got("tools/list"))
				if got := c.tools(); !slices.Equal(got, []string{"s__echo"}) {
					t.Errorf("got tools %q, want s__echo", got)
				}
				if got := len(s.got("tools/list")); got != before+1 {
					t.Errorf("got %d requests of the list, want another", got-before)
				}
			}
			if lines, asked := w.logs.Lines(refused), s.got("subscriptions/listen"); len(lines) != 1 || len(asked) != 1 {
				t.Errorf("got %d requests and the log lines %q, want one each", len(asked), lines)
			}
		})
	}
}

// state is a requestState whose bytes a decoder would change.
const state = `"\u00e9\/ <&> 9007199254740993"`

// curious is a server of 2026-07-28 that answers a request to form with its questions until it has their answers.
func curious(questions string) *server {
	s := newServer("form")
	s.modern, s.caps = true, `{"tools":{},"prompts":{},"resources":{}}`
	s.lists["prompts/list"] = []string{`{"name":"form"}`}
	s.lists["resources/list"] = []string{`{"name":"form","uri":"file:///form"}`}
	s.on = func(r *request) bool {
		switch r.Method {
		case "tools/call", "prompts/get", "resources/read":
		default:
			return false
		}
		if jsonrpc.Get(r.Params, "inputResponses") == nil {
			r.result(`{"resultType":"input_required","inputRequests":` + questions + `,"requestState":` + state + `,"content":[]}`)
		} else {
			r.result(`{"resultType":"complete","content":[],"messages":[],"contents":[],"seen":` + string(r.Params) + `}`)
		}
		return true
	}
	return s
}

const twoQuestions = `{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","x":1.50}}},"r":{"method":"roots/list"}}`

// Clients with a handshake answer what a modern server wants to know by requests of their own era, and the call goes on
// with the answers and the server's state, byte for byte.
func TestInputOfHandshakeClients(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			s := curious(twoQuestions)
			w := newWorld(t, nil, place{"s", overHTTP, s, ""})
			c := w.newClient(proxyPath)
			c.version, c.answers = version, func(q jsonrpc.Message) string {
				if q.Method == "roots/list" {
					return `"result":{"roots":[]}`
				}
				return `"result":{"action":"accept","content":{"n":9007199254740993, "v":1.0}}`
			}
			c.hello()
			c.listen()
			for method, named := range map[string]string{"tools/call": `"name":"s__form"`, "prompts/get": `"name":"s__form"`, "resources/read": `"uri":"s__file:///form"`} {
				before := len(c.questions())
				a := c.do(method, `{`+named+`,"_meta":{"progressToken":"t","x":1},"arguments":{"big":9007199254740993}}`)
				for _, want := range []string{`"requestState":` + state, `"who":{"action":"accept","content":{"n":9007199254740993, "v":1.0}}`, `"r":{"roots":[]}`, `"x":1`, `"arguments":{"big":9007199254740993}`} {
					if !strings.Contains(a.result, want) {
						t.Errorf("%s: got %s %s, want %s in the params at the server", method, a.result, a.err, want)
					}
				}
				asked := c.questions()[before:]
				if len(asked) != 2 || asked[0].Method != "elicitation/create" || string(asked[0].Params) != `{"message":"Server s asks: Who?","requestedSchema":{"type":"object","x":1.50}}` || asked[1].Method != "roots/list" {
					t.Errorf("%s: got the questions %v, want both as the server wrote them, in its name", method, asked)
				}
				if got := len(s.got(method)); got != 2 {
					t.Errorf("%s: got %d requests at the server, want 2", method, got)
				}
			}
		})
	}
}

// Where the input cannot be had, the error says what the server wanted.
func TestInputThatNobodyGives(t *testing.T) {
	const roots = `{"a":{"method":"roots/list"}}`
	again := func(result string) func(s *server) {
		return func(s *server) {
			s.on = func(r *request) bool {
				if r.Method == "tools/call" {
					r.result(result)
				}
				return r.Method == "tools/call"
			}
		}
	}
	for name, row := range map[string]struct {
		questions, answer string
		change            func(*server)
		want              []string
		calls             int
	}{
		"refused":            {roots, `"error":{"code":-1,"message":"not today"}`, nil, []string{"server s needs an answer to roots/list", "not today", `"server":"s"`, `"retryable":false`}, 1},
		"unknown to it":      {roots, `"error":{"code":-32601,"message":"Method not found"}`, nil, []string{"roots/list", "Method not found"}, 1},
		"no such capability": {`{"a":{"method":"tasks/list"}}`, "", nil, []string{"tasks/list", "the client cannot be asked"}, 1},
		"declined, and asked again": {"", `"result":{"action":"decline"}`, again(`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}`),
			[]string{"elicitation/create", "the user declined"}, 2},
		"endless":         {"", `"result":{"roots":[]}`, again(`{"resultType":"input_required","inputRequests":` + roots + `}`), []string{"more than 16 times", `"reason":"protocol"`}, 17},
		"later":           {"", "", again(`{"resultType":"input_required","requestState":"s"}`), []string{"called again later", `"reason":"protocol"`}, 4},
		"too many":        {"{" + strings.Repeat(`"a":{"method":"roots/list"},`, 40) + `"b":{"method":"roots/list"}}`, `"result":{"roots":[]}`, nil, []string{"more than 32", `"reason":"protocol"`}, 1},
		"too large":       {`{"a":{"method":"roots/list","params":"` + strings.Repeat("x", 5<<20) + `"}}`, "", nil, []string{"bytes", `"reason":"protocol"`}, 1},
		"of another kind": {"", "", again(`{"resultType":"riddle","content":[]}`), []string{`unknown resultType \"riddle\"`, `"reason":"protocol"`}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := curious(row.questions)
			if row.change != nil {
				row.change(s)
			}
			w := newWorld(t, nil, place{"s", overHTTP, s, ""})
			c := w.dialAs(proxyPath, "test", func(jsonrpc.Message) string { return row.answer })
			a := c.do("tools/call", `{"name":"s__form"}`)
			for _, want := range row.want {
				if !strings.Contains(a.err, want) {
					t.Errorf("got %.300s %s, want an error with %s", a.result, a.err, want)
				}
			}
			if got := len(s.got("tools/call")); got != row.calls {
				t.Errorf("got %d calls at the server, want %d", got, row.calls)
			}
		})
	}
}

// A client of 2026-07-28 gets the questions of a modern server as they are and goes on by itself.
func TestInputOfModernClients(t *testing.T) {
	for _, caps := range []string{`{}`, `{"elicitation":{},"roots":{}}`} {
		s := curious(twoQuestions)
		w := newWorld(t, nil, place{"s", overHTTP, s, ""})
		for method, named := range map[string][2]string{"tools/call": {"name", "s__form"}, "prompts/get": {"name", "s__form"}, "resources/read": {"uri", "s__file:///form"}} {
			meta := strings.Replace(modernMeta, `Capabilities":{}`, `Capabilities":`+caps, 1)
			params := fmt.Sprintf(`%q:%q,%s`, named[0], named[1], meta)
			a := w.modernWith(http.Header{}, proxyPath, method, "{"+params+"}", named[1])
			want := `{"resultType":"input_required","inputRequests":` + inItsName("s", twoQuestions) + `,"requestState":` + state + `,"content":[]}`
			if a.result != want {
				t.Errorf("%s: got %s %s %s, want %s", method, a.result, a.err, a.refused, want)
			}
			answers := `"inputResponses":{"who":{"action":"accept","content":{"n":1.0}},"r":{"roots":[]}}`
			a = w.modernWith(http.Header{}, proxyPath, method, "{"+params+","+answers+`,"requestState":`+state+"}", named[1])
			for _, want := range []string{answers, `"requestState":` + state, `"resultType":"complete"`} {
				if !strings.Contains(a.result, want) {
					t.Errorf("%s: got %s %s %s, want %s at the server", method, a.result, a.err, a.refused, want)
				}
			}
		}
	}
}

// A request that fails because the client lacks a capability has the error of the specification, whatever the server
// makes of it. A server that copes is heard.
func TestMissingCapabilities(t *testing.T) {
	const form, url, plain, tools = `{"message":"m"}`, `{"mode":"url","url":"https://x","message":"m"}`, `{"messages":[]}`, `{"messages":[],"tools":[]}`
	s := newServer("ask")
	s.on = func(r *request) bool {
		if r.name() != "ask" {
			return false
		}
		args := jsonrpc.Get(r.Params, "arguments")
		m := r.ask(jsonrpc.Text(jsonrpc.Get(args, "method")), string(jsonrpc.Get(args, "params")))
		switch how := jsonrpc.Text(jsonrpc.Get(args, "how")); {
		case m.Err == nil || how == "copes":
			r.result(`{"content":[],"coped":true}`)
		case how == "error":
			r.fail(string(m.Err))
		default:
			r.result(`{"content":[{"type":"text","text":"failed"}],"isError":true}`)
		}
		return true
	}
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	for _, row := range []struct {
		capabilities, method, params string
		missing                      string // in the data of the error; empty for none
	}{
		{`{}`, "elicitation/create", form, `{"elicitation":{"form":{}}}`},
		{`{"elicitation":{"url":{}}}`, "elicitation/create", form, `{"elicitation":{"form":{}}}`},
		{`{"elicitation":{}}`, "elicitation/create", url, `{"elicitation":{"url":{}}}`},
		{`{"elicitation":{}}`, "elicitation/create", form, ""},
		{`{"roots":{}}`, "sampling/createMessage", plain, `{"sampling":{}}`},
		{`{"sampling":{}}`, "sampling/createMessage", tools, `{"sampling":{"tools":{}}}`},
		{`{"sampling":{"tools":{}}}`, "sampling/createMessage", tools, ""},
		{`{"sampling":{}}`, "roots/list", `{}`, `{"roots":{}}`},
	} {
		for _, how := range []string{"error", "result", "copes"} {
			meta := strings.Replace(modernMeta, `Capabilities":{}`, `Capabilities":`+row.capabilities, 1)
			params := fmt.Sprintf(`{"name":"s__ask","arguments":{"how":%q,"method":%q,"params":%s},%s}`, how, row.method, row.params, meta)
			a := w.modernWith(http.Header{}, proxyPath, "tools/call", params, "s__ask")
			got, want := a.result+a.err+a.refused, `"data":{"requiredCapabilities":`+row.missing+`}`
			switch {
			case row.missing == "":
				want = `"resultType":"input_required"`
			case how == "copes":
				want = `"coped":true`
			case !strings.Contains(a.refused, `"code":-32021`): // refused has what comes with a status other than 200
				t.Errorf("%s without the capability, %s: got %s %s, want -32021", row.method, how, a.result, a.err)
			}
			if !strings.Contains(got, want) {
				t.Errorf("%s of a client with %s, %s: got %s, want %s", row.method, row.capabilities, how, got, want)
			}
		}
	}
}

// A server of go-sdk asks a client with a handshake only once. What it wants to know after that is asked, too.
func TestSecondRoundOfHandshakeServers(t *testing.T) {
	s := newServer("form")
	s.on = func(r *request) bool {
		switch {
		case r.Method != "tools/call":
			return false
		case jsonrpc.Get(r.Params, "requestState") != nil:
			r.result(`{"content":[],"seen":` + string(r.Params) + `}`)
		default:
			r.ask("elicitation/create", `{"message":"1"}`)
			r.result(`{"content":[],"requestState":` + state + `,"inputRequests":{"b":{"method":"elicitation/create","params":{"message":"2"}}}}`)
		}
		return true
	}
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	const answer = `{"action":"accept","content":{"n":1.0}}`
	c := w.dialAs(proxyPath, "test", func(jsonrpc.Message) string { return `"result":` + answer })
	a := c.call("s__form")
	if !strings.Contains(a.result, `"inputResponses":{"b":`+answer+`}`) || !strings.Contains(a.result, state) || len(c.questions()) != 2 {
		t.Errorf("handshake client: got %s %s and %d questions, want the second answer at the server", a.result, a.err, len(c.questions()))
	}
	meta, more := strings.Replace(modernMeta, `Capabilities":{}`, `Capabilities":{"elicitation":{}}`, 1), ""
	for _, round := range []struct{ key, want string }{
		{"q1", `"q1":{"method":"elicitation/create","params":{"message":"Server s asks: 1"}}`},
		{"b", `"b":{"method":"elicitation/create","params":{"message":"Server s asks: 2"}}`},
		{"", `"inputResponses":{"b":` + answer + `}`},
	} {
		a := w.modernWith(http.Header{}, proxyPath, "tools/call", `{"name":"s__form",`+more+meta+`}`, "s__form")
		if !strings.Contains(a.result, round.want) {
			t.Errorf("modern client: got %s %s, want %s", a.result, a.err, round.want)
		}
		more = fmt.Sprintf(`"inputResponses":{%q:%s},"requestState":%s,`, round.key, answer, jsonrpc.Get([]byte(a.result), "requestState"))
	}
}

// A call that waits for its user keeps a shared server from asking callers other than its own. They are told so, even if
// the server passes the refusal on as the error of its call, as go-sdk does.
func TestCallsThatWaitForTheirUser(t *testing.T) {
	s, expired := newServer("ask", "brief"), make(chan struct{})
	s.on = func(r *request) bool {
		switch r.name() {
		case "ask":
		case "brief": // the server has a time limit for the answer
			r.send(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m"}}`)
			<-expired
			r.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`)
			r.result(`{"content":[],"got":"nothing"}`)
			return true
		default:
			return false
		}
		if m := r.ask("elicitation/create", `{"message":"m"}`); m.Err != nil {
			r.fail(`{"code":-32601,"message":"method not found: \"tools/call\""}`)
		} else {
			r.result(`{"content":[],"got":` + string(m.Result) + `}`)
		}
		return true
	}
	w := newWorld(t, func(o *setup) { o.edge.Keys = restricted(t, keyOf("A"), keyOf("B")) }, place{"s", overPipe, s, ""})
	call := func(key, tool, more string) *answer {
		meta := strings.Replace(modernMeta, `Capabilities":{}`, `Capabilities":{"elicitation":{}}`, 1)
		header := http.Header{"X-Api-Key": {"secret-" + key}}
		return w.modernWith(header, proxyPath, "tools/call", `{"name":"`+tool+`",`+more+meta+`}`, tool)
	}
	tools, retries := []string{"s__ask", "s__ask", "s__brief"}, []string(nil)
	for _, tool := range tools { // while one call of A waits, another may ask
		a := call("A", tool, "")
		if !strings.Contains(a.result, `"input_required"`) {
			t.Fatalf("got %s %s %s, want input_required", a.result, a.err, a.refused)
		}
		retries = append(retries, `"inputResponses":{"q1":{"action":"accept"}},"requestState":`+string(jsonrpc.Get([]byte(a.result), "requestState"))+`,`)
	}
	a := call("B", "s__ask", "")
	for _, want := range []string{`"code":-32603`, "server s needs an answer to elicitation/create", "several clients", "Call again", `"server":"s"`} {
		if !strings.Contains(a.err, want) {
			t.Errorf("another caller: got %s %s %s, want %s", a.result, a.err, a.refused, want)
		}
	}
	for _, retry := range retries[:2] {
		if a := call("A", "s__ask", retry); !strings.Contains(a.result, `"got":{"action":"accept"}`) {
			t.Errorf("the retry: got %s %s %s, want the result", a.result, a.err, a.refused)
		}
	}
	close(expired)
	mcptest.Eventually(t, "another caller to be asked after them", func() bool {
		return strings.Contains(call("B", "s__ask", "").result, `"input_required"`)
	})
	if a := call("A", "s__brief", retries[2]); !strings.Contains(a.result, `"got":"nothing"`) {
		t.Errorf("the retry after the limit of the server: got %s %s %s, want the result", a.result, a.err, a.refused)
	}
}

const subscriptionID = "io.modelcontextprotocol/subscriptionId"

// listens sends subscriptions/listen with a raw filter and waits for its acknowledgement.
func (c *client) listens(id, filter string) *answer {
	c.t.Helper()
	c.header.Set("MCP-Protocol-Version", "2026-07-28")
	c.header.Set("Mcp-Method", "subscriptions/listen")
	a := c.start(id, "subscriptions/listen", "{"+modernMeta+`,"notifications":`+filter+"}")
	mcptest.Eventually(c.t, "the acknowledgement", func() bool { return len(c.noted(a)) > 0 })
	return a
}

// acknowledged returns the acknowledged member of a filter.
func acknowledged(c *client, a *answer, member string) string {
	c.t.Helper()
	first := c.noted(a)[0]
	m, _ := jsonrpc.Parse([]byte(first))
	if m.Method != "notifications/subscriptions/acknowledged" || string(jsonrpc.Get(m.Params, "_meta", subscriptionID)) != a.id {
		c.t.Fatalf("got %s first, want the acknowledgement of %s", first, a.id)
	}
	return string(jsonrpc.Get(m.Params, "notifications", member))
}

// told returns the notifications after the acknowledgement, as method and URI.
func told(c *client, a *answer) (got []string) {
	for _, raw := range c.noted(a)[1:] {
		m, _ := jsonrpc.Parse([]byte(raw))
		if string(jsonrpc.Get(m.Params, "_meta", subscriptionID)) != a.id {
			c.t.Errorf("got %s, want the id %s in it", raw, a.id)
		}
		got = append(got, strings.TrimSpace(strings.TrimPrefix(m.Method, "notifications/")+" "+jsonrpc.Text(jsonrpc.Get(m.Params, "uri"))))
	}
	return got
}

// Clients of 2026-07-28 receive the changes that they ask for, and no others, from shared servers and from servers with
// a session per client.
func TestListen(t *testing.T) {
	for _, transport := range []string{overHTTP, overSSE, overPipe} {
		t.Run(transport, func(t *testing.T) {
			s := withResources("file:///x", "file:///z")
			s.caps = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true}}`
			s.errors["file:///no"] = `{"code":-32602,"message":"no"}`
			w := newWorld(t, nil, place{"hr", transport, s, ""})
			w.wait("hr")
			if transport != overPipe {
				mcptest.Eventually(t, "the stream of the server", func() bool { return s.streams() > 0 })
			}
			all, one, tools := w.newClient(proxyPath), w.newClient("/servers/hr/mcp"), w.newClient(proxyPath)
			onAll := all.listens(`"a"`, `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":false,`+
				`"resourceSubscriptions":["hr__file:///x","hr+file:///z","hr__file:///no","nope__file:///x"],"other":true}`)
			onOne := one.listens("7", `{"resourcesListChanged":true,"resourceSubscriptions":["file:///x"]}`)
			onTools := tools.listens("7", `{"toolsListChanged":true}`)
			for member, want := range map[string]string{
				"toolsListChanged": "true", "promptsListChanged": "", "resourcesListChanged": "", "other": "",
				"resourceSubscriptions": `["hr__file:///x","hr+file:///z"]`,
			} {
				if got := acknowledged(all, onAll, member); got != want {
					t.Errorf("acknowledged %s: got %s, want %s", member, got, want)
				}
			}
			if got := acknowledged(one, onOne, "resourceSubscriptions"); got != `["file:///x"]` {
				t.Errorf("acknowledged on the server's path: got %s, want file:///x", got)
			}
			s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///x"}}`)
			s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///z/part"}}`)
			s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///else"}}`)
			s.say(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
			s.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x"}}`)
			s.say(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{"x":1}}}`)
			s.say(changed)
			for _, row := range []struct {
				c    *client
				a    *answer
				want []string
			}{
				{all, onAll, []string{"resources/updated hr__file:///x", "resources/updated hr__file:///z/part", "tools/list_changed"}},
				{one, onOne, []string{"resources/updated file:///x", "resources/list_changed"}},
				{tools, onTools, []string{"tools/list_changed"}},
			} {
				mcptest.Eventually(t, "the notifications", func() bool { return len(row.c.noted(row.a)) > len(row.want) })
				if got := told(row.c, row.a); !slices.Equal(got, row.want) {
					t.Errorf("%s: got %q, want %q", row.c.path, got, row.want)
				}
			}
			if got := s.got("resources/subscribe"); len(got) < 3 {
				t.Errorf("at the server: got %q, want each resource", got)
			}
			all.close()
			mcptest.Eventually(t, "the end of the subscription to z", func() bool {
				got := s.got("resources/unsubscribe")
				return len(got) == 1 && strings.Contains(got[0], `"file:///z"`)
			})
			one.close()
			mcptest.Eventually(t, "the end of the subscription to x", func() bool { return len(s.got("resources/unsubscribe")) == 2 })
		})
	}
}

// subscriptions/listen is answered when the router stops, and does not delay it.
func TestListenEndsWithTheRouter(t *testing.T) {
	w := newWorld(t, nil, place{"hr", overHTTP, withResources("file:///x"), ""})
	w.wait("hr")
	c := w.newClient(proxyPath)
	a := c.listens(`"x"`, `{"resourcesListChanged":true}`)
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	w.stopping.Store(true)
	if err := w.edge.Stop(ctx); err != nil || ctx.Err() != nil {
		t.Errorf("Stop: got %v, %v, want nil in time", err, ctx.Err())
	}
	if got := c.wait(a).result; got != `{"resultType":"complete","_meta":{"`+subscriptionID+`":"x"}}` {
		t.Errorf("got %s, want the end of the subscription", got)
	}
}

// On stdio subscriptions/listen ends when it is cancelled, and with the input.
func TestListenOnStdio(t *testing.T) {
	s := withResources("file:///x")
	w := newWorld(t, nil, place{"hr", overPipe, s, ""})
	w.wait("hr")
	listen := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{` + modernMeta +
			`,"notifications":{"resourceSubscriptions":["hr__file:///x"]}}}` + "\n"
	}
	in := strings.NewReader(listen("1") + listen("2") +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n")
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	var out bytes.Buffer
	if err := w.edge.ServeStdio(ctx, in, &out, w.all); err != nil {
		t.Errorf("ServeStdio: got %v, want nil", err)
	}
	for id, want := range map[string]bool{"1": false, "2": true} {
		if got := strings.Contains(out.String(), `"id":`+id+`,"result":{`); got != want {
			t.Errorf("response to %s: got %v in %s, want %v", id, got, out.String(), want)
		}
	}
}

// Invalid filters are refused, and so is the method before 2026-07-28.
func TestListenRefusals(t *testing.T) {
	w := newWorld(t, nil, place{"hr", overHTTP, withResources("file:///x"), ""})
	for params, want := range map[string]string{
		``:                                       "notifications must be an object",
		`"notifications":[]`:                     "notifications must be an object",
		`"notifications":{"toolsListChanged":1}`: "toolsListChanged must be true or false",
		`"notifications":{"resourceSubscriptions":"x"}`:                                       "resourceSubscriptions must be a list of URIs",
		`"notifications":{"resourceSubscriptions":[1]}`:                                       "resourceSubscriptions must be a list of URIs",
		`"notifications":{"resourceSubscriptions":[` + strings.Repeat(`"a",`, 1000) + `"a"]}`: "at most 1000 URIs",
	} {
		a := w.modern(proxyPath, "subscriptions/listen", params, "")
		if got := a.refused + a.err; !strings.Contains(got, "-32602") || !strings.Contains(got, want) {
			t.Errorf("%.60s: got %s %s, want %s", params, got, a.result, want)
		}
	}
	header := http.Header{"Accept": {"application/json"}}
	a := w.modernWith(header, proxyPath, "subscriptions/listen", `{`+modernMeta+`,"notifications":{}}`, "")
	if a.status != http.StatusBadRequest || !strings.Contains(a.refused, "-32600") {
		t.Errorf("without an event stream: got %d %s, want 400 and -32600", a.status, a.refused)
	}
	c := w.newClient(proxyPath)
	c.hello()
	if a := c.do("subscriptions/listen", `{"notifications":{}}`); !strings.Contains(a.err, "-32601") {
		t.Errorf("2025-11-25: got %s %s, want -32601", a.result, a.err)
	}
}

// Calls of 2026-07-28 do not carry changes, which only subscriptions/listen does.
func TestChangesStayOutOfModernCalls(t *testing.T) {
	s := newServer("change")
	s.on = func(r *request) bool {
		if r.Method != "tools/call" {
			return false
		}
		r.send(changed)
		r.send(`{"jsonrpc":"2.0","method":"notifications/other"}`)
		return false
	}
	w := newWorld(t, nil, place{"hr", overHTTP, s, ""})
	w.wait("hr")
	a := w.modern(proxyPath, "tools/call", `"name":"hr__change"`, "hr__change")
	if got := a.notes; !slices.Equal(got, []string{`{"jsonrpc":"2.0","method":"notifications/other"}`}) {
		t.Errorf("got %q, want the other notification alone", got)
	}
}

// An update of a part reaches those who subscribed to the whole, also while others subscribe to the part.
func TestListenToContainers(t *testing.T) {
	for _, transport := range []string{overHTTP, overPipe} {
		t.Run(transport, func(t *testing.T) {
			s := withResources("file:///d", "file:///d/x")
			w := newWorld(t, nil, place{"hr", transport, s, ""})
			w.wait("hr")
			session := w.dial(proxyPath)
			if a := session.do("resources/subscribe", `{"uri":"hr__file:///d/x"}`); a.result == "" {
				t.Fatalf("resources/subscribe: got %s, want a result", a.err)
			}
			c := w.newClient(proxyPath)
			a := c.listens("1", `{"resourceSubscriptions":["hr__file:///d","hr__file:///d/"]}`)
			if transport != overPipe {
				mcptest.Eventually(t, "both streams of the server", func() bool { return s.streams() == 2 })
			}
			for _, uri := range []string{"file:///d/x", "file:///d"} {
				s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`)
			}
			want := []string{"resources/updated hr__file:///d/x", "resources/updated hr__file:///d"}
			mcptest.Eventually(t, "the updates", func() bool { return slices.Contains(told(c, a), want[1]) })
			if got := told(c, a); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			mcptest.Eventually(t, "the update of the session", func() bool { return len(session.heard()) > 0 })
		})
	}
}

// A client on stdio that has not sent initialize shares the router's session with a server, and receives its updates.
func TestUpdatesWithoutInitialize(t *testing.T) {
	s := withResources("file:///x")
	w := newWorld(t, nil, place{"hr", overHTTP, s, ""})
	w.wait("hr")
	mcptest.Eventually(t, "the stream of the server", func() bool { return s.streams() > 0 })
	c := w.stdio()
	if a := c.do("resources/subscribe", `{"uri":"hr__file:///x"}`); a.result == "" {
		t.Fatalf("got %s, want a result", a.err)
	}
	s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///x"}}`)
	mcptest.Eventually(t, "the update", func() bool { return strings.Contains(strings.Join(c.heard(), ""), "hr__file:///x") })
}

// Odd notifications are passed on in bounded time, with a valid _meta.
func TestListenToOddNotifications(t *testing.T) {
	s := withResources("file:///x")
	w := newWorld(t, nil, place{"hr", overPipe, s, ""})
	w.wait("hr")
	c := w.newClient(proxyPath)
	a := c.listens("1", `{"resourcesListChanged":true,"resourceSubscriptions":["hr__file:///x","hr__x:1","hr__x:2","hr__x:3","hr__x:4","hr__x:5","hr__x:6","hr__x:7","hr__x:8"]}`)
	for _, meta := range []string{`"{"`, `["{\"a\":1"]`, `null`, `1`} {
		s.say(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":` + meta + `}}`)
	}
	for _, uri := range []string{strings.Repeat("/", 2<<20), "file:///x"} {
		s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`)
	}
	mcptest.Eventually(t, "the notifications", func() bool { return len(told(c, a)) == 5 })
}

// Failures of calls have the codes of the client's era.
func TestModernFailures(t *testing.T) {
	dead := newServer("echo")
	dead.fail(status(503))
	w := newWorld(t, nil, place{"fine", overHTTP, newServer("echo"), ""}, place{"dead", overHTTP, dead, ""})
	for name, want := range map[string]string{"fine__nope": `"code":-32602`, "dead__echo": `"code":-32603`} {
		if a := w.modern(proxyPath, "tools/call", `"name":`+quote(name), name); !strings.Contains(a.err+a.refused, want) {
			t.Errorf("%s: got %s %s %s, want %s", name, a.result, a.err, a.refused, want)
		}
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

// Clients with a handshake set log levels and subscribe at servers that have no requests for that, and see nothing of
// the other era in results.
func TestOlderRequestsOfModernServers(t *testing.T) {
	for _, transport := range []string{overHTTP, overPipe} {
		t.Run(transport, func(t *testing.T) {
			s := withResources("file:///x")
			s.modern, s.caps = true, `{"logging":{},"tools":{},"resources":{"subscribe":true}}`
			s.raw["echo"] = `{"content":[],"resultType":"complete","ttlMs":1,"n":9007199254740993,"cacheScope":"private"}`
			w := newWorld(t, nil, place{"s", transport, s, ""})
			w.wait("s")
			c := w.newClient("/servers/s/mcp")
			hello := c.hello()
			c.listen()
			for _, member := range []string{"resultType", "ttlMs", "cacheScope", "supportedVersions"} {
				if strings.Contains(hello.result, member) {
					t.Errorf("initialize: got %s, want no %s", hello.result, member)
				}
			}
			if !strings.Contains(hello.result, `"subscribe":true`) {
				t.Errorf("initialize: got %s, want subscribe", hello.result)
			}
			if got, want := c.do("tools/call", `{"name":"echo"}`).result, `{"content":[],"n":9007199254740993}`; got != want {
				t.Errorf("a call: got %s, want %s", got, want)
			}
			for _, row := range []struct{ method, params, result, err string }{
				{"logging/setLevel", `{"level":"loud"}`, "", `"code":-32602`},
				{"logging/setLevel", `{"level":"warning"}`, "{}", ""},
				{"resources/subscribe", `{"uri":"file:///x"}`, "{}", ""},
				{"resources/subscribe", `{"uri":"file:///x"}`, "{}", ""},
			} {
				if a := c.do(row.method, row.params); a.result != row.result || !strings.Contains(a.err, row.err) {
					t.Errorf("%s %s: got %s %s, want %s %s", row.method, row.params, a.result, a.err, row.result, row.err)
				}
			}
			c.do("tools/call", `{"name":"echo"}`)
			calls := s.got("tools/call")
			if level := `"io.modelcontextprotocol/logLevel":"warning"`; strings.Contains(calls[0], level) || !strings.Contains(calls[1], level) {
				t.Errorf("got %q, want the level in the call after it was set", calls)
			}
			if a := w.modern("/servers/s/mcp", "tools/call", `"name":"echo"`, "echo"); a.result == "" ||
				strings.Contains(s.got("tools/call")[2], "logLevel") {
				t.Errorf("got %s %q, want no level in the call of a client of 2026-07-28", a.err, s.got("tools/call"))
			}
			want := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///x"}}`
			mcptest.Eventually(t, "the update", func() bool {
				s.say(want)
				return slices.Contains(c.heard(), want)
			})
			if got := s.got("subscriptions/listen"); len(got) != 1 || !strings.Contains(got[0], `"notifications":{"resourceSubscriptions":["file:///x"]}`) {
				t.Errorf("got %q, want one request for the resource", got)
			}
			if a := c.do("resources/unsubscribe", `{"uri":"file:///x"}`); a.result != "{}" {
				t.Errorf("unsubscribe: got %s", a.err)
			}
			mcptest.Eventually(t, "the end of the subscription", func() bool { return s.streams() == 0 })
			for _, method := range []string{"logging/setLevel", "resources/subscribe", "resources/unsubscribe"} {
				if got := s.got(method); len(got) > 0 {
					t.Errorf("got %s %q at the server, want none", method, got)
				}
			}
		})
	}
}
