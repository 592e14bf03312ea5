package proxy_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// The answer to initialize says what the servers can do together, whoever of them is there.
func TestInitializeIsTheUnion(t *testing.T) {
	for _, row := range []struct {
		caps []string
		want string
	}{
		{[]string{`{}`}, `{}`},
		{[]string{`{"tools":{}}`, `{"prompts":{}}`, `{"resources":{"subscribe":true}}`}, `{"resources":{"subscribe":true},"prompts":{},"tools":{}}`},
		{[]string{`{"tools":{"listChanged":false}}`, `{"tools":{"listChanged":true}}`, `{"tools":{"listChanged":false}}`}, `{"tools":{"listChanged":true}}`},
		{[]string{`{"resources":{"listChanged":true}}`, `{"resources":{"subscribe":true}}`}, `{"resources":{"subscribe":true,"listChanged":true}}`},
		{[]string{`{"logging":{},"completions":{}}`, `{"experimental":{"a":{"x":9007199254740993}}}`, `{"experimental":{"b":{}}}`}, `{"experimental":{"b":{},"a":{"x":9007199254740993}},"completions":{},"logging":{}}`},
		{[]string{`{"future":1}`, `{"future":2}`}, `{"future":1}`},
		{[]string{`{"tools":{},"tasks":{"list":{}}}`}, `{"tools":{}}`}, // a task's id does not say whose it is
		{[]string{`null`, `{"tools":{}}`, `7`}, `{"tools":{}}`},
	} {
		var places []place
		for i, caps := range row.caps {
			s := newServer()
			s.caps = caps
			places = append(places, place{string(rune('a' + i)), transports[i], s, ""})
		}
		w := newWorld(t, nil, places...)
		w.wait(w.manager.Servers()...)
		c := w.newClient(proxyPath)
		a := c.hello()
		want := `{"protocolVersion":"2025-11-25","capabilities":` + row.want + `,"serverInfo":{"name":"agenticnexus-router","version":"1.2.3"}}`
		if a.result != want {
			t.Errorf("%q: got %s, want %s", row.caps, a.result, want)
		}
		w.stop()
	}
}

// Each server is introduced to the client, in the client's words and the version agreed on.
func TestInitializeReachesEveryServer(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2024-11"} {
		one, two := newServer(), newServer()
		w := newWorld(t, nil, place{"one", overHTTP, one, ""}, place{"two", overSSE, two, ""})
		c := w.newClient(proxyPath)
		params := strings.Replace(initializeParams, "2025-11-25", version, 1)
		a := c.do("initialize", params)
		agreed := version
		if version == "2024-11" {
			agreed = "2025-11-25"
		}
		if got := jsonrpc.Text(jsonrpc.Get([]byte(a.result), "protocolVersion")); got != agreed {
			t.Errorf("%s: got %s, want %s", version, got, agreed)
		}
		want := strings.Replace(params, version+`"`, agreed+`"`, 1)
		for _, s := range []*server{one, two} {
			mcptest.Eventually(t, version+" reaches the server as "+want, func() bool { return slices.Contains(s.got("initialize"), want) })
		}
		w.stop()
	}
}

// A server that is down is left out at initialize, and used as soon as it is back.
func TestInitializeWithoutAServer(t *testing.T) {
	up, down := newServer("echo"), newServer("echo")
	down.fail(status(503))
	w := newWorld(t, func(o *setup) { o.downstream.Health.Interval = 50 * time.Millisecond },
		place{"down", overHTTP, down, ""}, place{"up", overHTTP, up, ""})
	w.wait("up")
	c := w.newClient(proxyPath)
	if a := c.hello(); !strings.Contains(a.result, `"capabilities":`+anything) {
		t.Errorf("got %s, want whatever the one that is down may have", a.result)
	}
	if !w.logs.Has(`level=WARN msg="server is left out" server=down`) {
		t.Errorf("log: got no line, want a warning for the server that is down")
	}
	if got := c.tools(); !slices.Equal(got, []string{"up__echo"}) {
		t.Errorf("listed: got %q, want the other's", got)
	}
	down.change(func() { down.gate = nil })
	mcptest.Eventually(t, "the server", func() bool { return c.call("down__echo").result != "" })
	if got := down.got("initialize"); !slices.Contains(got, initializeParams) {
		t.Errorf("at the server: got %q, want the client's own words", got)
	}
	mcptest.Eventually(t, "initialized once in each session", func() bool {
		return len(down.got("notifications/initialized")) == len(down.got("initialize")) // the router's own may just be on its way
	})
}

