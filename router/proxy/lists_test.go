package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/router/proxy"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// kinds are the lists: method, member of the items, member that names one.
var kinds = [][3]string{
	{"tools/list", "tools", "name"}, {"prompts/list", "prompts", "name"},
	{"resources/list", "resources", "uri"}, {"resources/templates/list", "resourceTemplates", "uriTemplate"},
}

// filled is a server with n items of every kind.
func filled(n int) *server {
	s := newServer()
	s.caps = `{"tools":{},"prompts":{},"resources":{}}`
	for _, kind := range kinds {
		s.lists[kind[0]] = []string{}
		for i := range n {
			s.lists[kind[0]] = append(s.lists[kind[0]], fmt.Sprintf(`{"name":"n%d","uri":"u:%d","uriTemplate":"t:%d",%s}`, i, i, i, object))
		}
	}
	return s
}

// broken refuses to do anything over HTTP once it is told so.
func (s *server) fail(with func(w http.ResponseWriter)) {
	s.change(func() {
		s.gate = func(w http.ResponseWriter, _ *http.Request) bool { with(w); return true }
	})
}

func status(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { w.WriteHeader(code) }
}

// A list has all pages of all servers, in the order of the configuration and of the servers, every time.
func TestListsAreWholeAndOrdered(t *testing.T) {
	for _, pages := range []int{0, 1, 3} {
		var places []place
		want := map[string][]string{}
		for i, name := range []string{"zeta", "alpha", "mid"} {
			s := filled(5 + i)
			s.pages = pages
			places = append(places, place{name, transports[i], s, ""})
			for _, kind := range kinds {
				for n := range 5 + i {
					want[kind[0]] = append(want[kind[0]], name+"__"+map[string]string{"name": "n", "uri": "u:", "uriTemplate": "t:"}[kind[2]]+fmt.Sprint(n))
				}
			}
		}
		w := newWorld(t, nil, places...)
		c := w.dial(proxyPath)
		for range 3 {
			for _, kind := range kinds {
				a := c.do(kind[0], "{}")
				if got := names(a.result, kind[1], kind[2]); !slices.Equal(got, want[kind[0]]) {
					t.Errorf("pages of %d, %s: got %q %s, want %q", pages, kind[0], got, a.err, want[kind[0]])
				}
				if strings.Contains(a.result, "nextCursor") {
					t.Errorf("%s: got a cursor, want all in one page", kind[0])
				}
			}
		}
		for _, cursor := range []string{`"x"`, `""`} {
			if a := c.do("tools/list", `{"cursor":`+cursor+`}`); !strings.Contains(a.err, "-32602") {
				t.Errorf("the cursor %s: got %s, want -32602", cursor, a.err)
			}
		}
		// A single server's pages are its own.
		if pages > 0 {
			single := w.dial("/servers/zeta/mcp")
			a := single.do("tools/list", "")
			cursor := jsonrpc.Get([]byte(a.result), "nextCursor")
			if got := names(a.result, "tools", "name"); len(got) != pages || cursor == nil {
				t.Errorf("single: got %q and cursor %s, want a page of %d", got, cursor, pages)
			}
			a = single.do("tools/list", `{"cursor":`+string(cursor)+`}`)
			if got := names(a.result, "tools", "name"); got[0] != fmt.Sprint("n", pages) {
				t.Errorf("single, second page: got %q, want it to begin with n%d", got, pages)
			}
		}
		w.stop()
	}
}

