package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/proxy"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// Every tool is listed under one name, and callable by it and by its full name, on every transport.
func TestToolNames(t *testing.T) {
	long := strings.Repeat("long_", 10)
	fits := "exactly-" + strings.Repeat("x", 35)
	tools := map[string]string{ // the listed name by the tool's own, of the server s
		"plain":     "s__plain",
		"a__b":      "s__a__b",
		"ns:tool":   "s__ns_tool_19c070",
		"dot.tool":  "s__dot_tool_ccd9e6",
		"has space": "s__has_space_b93487",
		"ünï":       "s___n__cd07d1",
		"x_abcdef":  "s__x_abcdef", // looks like an alias and is none
		fits:        "s__" + fits,
		long:        "s__long_long_long_long_long_long_long_l_757f5c",
	}
	var own, want []string
	for name := range tools {
		own = append(own, name)
	}
	slices.Sort(own)
	for _, name := range own {
		want = append(want, tools[name])
	}
	for _, transport := range []string{overHTTP, overSSE, overPipe} {
		t.Run(transport, func(t *testing.T) {
			w := newWorld(t, nil, place{"other", transport, newServer("plain"), ""}, place{"s", transport, newServer(own...), ""})
			c := w.dial(proxyPath)
			for _, name := range own { // also before anything was listed
				for _, called := range []string{tools[name], "s__" + name} {
					a := c.call(called)
					if want := `"name":` + quote(name) + `}`; !strings.Contains(a.result, want) {
						t.Errorf("call %q: got %s %s, want %s at the server", called, a.result, a.err, want)
					}
				}
			}
			if got := c.tools(); !slices.Equal(got[1:], want) || got[0] != "other__plain" {
				t.Errorf("listed: got %q, want other__plain and %q", got, want)
			}
		})
	}
}

// The limit cuts names of tools and prompts, and 0 leaves all that clients can write.
func TestNameLimit(t *testing.T) {
	for _, row := range []struct {
		limit int
		own   string
		want  string
	}{
		{0, strings.Repeat("x", 300), "s__" + strings.Repeat("x", 300)},
		{0, "ns:tool", "s__ns_tool_19c070"},
		{8, "ns:tool", "s_19c070"},
		{20, "ns:tool", "s__ns_tool_19c070"},
		{10, "plain-plain", "s___4f0b87"},
		{46, "plain", "s__plain"},
	} {
		t.Run(fmt.Sprint(row.limit, row.own[:5]), func(t *testing.T) {
			s := newServer(row.own)
			s.caps = `{"tools":{},"prompts":{}}`
			s.lists["prompts/list"] = []string{`{"name":` + quote(row.own) + `}`}
			s.raw[row.own] = `{"messages":[]}`
			s.on = func(r *request) bool {
				if r.Method == "tools/call" {
					r.result(`{"content":[]}`)
				}
				return r.Method == "tools/call"
			}
			w := newWorld(t, func(o *setup) { o.config.NameLimit = row.limit }, place{"s", overHTTP, s, ""})
			c := w.dial(proxyPath)
			listed := c.tools()[0]
			if listed != row.want {
				t.Errorf("listed: got %q, want %q", listed, row.want)
			}
			if got := names(c.do("prompts/list", "{}").result, "prompts", "name"); !slices.Equal(got, []string{listed}) {
				t.Errorf("prompts: got %q, want %q", got, listed)
			}
			if a := c.call(listed); a.result == "" {
				t.Errorf("call %q: got error %s, want a result", listed, a.err)
			}
			if a := c.do("prompts/get", `{"name":`+quote(listed)+`}`); a.result == "" {
				t.Errorf("get %q: got error %s, want a result", listed, a.err)
			}
			if got, want := s.got("prompts/get"), `"name":`+quote(row.own); !strings.Contains(got[0], want) {
				t.Errorf("prompts/get: got %s, want %s", got[0], want)
			}
		})
	}
}