// anything are the capabilities that clients are told of where a server is missing.
const anything = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true}}`

// initialize succeeds at once, however the servers are. A client is told when the one that was missing is back.
func TestInitialize_AlwaysSucceeds(t *testing.T) {
	for name, hinder := range map[string]func(s *server, until chan struct{}){
		"down": func(s *server, _ chan struct{}) { s.fail(status(503)) },
		"slow": func(s *server, until chan struct{}) {
			s.change(func() {
				s.gate = func(_ http.ResponseWriter, r *http.Request) bool {
					select {
					case <-until:
					case <-r.Context().Done():
					}
					return false
				}
			})
		},
	} {
		for _, path := range []string{proxyPath, "/servers/s/mcp"} {
			t.Run(name+path, func(t *testing.T) {
				s, until := newServer("echo"), make(chan struct{})
				hinder(s, until)
				w := newWorld(t, func(o *setup) { o.downstream.Health.Interval, o.returns = 50*time.Millisecond, true }, place{"s", overHTTP, s, ""})
				began := time.Now()
				c := w.newClient(path)
				a := c.hello()
				want := `{"protocolVersion":"2025-11-25","capabilities":` + anything + `,"serverInfo":{"name":"agenticnexus-router","version":"1.2.3"}}`
				if a.result != want {
					t.Errorf("got %s %s, want %s", a.result, a.err, want)
				}
				if took := time.Since(began); took > w.config.ListDeadline {
					t.Errorf("got it after %v, want it before the list deadline", took)
				}
				c.listen()
				close(until)
				s.change(func() { s.gate = nil })
				mcptest.Eventually(t, "the client is told", func() bool {
					return slices.Contains(c.heard(), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				})
				if got := c.tools(); len(got) != 1 {
					t.Errorf("got tools %q, want the server's", got)
				}
				// The client's own session begins as the client did.
				mcptest.Eventually(t, "initialized is passed on", func() bool {
					return len(s.got("notifications/initialized")) == len(s.got("initialize"))
				})
				if got := s.got("initialize"); !slices.Contains(got, initializeParams) {
					t.Errorf("at the server: got %q, want the client's own words", got)
				}
			})
		}
	}
}

// Every method of a capability that is advertised is served.
func TestCapabilitiesAreServed(t *testing.T) {
	methods := map[string][]string{
		"tools": {"tools/list", "tools/call"}, "prompts": {"prompts/list", "prompts/get"}, "resources": {"resources/list", "resources/templates/list", "resources/read"},
		"completions": {"completion/complete"}, "tasks": {"tasks/list", "tasks/get", "tasks/cancel", "tasks/result"},
	}
	params := map[string]string{"resources/subscribe": `"uri":"x:1"`, "logging/setLevel": `"level":"info"`}
	for _, transport := range []string{overHTTP, overPipe} {
		s := filled(1)
		s.caps = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{},"tasks":{"list":{},"cancel":{}},"extensions":{"io.modelcontextprotocol/tasks":{},"x":{}}}`
		s.on = func(r *request) bool {
			if strings.HasPrefix(r.Method, "tasks/") || r.Method == "completion/complete" {
				r.result(`{}`)
				return true
			}
			return false
		}
		w := newWorld(t, nil, place{"s", transport, s, ""})
		w.wait("s")
		for _, path := range []string{proxyPath, "/servers/s/mcp"} {
			for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
				name := transport + " " + path + " " + version
				modern := version == "2026-07-28"
				var c *client
				var hello *answer
				if modern {
					hello = w.modern(path, "server/discover", "", "")
				} else {
					c = w.newClient(path)
					c.version = version
					hello = c.hello()
				}
				capabilities := jsonrpc.Get([]byte(hello.result), "capabilities")
				do := func(method string) {
					t.Helper()
					var a *answer
					if modern {
						a = w.modern(path, method, params[method], "")
					} else {
						a = c.do(method, "{"+params[method]+"}")
					}
					if strings.Contains(a.err+a.refused, "-32601") {
						t.Errorf("%s: %s is advertised: got %s%s", name, method, a.err, a.refused)
					}
				}
				for capability, all := range methods {
					if jsonrpc.Get(capabilities, capability) != nil {
						for _, method := range all {
							do(method)
						}
					}
				}
				if jsonrpc.Get(capabilities, "resources", "subscribe") != nil && !modern {
					do("resources/subscribe")
				}
				if !modern && jsonrpc.Get(capabilities, "logging") != nil {
					do("logging/setLevel")
				}
				own := transport == overHTTP && path != proxyPath && !modern
				if got := jsonrpc.Get(capabilities, "tasks") != nil; got != own {
					t.Errorf("%s: got tasks %v, want %v", name, got, own)
				}
				if got := strings.Contains(string(capabilities), `"io.modelcontextprotocol/tasks"`); got != own {
					t.Errorf("%s: got the extension for tasks %v, want %v", name, got, own)
				}
				if !own && !modern {
					if a := c.do("tasks/list", "{}"); !strings.Contains(a.err, "-32601") {
						t.Errorf("%s: tasks/list: got %s %s, want -32601", name, a.result, a.err)
					}
				}
			}
		}
		w.stop()
	}
}