// What a server lists with wrong types keeps no client from what others list.
func TestListsAreTyped(t *testing.T) {
	wrong, right := newServer(), filled(1)
	wrong.lists["tools/list"] = []string{`{"name":"a","inputSchema":{},"outputSchema":7,"_meta":[],"icons":{},"execution":1,"future":7}`}
	wrong.lists["prompts/list"] = []string{`7`, `null`, `[]`, `{}`, `{"name":7}`, `{"name":""}`, `{"name":"a","arguments":7,"description":null}`}
	wrong.lists["resources/list"] = []string{`7`, `{"uri":7,"name":"x"}`, `{"uri":"u:a","name":"a","mimeType":7}`}
	wrong.lists["resources/templates/list"] = []string{`{"uriTemplate":[],"name":"x"}`, `{"uriTemplate":"t:a","name":"a"}`}
	w := newWorld(t, nil, place{"wrong", overHTTP, wrong, ""}, place{"right", overHTTP, right, ""})
	c := w.dial(proxyPath)
	for method, want := range map[string]string{
		"tools/list":               `{"tools":[{"name":"wrong__a","inputSchema":{},"future":7},`,
		"prompts/list":             `{"prompts":[{"name":"wrong__a"},`,
		"resources/list":           `{"resources":[{"uri":"wrong__u:a","name":"a"},`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"wrong__t:a","name":"a"},`,
	} {
		a := c.do(method, "{}")
		if !strings.HasPrefix(a.result, want) || strings.Count(a.result, "wrong__") != 1 || !strings.Contains(a.result, "right__") {
			t.Errorf("%s: got %s %s, want %s and what the other server lists", method, a.result, a.err, want)
		}
	}
}

// What a server declares and lists is read in time linear in its size. In the square of it, these take minutes.
func TestManyMembers(t *testing.T) {
	t.Parallel()
	many := func(count int, format string) string {
		var out strings.Builder
		for i := range count {
			fmt.Fprintf(&out, format+",", i)
		}
		return out.String()
	}
	const n = 40_000
	for _, row := range []struct{ name, caps, prompt string }{
		{"capabilities", `{` + many(n, `"a%d":{}`) + `"tools":{}}`, ""},
		{"capabilities of wrong types", `{` + many(n, `"a%d":1`) + `"tools":{}}`, ""},
		{"members of a capability", `{"experimental":{` + many(n, `"a%d":{}`) + `"b":{}},"tools":{}}`, ""},
		{"members of wrong types", `{"experimental":{` + many(n, `"a%d":1`) + `"b":{}},"tools":{}}`, ""},
		{"a repeated capability", `{` + many(n, `"x":{"a%d":{}}`) + `"tools":{}}`, ""},
		{"a repeated member of a prompt", "", `{` + many(n, `"title":%d`) + many(n, `"a%d":1`) + `"name":"a"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			large, other := filled(1), filled(1)
			if row.caps != "" {
				large.caps = row.caps
			}
			if row.prompt != "" {
				large.lists["prompts/list"] = []string{row.prompt}
			}
			w := newWorld(t, nil, place{"large", overHTTP, large, ""}, place{"other", overHTTP, other, ""})
			w.wait("large", "other")
			a := w.dial(proxyPath).do("prompts/list", "{}")
			if !strings.Contains(a.result, "large__") || !strings.Contains(a.result, "other__") {
				t.Errorf("got %.300s %s, want the prompts of both servers", a.result, a.err)
			}
		})
	}
}

// Servers that fail are left out with a line in the log, those that do not know the method without one;
// if all fail that is an error.
func TestPartialLists(t *testing.T) {
	t.Parallel()
	const fast = time.Second
	fine, dead, slow, refuses, ignorant := filled(1), filled(1), filled(1), filled(1), newServer()
	w := newWorld(t, func(o *setup) { o.config.ListDeadline = fast },
		place{"dead", overHTTP, dead, ""}, place{"slow", overHTTP, slow, ""}, place{"fine", overHTTP, fine, ""},
		place{"refuses", overHTTP, refuses, ""}, place{"ignorant", overHTTP, ignorant, ""})
	c := w.dial(proxyPath)
	refuses.change(func() { refuses.errors["prompts/list"] = `{"code":-32603,"message":"broken"}` })
	dead.fail(status(503))
	slow.change(func() {
		slow.on = func(r *request) bool {
			if r.Method == "prompts/list" {
				<-r.ctx.Done()
			}
			return false
		}
	})
	began := time.Now()
	a := c.do("prompts/list", "")
	if got := names(a.result, "prompts", "name"); !slices.Equal(got, []string{"fine__n0"}) {
		t.Errorf("got %q %s, want fine__n0", got, a.err)
	}
	if took := time.Since(began); took < fast || took > 15*fast {
		t.Errorf("got it after %v, want the deadline of %v", took, fast)
	}
	for _, name := range []string{"dead", "slow", "refuses"} {
		if n := len(w.logs.Lines(`level=WARN msg="server is left out" server=` + name)); n != 1 {
			t.Errorf("log: got %d lines for %s, want one warning", n, name)
		}
	}
	if w.logs.Has(`left out" server=ignorant`) || w.logs.Has(`list" server=ignorant`) {
		t.Errorf("log: got a line for the server that does not know the method, want none")
	}
	if w.logs.Has(`left out" server=fine`) {
		t.Errorf("log: got a line for the server that answered, want none")
	}
	fine.fail(status(503))
	ignorant.fail(status(503))
	a = c.do("prompts/list", "")
	if !strings.Contains(a.err, `"code":-32000`) || !strings.Contains(a.err, `"data":{"server":"dead","reason":"unavailable","retryable":true}`) {
		t.Errorf("all dead: got %s %s, want -32000 for the first", a.result, a.err)
	}
	alive := newServer()
	w2 := newWorld(t, nil, place{"only", overHTTP, alive, ""})
	if a := w2.dial(proxyPath).do("prompts/list", ""); a.result != `{"prompts":[]}` {
		t.Errorf("nobody knows the method: got %s %s, want an empty list", a.result, a.err)
	}
}