// What is not there is refused with its name, and nobody hears of it.
func TestUnknownNames(t *testing.T) {
	s := newServer("plain")
	s.lists["prompts/list"], s.lists["resources/list"] = []string{`{"name":"p"}`}, []string{`{"uri":"file:///x","name":"x"}`}
	w := newWorld(t, nil, place{"s", overHTTP, s, ""}, place{"down", overHTTP, newServer("plain"), ""})
	c := w.dial(proxyPath)
	c.tools()
	for _, row := range []struct{ method, params, want string }{
		{"tools/call", `{"name":"plain"}`, "Unknown tool: plain"},
		{"tools/call", `{"name":"s__nope"}`, "Unknown tool: s__nope"},
		{"tools/call", `{"name":"nobody__plain"}`, "Unknown tool: nobody__plain"},
		{"tools/call", `{"name":"s:plain"}`, "Unknown tool: s:plain"},
		{"tools/call", `{"name":"s.plain"}`, "Unknown tool: s.plain"},
		{"tools/call", `{"name":"S__plain"}`, "Unknown tool: S__plain"},
		{"tools/call", `{"name":"__plain"}`, "Unknown tool: __plain"},
		{"tools/call", `{"name":"s__"}`, "Unknown tool: s__"},
		{"tools/call", `{"name":""}`, "Unknown tool: "},
		{"tools/call", `{"name":"s__plain_000000"}`, "Unknown tool: s__plain_000000"},
		{"tools/call", `{"name":"search_available_tools"}`, "Unknown tool: search_available_tools"},
		{"tools/call", `{"name":7}`, "Invalid params: name must be a string and appear once"},
		{"tools/call", `{}`, "Invalid params: name must be a string and appear once"},
		{"tools/call", `{"name":"s__plain","name":"down__plain"}`, "Invalid params: name must be a string and appear once"},
		{"tools/call", `{"name":"s__plain","Name":"down__plain"}`, "Invalid params: name must be a string and appear once"},
		{"prompts/get", `{"name":"p"}`, "Unknown prompt: p"},
		{"prompts/get", `{"name":"nobody__p"}`, "Unknown prompt: nobody__p"},
		{"prompts/get", `{"name":null}`, "Invalid params: name must be a string and appear once"},
		{"resources/read", `{"uri":"file:///x"}`, "Unknown resource: file:///x"},
		{"resources/read", `{"uri":"nobody__file:///x"}`, "Unknown resource: nobody__file:///x"},
		{"resources/read", `{"uri":"nobody+file:///x"}`, "Unknown resource: nobody+file:///x"},
		{"resources/subscribe", `{"uri":"file:///x"}`, "Unknown resource: file:///x"},
		{"resources/unsubscribe", `{"uri":["s__x"]}`, "Invalid params: uri must be a string and appear once"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"p"}}`, "Unknown reference: p"},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"file:///{x}"}}`, "Unknown reference: file:///{x}"},
		{"completion/complete", `{"ref":{"type":"ref/prompt"}}`, "Invalid params: ref.name must be a string and appear once"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"s__p"},"ref":{}}`, "Invalid params: ref.name must be a string and appear once"},
		{"completion/complete", `{}`, "Invalid params: ref.name must be a string and appear once"},
	} {
		before := len(s.methods())
		a := c.do(row.method, row.params)
		if want := `{"code":-32602,"message":` + quote(row.want) + `}`; a.err != want {
			t.Errorf("%s %s: got %s %s, want error %s", row.method, row.params, a.result, a.err, want)
		}
		for _, m := range s.methods()[before:] {
			if m == row.method {
				t.Errorf("%s %s: got a request to the server, want none", row.method, row.params)
			}
		}
	}
	if a := c.do("tasks/list", "{}"); !strings.Contains(a.err, `"code":-32601`) {
		t.Errorf("unknown method: got %s, want -32601", a.err)
	}
}

// withResources is a server with resources, templates and prompts.
func withResources(uris ...string) *server {
	s := newServer("echo")
	s.caps = `{"tools":{},"prompts":{},"resources":{"subscribe":true,"listChanged":true},"completions":{}}`
	s.lists["resources/list"], s.lists["resources/templates/list"] = []string{}, []string{`{"uriTemplate":"file:///{+path}","name":"files"}`}
	s.lists["prompts/list"] = []string{`{"name":"greet"}`}
	for _, uri := range uris {
		s.lists["resources/list"] = append(s.lists["resources/list"], `{"uri":`+quote(uri)+`,"name":"n"}`)
		s.raw[uri] = `{"contents":[{"uri":` + quote(uri) + `,"text":"t"},{"uri":"other:///y","blob":""}]}`
	}
	s.raw["greet"] = `{"messages":[]}`
	s.errors = map[string]string{}
	s.on = func(r *request) bool {
		if r.Method == "completion/complete" {
			r.result(`{"completion":{"values":["v"]}}`)
		}
		return r.Method == "completion/complete"
	}
	return s
}

// Resources have two forms. Both are understood, whichever is written.
func TestResourceNames(t *testing.T) {
	for _, row := range []struct{ server, form, uri, listed, template string }{
		{"hr", proxy.ResourcePrefix, "file:///x", "hr__file:///x", "hr__file:///{+path}"},
		{"hr", proxy.ResourceScheme, "file:///x", "hr+file:///x", "hr+file:///{+path}"},
		{"my_files", proxy.ResourceScheme, "file:///x", "my.files+file:///x", "my.files+file:///{+path}"},
		{"my_files", proxy.ResourcePrefix, "file:///x", "my_files__file:///x", "my_files__file:///{+path}"},
		{"1a", proxy.ResourceScheme, "file:///a__b", "x1a+file:///a__b", "x1a+file:///{+path}"},
		{"hr", proxy.ResourceScheme, "git+ssh://h/x", "hr+git+ssh://h/x", "hr+file:///{+path}"},
		{"hr", proxy.ResourceScheme, "no scheme", "hr__no scheme", "hr+file:///{+path}"},
		{"a-b", proxy.ResourceScheme, "urn:x:y", "a-b+urn:x:y", "a-b+file:///{+path}"},
	} {
		t.Run(row.form+" "+row.listed, func(t *testing.T) {
			s := withResources(row.uri)
			w := newWorld(t, func(o *setup) { o.config.ResourceNames = row.form },
				place{"first", overHTTP, newServer(), ""}, place{row.server, overHTTP, s, ""})
			c := w.dial(proxyPath)
			if got := names(c.do("resources/list", "").result, "resources", "uri"); !slices.Equal(got, []string{row.listed}) {
				t.Errorf("listed: got %q, want %q", got, row.listed)
			}
			if got := names(c.do("resources/templates/list", "").result, "resourceTemplates", "uriTemplate"); !slices.Equal(got, []string{row.template}) {
				t.Errorf("template: got %q, want %q", got, row.template)
			}
			exact := row.server + "__" + row.uri
			forms := []string{row.listed, exact}
			if scheme, rest, ok := strings.Cut(row.listed, "+"); ok && row.form == proxy.ResourceScheme {
				forms = append(forms, strings.ToUpper(scheme)+"+"+rest)
			}
			for _, uri := range forms {
				a := c.do("resources/read", `{"uri":`+quote(uri)+`}`)
				if got := names(a.result, "contents", "uri"); len(got) != 2 || got[0] != row.listed || !strings.HasSuffix(got[1], "other:///y") || got[1] == "other:///y" {
					t.Errorf("read %q: got %s %s, want contents of %s and other:///y as the server's", uri, a.result, a.err, row.listed)
				}
				if a := c.do("resources/subscribe", `{"uri":`+quote(uri)+`}`); a.result != "{}" {
					t.Errorf("subscribe %q: got %s, want {}", uri, a.err)
				}
				if a := c.do("completion/complete", `{"ref":{"type":"ref/resource","uri":`+quote(uri)+`},"argument":{"name":"path","value":""}}`); a.result == "" {
					t.Errorf("complete %q: got %s, want a result", uri, a.err)
				}
			}
			for _, method := range []string{"resources/read", "resources/subscribe"} {
				for _, got := range s.got(method) {
					if uri := jsonrpc.Text(jsonrpc.Get([]byte(got), "uri")); uri != row.uri {
						t.Errorf("%s: got %q at the server, want %q", method, uri, row.uri)
					}
				}
			}
			for _, got := range s.got("completion/complete") {
				if want := `"ref":{"type":"ref/resource","uri":` + quote(row.uri) + `},"argument":{"name":"path","value":""}`; !strings.Contains(got, want) {
					t.Errorf("completion: got %s, want %s", got, want)
				}
			}
			mcptest.Eventually(t, "a stream", func() bool { return s.streams() == 2 }) // the client's and the router's own
			s.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"x":1,"uri":` + quote(row.uri) + `,"y":2}}`)
			want := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"x":1,"uri":` + quote(row.listed) + `,"y":2}}`
			mcptest.Eventually(t, "the update", func() bool { return len(c.heard()) > 0 })
			if got := c.heard(); !slices.Equal(got, []string{want}) {
				t.Errorf("updated: got %q, want %q", got, want)
			}
		})
	}
}

// Two servers whose names make the same scheme are never taken for each other.
func TestEqualSchemes(t *testing.T) {
	for _, pair := range [][2]string{{"1a", "x1a"}, {"x1a", "1a"}, {"HR", "hr"}, {"hr", "HR"}, {"a_b", "A_b"}} {
		for _, form := range []string{proxy.ResourcePrefix, proxy.ResourceScheme} {
			t.Run(fmt.Sprint(pair, form), func(t *testing.T) {
				servers := [2]*server{withResources("file:///x"), withResources("file:///x")}
				w := newWorld(t, func(o *setup) { o.config.ResourceNames = form },
					place{pair[0], overHTTP, servers[0], ""}, place{pair[1], overHTTP, servers[1], ""}, place{"third", overHTTP, withResources("file:///x"), ""})
				c := w.dial(proxyPath)
				listed := names(c.do("resources/list", "").result, "resources", "uri")
				want := []string{pair[0] + "__file:///x", pair[1] + "__file:///x", "third__file:///x"}
				if form == proxy.ResourceScheme {
					want[2] = "third+file:///x"
				}
				if !slices.Equal(listed, want) {
					t.Errorf("listed: got %q, want %q", listed, want)
				}
				for i, s := range servers {
					for range 2 {
						before := [2]int{len(servers[0].got("resources/read")), len(servers[1].got("resources/read"))}
						a := c.do("resources/read", `{"uri":`+quote(pair[i]+"__file:///x")+`}`)
						if len(s.got("resources/read")) != before[i]+1 || len(servers[1-i].got("resources/read")) != before[1-i] {
							t.Errorf("read %s__file:///x: got %s at the wrong server, want it at %s", pair[i], a.err, pair[i])
						}
					}
				}
				for _, scheme := range []string{"x1a", "hr", "HR", "a.b"} {
					if a := c.do("resources/read", `{"uri":"`+scheme+`+file:///x"}`); !strings.Contains(a.err, "Unknown resource: "+scheme+"+file:///x") {
						t.Errorf("read %s+file:///x, which could be either: got %s %s, want it unknown", scheme, a.result, a.err)
					}
				}
			})
		}
	}
}

// URIs are renamed where results carry resources, and nowhere else.
func TestURIsInResults(t *testing.T) {
	s := withResources("file:///x")
	for name, raw := range map[string]string{
		"links": `{"content":[{"type":"resource_link","uri":"file:///x","name":"uri","icons":[{"src":"file:///i"}]},` +
			` {"name":"n","uri":"a\u002fb","type":"resource_link"},` +
			`{"type":"resource","resource":{"uri":"file:///x","text":"uri","_meta":{"uri":"file:///m"}},"uri":"file:///z"},` +
			`{"type":"text","text":"file:///x","uri":"file:///x"},{"type":"future","uri":"file:///x","resource":{"uri":"file:///x"}},{"type":"resource_link","uri":7}],` +
			`"structuredContent":{"uri":"file:///x","content":[{"type":"resource_link","uri":"file:///x"}]},"contents":[{"uri":"file:///x"}],"uri":"file:///x","_meta":{"uri":"file:///x"}}`,
		"escaped": `{"content":[{"type":"resource_link","\u0075ri":"file:///x"}]}`,
		"odd":     `{"content":{"type":"resource_link","uri":"file:///x"}}`,
		"none":    `{"content":"uri","x":"\u0075"}`,
	} {
		s.lists["tools/list"] = append(s.lists["tools/list"], `{"name":"`+name+`",`+object+`}`)
		s.raw[name] = raw
	}
	s.raw["greet"] = `{"description":"uri","messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"file:///x","text":""}}},` +
		`{"role":"user","content":{"type":"resource_link","uri":"file:///x","name":"n"}},{"role":"user","content":[{"type":"resource_link","uri":"file:///x"}]},` +
		`{"uri":"file:///x","content":{"type":"text","text":"uri"}}],"contents":[{"uri":"file:///x"}]}`
	s.raw["file:///x"] = `{"contents":[{"uri":"file:///x","text":"{\"uri\":\"file:///x\"}"},{"text":"no uri"}],"content":[{"type":"resource_link","uri":"file:///x"}]}`
	w := newWorld(t, nil, place{"hr", overHTTP, s, ""})
	c, single := w.dial(proxyPath), w.dial("/servers/hr/mcp")
	for _, row := range []struct {
		method, own string
		renamed     []string // parts of the server's result that change, in order
	}{
		{"tools/call", "links", []string{`"type":"resource_link","uri":"file:///x"`, `"uri":"a\u002fb","type"`, `"resource":{"uri":"file:///x","text"`}},
		{"tools/call", "escaped", []string{`"\u0075ri":"file:///x"`}},
		{"tools/call", "odd", []string{`"uri":"file:///x"`}},
		{"tools/call", "none", nil},
		{"prompts/get", "greet", []string{`"resource":{"uri":"file:///x"`, `"type":"resource_link","uri":"file:///x","name"`, `[{"type":"resource_link","uri":"file:///x"}]`}},
		{"resources/read", "file:///x", []string{`{"contents":[{"uri":"file:///x"`}},
	} {
		want, from := s.raw[row.own], 0
		for _, part := range row.renamed {
			at := from + strings.Index(want[from:], part)
			renamed := strings.NewReplacer(`"file:///x"`, `"hr__file:///x"`, `"a\u002fb"`, `"hr__a/b"`).Replace(part)
			want, from = want[:at]+renamed+want[at+len(part):], at+len(renamed)
		}
		member := "name"
		if row.method == "resources/read" {
			member = "uri"
		}
		if a := c.do(row.method, `{"`+member+`":`+quote("hr__"+row.own)+`}`); a.result != want {
			t.Errorf("%s %s: got\n%s\n%s, want\n%s", row.method, row.own, a.result, a.err, want)
		}
		if a := single.do(row.method, `{"`+member+`":`+quote(row.own)+`}`); a.result != s.raw[row.own] {
			t.Errorf("single %s %s: got\n%s\n%s, want\n%s", row.method, row.own, a.result, a.err, s.raw[row.own])
		}
	}
}
