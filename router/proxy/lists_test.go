package proxy_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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

// Servers that fail are left out with a line in the log, those that do not know the method without one;
// if all fail that is an error.
func TestPartialLists(t *testing.T) {
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

// Where every server takes too long, each client that asks gets the same error, whichever limit ends first: that of its
// own request, or that of the list that another began.
func TestAllListsTooSlow(t *testing.T) {
	slow := filled(1)
	w := newWorld(t, func(o *setup) { o.config.ListDeadline = 200 * time.Millisecond }, place{"slow", overPipe, slow, ""})
	c := w.dial(proxyPath)
	slow.change(func() {
		slow.on = func(r *request) bool {
			if r.Method == "prompts/list" {
				<-r.ctx.Done()
				return true
			}
			return false
		}
	})
	var asked []*answer
	for i := range 8 {
		asked = append(asked, c.start(strconv.Itoa(1000+i), "prompts/list", ""))
		time.Sleep(30 * time.Millisecond) // so that some join the list of another
	}
	for i, a := range asked {
		if c.wait(a); !strings.Contains(a.err, `"code":-32000`) || !strings.Contains(a.err, `"data":{"server":"slow","reason":"timeout","retryable":true}`) {
			t.Errorf("list %d: got %s %s, want -32000 with the reason timeout", i, a.result, a.err)
		}
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
	for _, m := range s.methods() {
		if strings.HasSuffix(m, "/list") && m != "tools/list" {
			t.Errorf("got %s for a tool call, want only tools/list", m)
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
	for _, transport := range transports {
		for _, kind := range kinds {
			for _, announces := range []bool{false, true} {
				s := filled(1)
				if announces {
					s.caps = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true}}`
				}
				w := newWorld(t, func(o *setup) { o.quiet = true }, place{"s", transport, s, ""})
				c := w.dial(proxyPath)
				streams := map[string]int{overHTTP: 2, overSSE: 2, overPipe: 1}[transport]
				mcptest.Eventually(t, "the streams", func() bool { return s.streams() == streams })
				list := func() int { return len(names(c.do(kind[0], "").result, kind[1], kind[2])) }
				// The stream may be open here and not yet be known to be so there.
				mcptest.Eventually(t, "the list", func() bool {
					before := len(s.got(kind[0]))
					return list() == 1 && (!announces || len(s.got(kind[0])) == before)
				})
				item := strings.ReplaceAll(s.lists[kind[0]][0], "0", "1")
				asked := len(s.got(kind[0]))
				s.change(func() { s.lists[kind[0]] = append(s.lists[kind[0]], item) })
				got := list()
				if !announces {
					if got != 2 {
						t.Errorf("%s, %s, not announced: got %d items after a change, want 2 at once", transport, kind[0], got)
					}
					w.stop()
					continue
				}
				if got != 1 || len(s.got(kind[0])) != asked {
					t.Errorf("%s, %s, announced: got %d items and %d more requests before the notification, want the kept list", transport, kind[0], got, len(s.got(kind[0]))-asked)
				}
				name := map[string]string{"resourceTemplates": "resources"}[kind[1]]
				if name == "" {
					name = kind[1]
				}
				s.say(`{"jsonrpc":"2.0","method":"notifications/` + name + `/list_changed"}`)
				mcptest.Eventually(t, "the notification", func() bool { return len(c.heard()) > 0 })
				if got := list(); got != 2 {
					t.Errorf("%s, %s: got %d items after the notification, want 2", transport, kind[0], got)
				}
				w.stop()
			}
		}
	}
}

// While the stream on which changes would be announced is cut, nothing is taken as current.
func TestListsAfterACutStream(t *testing.T) {
	s := filled(1)
	s.caps = `{"tools":{"listChanged":true}}`
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	c := w.dial(proxyPath)
	mcptest.Eventually(t, "the streams", func() bool { return s.streams() == 2 })
	mcptest.Eventually(t, "a kept list", func() bool {
		before := len(s.got("tools/list"))
		return len(c.tools()) == 1 && len(s.got("tools/list")) == before
	})
	item := strings.ReplaceAll(s.lists["tools/list"][0], "0", "1")
	s.change(func() {
		s.lists["tools/list"] = append(s.lists["tools/list"], item)
		s.gate = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				w.WriteHeader(503)
			}
			return r.Method == http.MethodGet
		}
	})
	for _, p := range s.all() {
		p.cutStream()
	}
	mcptest.Eventually(t, "the new list", func() bool { return len(c.tools()) == 2 })
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

func (found) SearchTool() []byte { return []byte(`{"name":"search_available_tools",` + object + `}`) }
func (f found) Ended(string)     {}

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
