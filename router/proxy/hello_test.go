package proxy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
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
			if got := s.got("initialize"); !slices.Contains(got, want) {
				t.Errorf("%s: got %q at a server, want %s", version, got, want)
			}
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
	c := w.newClient(proxyPath)
	if a := c.hello(); !strings.Contains(a.result, `"capabilities":{"tools":{}}`) {
		t.Errorf("got %s, want what the other can do", a.result)
	}
	if !w.logs.has(`level=WARN msg="server is left out" server=down`) {
		t.Errorf("log: got no line, want a warning for the server that is down")
	}
	if got := c.tools(); !slices.Equal(got, []string{"up__echo"}) {
		t.Errorf("listed: got %q, want the other's", got)
	}
	down.change(func() { down.gate = nil })
	eventually(t, "the server", func() bool { return c.call("down__echo").result != "" })
	if got := down.got("initialize"); !slices.Contains(got, initializeParams) {
		t.Errorf("at the server: got %q, want the client's own words", got)
	}
	eventually(t, "initialized once in each session", func() bool {
		return len(down.got("notifications/initialized")) == len(down.got("initialize")) // the router's own may just be on its way
	})
	up.fail(status(503))
	down.fail(status(503))
	alone := w.newClient(proxyPath)
	a := alone.do("initialize", initializeParams)
	if !strings.Contains(a.err, `"code":-32000`) || a.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("all down: got %s %s and session %q, want -32000 and none", a.result, a.err, a.header.Get("Mcp-Session-Id"))
	}
	if n := w.edge.Sessions(); n != 1 {
		t.Errorf("sessions: got %d, want 1", n)
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
	if w.logs.has("server=off") {
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
	eventually(t, "the loss", func() bool {
		return strings.Contains(c.do("logging/setLevel", `{"level":"info"}`).err, `"code":-32000`)
	})
}