// Nobody is asked for anything before a client asks.
func TestNothingIsListedUnasked(t *testing.T) {
	s := filled(1)
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	c := w.dial(proxyPath)
	c.do("ping", "")
	c.notify("notifications/x", "")
	mcptest.Eventually(t, "the notification", func() bool { return len(s.got("notifications/x")) > 0 })
	for _, m := range s.methods() {
		if strings.HasSuffix(m, "/list") {
			t.Errorf("got %s, want no list before a client asks", m)
		}
	}
	c.call("s__n0")
	c.do("prompts/get", `{"name":"s__n0"}`)
	for _, m := range s.methods() {
		if strings.HasSuffix(m, "/list") && m != "tools/list" {
			t.Errorf("got %s for a tool call and a prompt, want only tools/list", m)
		}
	}
}

// A call asks only the server that it goes to, an alias only those that it could be of.
func TestCallsAskTheirServer(t *testing.T) {
	one, two := newServer("bad:name"), newServer("bad:name")
	w := newWorld(t, nil, place{"one", overHTTP, one, ""}, place{"two", overHTTP, two, ""})
	c := w.dial(proxyPath)
	if a := c.call("one__bad_name_7b4f8b"); a.err == "" {
		t.Errorf("a wrong alias: got %s, want an error", a.result)
	}
	if a := c.call("one__bad:name"); a.result == "" {
		t.Errorf("got %s, want a result", a.err)
	}
	if got := two.methods(); slices.Contains(got, "tools/list") {
		t.Errorf("at the other server: got %q, want no list", got)
	}
	two.fail(status(503))
	for _, name := range []string{"two__bad:name", "two__bad_name_000000"} {
		if a := c.call(name); !strings.Contains(a.err, `{"server":"two","reason":"outcome_unknown"`) {
			t.Errorf("%s at a server that cannot be listed: got %s, want what came of the call", name, a.err)
		}
	}
}

// What servers announce is kept until they do; what they do not announce is asked for each time.
func TestListsAreCurrent(t *testing.T) {
	for _, announces := range []bool{false, true} {
		s := filled(1)
		if announces {
			s.caps = anything
		}
		w := newWorld(t, nil, place{"s", overPipe, s, ""})
		c := w.dial(proxyPath)
		for _, kind := range kinds {
			list := func() int { return len(names(c.do(kind[0], "").result, kind[1], kind[2])) }
			list()
			asked := len(s.got(kind[0]))
			item := strings.ReplaceAll(s.lists[kind[0]][0], "0", "1")
			s.change(func() { s.lists[kind[0]] = append(s.lists[kind[0]], item) })
			got := list()
			if !announces {
				if got != 2 {
					t.Errorf("%s, not announced: got %d items after a change, want 2 at once", kind[0], got)
				}
				continue
			}
			if got != 1 || len(s.got(kind[0])) != asked {
				t.Errorf("%s, announced: got %d items and %d requests before the notification, want the kept list",
					kind[0], got, len(s.got(kind[0]))-asked)
			}
			family, _, _ := strings.Cut(kind[0], "/")
			s.say(`{"jsonrpc":"2.0","method":"notifications/` + family + `/list_changed"}`)
			mcptest.Eventually(t, "the list after the notification", func() bool { return list() == 2 })
		}
		w.stop()
	}
}