// What a server says of itself in its _meta stays in the answer to server/discover, beside its serverInfo.
func TestDiscover_Meta(t *testing.T) {
	s := newServer()
	s.on = func(r *request) bool {
		if r.Method == "initialize" {
			r.result(`{"serverInfo":{"name":"own","version":"9"},"protocolVersion":"2025-11-25","capabilities":{},"_meta":{"x":9007199254740993}}`)
			return true
		}
		return false
	}
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	w.wait("s")
	for path, want := range map[string]string{
		"/servers/s/mcp": `{"io.modelcontextprotocol/serverInfo":{"name":"own","version":"9"},"x":9007199254740993}`,
		proxyPath:        `{"io.modelcontextprotocol/serverInfo":{"name":"agenticnexus-router","version":"1.2.3"}}`,
	} {
		a := w.modern(path, "server/discover", "", "")
		if got := string(jsonrpc.Get([]byte(a.result), "_meta")); got != want {
			t.Errorf("%s: got %s, want %s", path, a.result, want)
		}
		if jsonrpc.Get([]byte(a.result), "serverInfo") != nil {
			t.Errorf("%s: got %s, want serverInfo in _meta alone", path, a.result)
		}
	}
}

// A disabled server is not there, and nothing is logged about it.
func TestDisabledServerIsNotAsked(t *testing.T) {
	on, off := newServer("echo"), newServer("echo")
	w := newWorld(t, func(o *setup) { o.downstream.Servers[0].Disabled = true }, place{"off", overHTTP, off, ""}, place{"on", overHTTP, on, ""})
	c := w.dial(proxyPath)
	if got := c.tools(); !slices.Equal(got, []string{"on__echo"}) {
		t.Errorf("listed: got %q, want the other's", got)
	}
	if a := c.call("off__echo"); a.err != `{"code":-32602,"message":"Unknown tool: off__echo"}` {
		t.Errorf("called: got %s %s, want -32602 Unknown tool: off__echo", a.result, a.err)
	}
	if w.logs.Has("server=off") {
		t.Error("log: got a line about the disabled server, want none")
	}
}

// A single server answers for itself, down to the byte.
func TestSingleServerAnswersForItself(t *testing.T) {
	s := newServer()
	const answer = `{"serverInfo":{"version":"9","name":"own","icons":[]},"instructions":"be\u006eign","protocolVersion":"2025-11-25","future":9007199254740993,"capabilities":{"tasks":{"list":{}}},"_meta":{"x":1}}`
	s.on = func(r *request) bool {
		switch r.Method {
		case "initialize":
			r.result(answer)
		case "tasks/get":
			r.result(`{"taskId":"t"}`)
		default:
			return false
		}
		return true
	}
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	c := w.newClient("/servers/s/mcp")
	if a := c.hello(); a.result != answer {
		t.Errorf("got %s, want %s", a.result, answer)
	}
	if a := c.do("tasks/get", `{"taskId":"t"}`); a.result != `{"taskId":"t"}` {
		t.Errorf("a method that only the server knows: got %s %s, want its answer", a.result, a.err)
	}
	if a := c.call("nope"); a.err != `{"code":-32602,"message":"Unknown tool: nope"}` {
		t.Errorf("got %s, want -32602 Unknown tool: nope", a.err)
	}
}

// The level of log messages goes to every server that logs.
func TestSetLevel(t *testing.T) {
	one, two, mute := newServer(), newServer(), newServer()
	one.caps, two.caps = `{"logging":{}}`, `{"logging":{},"tools":{}}`
	w := newWorld(t, nil, place{"mute", overHTTP, mute, ""}, place{"one", overHTTP, one, ""}, place{"two", overPipe, two, ""})
	c := w.dial(proxyPath)
	if a := c.do("logging/setLevel", `{"level":"debug"}`); a.result != "{}" {
		t.Errorf("got %s, want {}", a.err)
	}
	for name, s := range map[string]*server{"one": one, "two": two} {
		if got := s.got("logging/setLevel"); len(got) != 1 || !strings.HasSuffix(got[0], `"level":"debug"}`) {
			t.Errorf("%s: got %q, want the level once", name, got)
		}
	}
	if got := mute.got("logging/setLevel"); len(got) > 0 {
		t.Errorf("a server that does not log: got %q, want nothing", got)
	}
	refused := `{"code":-32602,"message":"no such level","data":1}`
	for _, s := range []*server{one, two} {
		s.change(func() { s.errors["logging/setLevel"] = refused })
	}
	if a := c.do("logging/setLevel", `{"level":"odd"}`); a.err != refused {
		t.Errorf("refused: got %s %s, want %s", a.result, a.err, refused)
	}
	onlyMute := newWorld(t, nil, place{"mute", overHTTP, newServer(), ""})
	if a := onlyMute.dial(proxyPath).do("logging/setLevel", `{"level":"info"}`); !strings.Contains(a.err, "-32601") {
		t.Errorf("nobody logs: got %s %s, want -32601", a.result, a.err)
	}
	for _, s := range []*server{one, mute} {
		s.fail(status(503))
	}
	two.restart()
	two.change(func() { two.dial = refuseDial })
	mcptest.Eventually(t, "the loss", func() bool {
		return strings.Contains(c.do("logging/setLevel", `{"level":"info"}`).err, `"code":-32000`)
	})
}