// A caller sees what its key allows, and the merged lists of several callers are not mixed up.
func TestListsPerKey(t *testing.T) {
	a, b := filled(2), filled(2)
	w := newWorld(t, func(o *setup) {
		o.edge = edge.Options{Keys: restricted(t, keyOf("ALL"),
			auth.KeyConfig{Name: "A", Key: "secret-A", Servers: []string{"a"}},
			auth.KeyConfig{Name: "ONE", Key: "secret-ONE", Tools: auth.Filter{Allow: []string{"b__n1"}}})}
	}, place{"a", overHTTP, a, ""}, place{"b", overPipe, b, ""})
	for range 2 {
		for key, want := range map[string][]string{
			"ALL": {"a__n0", "a__n1", "b__n0", "b__n1"}, "A": {"a__n0", "a__n1"}, "ONE": {"b__n1"},
		} {
			c := w.newClient(proxyPath)
			c.header.Set("X-API-Key", "secret-"+key)
			c.hello()
			if got := c.tools(); !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", key, got, want)
			}
			for _, name := range []string{"a__n0", "a__n1", "b__n0", "b__n1"} {
				r := c.call(name)
				if allowed := slices.Contains(want, name); allowed != (r.result != "") || !allowed && r.err != `{"code":-32602,"message":"Unknown tool: `+name+`"}` {
					t.Errorf("%s calls %s: got %s %s, want allowed %t", key, name, r.result, r.err, allowed)
				}
			}
			if key == "A" {
				for _, kind := range kinds[1:] {
					for _, name := range names(c.do(kind[0], "").result, kind[1], kind[2]) {
						if !strings.HasPrefix(name, "a__") {
							t.Errorf("%s: got %s of %s, want only a's", key, name, kind[0])
						}
					}
				}
				for method, params := range map[string]string{"prompts/get": `{"name":"b__n0"}`, "resources/read": `{"uri":"b__u:0"}`, "completion/complete": `{"ref":{"type":"ref/prompt","name":"b__n0"}}`} {
					if r := c.do(method, params); !strings.Contains(r.err, "-32602") || !strings.Contains(r.err, "Unknown") {
						t.Errorf("%s %s %s: got %s %s, want it unknown", key, method, params, r.result, r.err)
					}
				}
			}
		}
	}
	hidden := w.newClient("/servers/b/mcp")
	hidden.header.Set("X-API-Key", "secret-A")
	if r := hidden.do("initialize", initializeParams); !strings.Contains(r.err, "Unknown server: b") {
		t.Errorf("the surface of a hidden server: got %s %s, want it unknown", r.result, r.err)
	}
}

// found is a search that finds one tool.
type found struct{ name string }

func (found) SearchTool() []byte       { return []byte(`{"name":"search_available_tools",` + object + `}`) }
func (f found) Ended(string)           {}
func (f found) Restore(string, []byte) {}

func (f found) Exposed(*edge.Exchange) []string { return []string{f.name} }

// With search_above the list is narrowed while there are more tools than that.
func TestSearchAbove(t *testing.T) {
	s := filled(3)
	search := &searched{found: found{"s__n1"}}
	w := newWorld(t, func(o *setup) {
		o.config.SearchAbove = 3
		o.search = search
		o.edge = edge.Options{Keys: restricted(t, keyOf("ALL"), auth.KeyConfig{Name: "S", Key: "secret-S", Servers: []string{"s"}})}
	}, place{"s", overPipe, s, ""}, place{"more", overPipe, filled(1), ""})
	all := w.newClient(proxyPath)
	all.header.Set("X-API-Key", "secret-ALL")
	all.hello()
	if got := all.tools(); !slices.Equal(got, []string{"search_available_tools", "s__n1"}) {
		t.Errorf("four tools: got %q, want the search and what it found", got)
	}
	if a := all.call("more__n0"); a.result == "" {
		t.Errorf("a tool that is not listed: got %s, want it callable", a.err)
	}
	if a := all.call("search_available_tools"); a.result != "{}" {
		t.Errorf("search: got %s %s, want its answer", a.result, a.err)
	}
	some := w.newClient(proxyPath)
	some.header.Set("X-API-Key", "secret-S")
	hello := some.hello()
	if got := some.tools(); !slices.Equal(got, []string{"search_available_tools", "s__n0", "s__n1", "s__n2"}) {
		t.Errorf("three visible tools: got %q, want all", got)
	}
	if got := jsonrpc.Get([]byte(hello.result), "capabilities", "tools", "listChanged"); string(got) != "true" {
		t.Errorf("capabilities: got %s, want tools.listChanged", hello.result)
	}
	single := w.newClient("/servers/s/mcp")
	single.header.Set("X-API-Key", "secret-ALL")
	single.hello()
	if got := single.tools(); !slices.Equal(got, []string{"n0", "n1", "n2"}) {
		t.Errorf("single: got %q, want the server's alone", got)
	}
}

var _ proxy.Search = (*searched)(nil)

// A list that no server gives in time is an error, never an empty list, whoever's time is over first.
func TestSlowLists(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{overHTTP, overPipe} {
		slow, ignorant := filled(1), newServer()
		slow.on = func(r *request) bool {
			if strings.HasSuffix(r.Method, "list") {
				<-r.ctx.Done()
			}
			return false
		}
		w := newWorld(t, func(o *setup) { o.config.ListDeadline = 100 * time.Millisecond }, place{"slow", transport, slow, ""})
		with := newWorld(t, func(o *setup) { o.config.ListDeadline = 2 * time.Second },
			place{"slow", transport, slow, ""}, place{"ignorant", transport, ignorant, ""})
		c, both, single := w.dial(proxyPath), with.dial(proxyPath), w.dial("/servers/slow/mcp")
		for _, kind := range kinds {
			for range 2 { // also where the answer is known from the last time
				a := c.do(kind[0], "")
				if !strings.Contains(a.err, `"code":-32000`) || !strings.Contains(a.err, `"reason":"timeout"`) || !strings.Contains(a.err, `"server":"slow"`) {
					t.Errorf("%s %s: got %s %s, want -32000 timeout", transport, kind[0], a.result, a.err)
				}
			}
		}
		if a := both.do("tools/list", ""); a.result != `{"tools":[]}` {
			t.Errorf("%s, with a server that answers: got %s %s, want its list", transport, a.result, a.err)
		}
		if a := single.call("nope"); strings.Contains(a.err, "Unknown tool") {
			t.Errorf("%s: a tool of a server that cannot be listed: got %s, want the server to tell", transport, a.err)
		}
		w.stop()
		with.stop()
	}
}

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
		{[]string{`{"future":{"n":1}}`, `{"future":{"n":2}}`}, `{"future":{"n":1}}`},
		{[]string{`{"tools":7,"prompts":null,"logging":[],"resources":{"subscribe":1,"listChanged":"yes"},"extensions":{"x":7},"experimental":7,"future":1}`,
			`{"tools":{"listChanged":true},"resources":{"listChanged":true}}`}, `{"tools":{"listChanged":true},"extensions":{},"resources":{"listChanged":true}}`},
		{[]string{`{"tools":{"listChanged":7},"tools":{}}`}, `{"tools":{}}`},
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

// anything are the capabilities that clients are told of where a server is missing.
const anything = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true}}`

// initialize succeeds at once, however the servers are. A client is told when the one that was missing is back.
func TestInitialize_AlwaysSucceeds(t *testing.T) {
	t.Parallel()
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

// Every method of a capability that is advertised is served, and tasks only to clients with sessions of their own.
func TestCapabilitiesAreServed(t *testing.T) {
	methods := map[string][]string{
		"tools": {"tools/list"}, "prompts": {"prompts/list"}, "resources": {"resources/list", "resources/templates/list", "resources/subscribe"},
		"completions": {"completion/complete"}, "logging": {"logging/setLevel"}, "tasks": {"tasks/list", "tasks/get", "tasks/cancel", "tasks/result"},
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
			c := w.newClient(path)
			capabilities := jsonrpc.Get([]byte(c.hello().result), "capabilities")
			for capability := range methods {
				for _, method := range methods[capability] {
					a := c.do(method, "{"+params[method]+"}")
					advertised := jsonrpc.Get(capabilities, capability) != nil
					if advertised && strings.Contains(a.err, "-32601") || !advertised && capability == "tasks" && !strings.Contains(a.err, "-32601") {
						t.Errorf("%s %s, %s: got %s %s, want it served: %t", transport, path, method, a.result, a.err, advertised)
					}
				}
			}
			own := transport == overHTTP && path != proxyPath
			modern := w.modern(path, "server/discover", "", "").result
			if strings.Contains(string(capabilities), `"tasks"`) != own || strings.Contains(string(capabilities), `/tasks"`) != own || strings.Contains(modern, `tasks"`) {
				t.Errorf("%s %s: got %s and %s, want tasks for clients with sessions at the server: %t", transport, path, capabilities, modern, own)
			}
		}
		w.stop()
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
	for path, want := range map[string]string{
		"/servers/s/mcp": `{"io.modelcontextprotocol/serverInfo":{"version":"9","name":"own","icons":[]},"x":1}`,
		proxyPath:        `{"io.modelcontextprotocol/serverInfo":{"name":"agenticnexus-router","version":"1.2.3"}}`,
	} {
		a := w.modern(path, "server/discover", "", "")
		if got := string(jsonrpc.Get([]byte(a.result), "_meta")); got != want || jsonrpc.Get([]byte(a.result), "serverInfo") != nil {
			t.Errorf("%s: got %s, want serverInfo in _meta alone, %s", path, a.result, want)
		}
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
	two.change(func() { two.dial = func(context.Context) error { return errors.New("refused") } })
	mcptest.Eventually(t, "the loss", func() bool {
		return strings.Contains(c.do("logging/setLevel", `{"level":"info"}`).err, `"code":-32000`)
	})
}

// A search on the surface of all servers lists what it found, for its session alone.
func TestSearchOnTheProxySurface(t *testing.T) {
	files, other := newServer("read_files", "write_files"), newServer("send_mail")
	cfg := config.Default()
	cfg.Listen, cfg.State, cfg.Proxy.SearchAbove = "127.0.0.1:0", t.TempDir(), 2
	for name, s := range map[string]*server{"files": files, "other": other} {
		cfg.Servers = append(cfg.Servers, downstream.ServerConfig{Name: name, Type: downstream.TransportHTTP, URL: s.listen(t)})
	}
	a, err := app.New(t.Context(), app.Options{Config: cfg, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
	})
	w := &world{t: t, url: "http://" + a.Addr(), transport: &http.Transport{}}
	t.Cleanup(w.transport.CloseIdleConnections)
	c, neighbour := w.dial(proxyPath), w.dial(proxyPath)
	if got := c.tools(); !slices.Equal(got, []string{"search_available_tools"}) {
		t.Errorf("before a search: got %q, want the search alone", got)
	}
	found := c.do("tools/call", `{"name":"search_available_tools","arguments":{"query":"read files"}}`)
	if !strings.HasPrefix(found.header.Get("Content-Type"), "text/event-stream") || !slices.Equal(found.notes, []string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`}) {
		t.Errorf("got %q as %s, want list_changed before the response on a stream", found.notes, found.header.Get("Content-Type"))
	}
	if !strings.Contains(found.result, `"is_error":false`) || !strings.Contains(found.result, "files__read_files") {
		t.Errorf("got %s %s, want files__read_files", found.result, found.err)
	}
	if got := c.tools(); !slices.Contains(got, "files__read_files") || slices.Contains(got, "other__send_mail") {
		t.Errorf("after a search: got %q, want what was found", got)
	}
	if got := neighbour.tools(); !slices.Equal(got, []string{"search_available_tools"}) {
		t.Errorf("another session: got %q, want the search alone", got)
	}
}
