package proxy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/router/proxy"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// Every tool is listed under one name, and callable by it and by its full name.
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
	w := newWorld(t, nil, place{"other", overPipe, newServer("plain"), ""}, place{"s", overPipe, newServer(own...), ""})
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
	for _, pair := range [][2]string{{"1a", "x1a"}, {"hr", "HR"}, {"a_b", "A_b"}} {
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

// transports are the ways to a server.
var transports = []string{overHTTP, overSSE, overPipe}

var ourToken = regexp.MustCompile(`"progressToken":[0-9]+`)

// Of a request's params only the name, the progress token and the key change on the way to the server.
func TestParamsPass(t *testing.T) {
	const odd = `"z":9007199254740993,"a":1.0,"e":1E400,"neg":-0,"s":"\u00e9\/\ud83d\ude00","sp" : [ 1 , {} ],"dup":1,"dup":2,"n":null`
	for _, row := range []struct{ name, sent, want string }{ // # stands for the router's own token
		{"no params but the name", `{"name":"NAME"}`, `{"_meta":{#},"name":"NAME"}`},
		{"order and odd values", `{"arguments":{` + odd + `},"name":"NAME","unknown":{"y":[],` + odd + `}}`, `{"_meta":{#},"arguments":{` + odd + `},"name":"NAME","unknown":{"y":[],` + odd + `}}`},
		{"meta without token", `{"name":"NAME","_meta":{"session_id":"abc123","custom_field":"value","n":9007199254740993}}`, `{"name":"NAME","_meta":{#,"session_id":"abc123","custom_field":"value","n":9007199254740993}}`},
		{"empty meta", `{"_meta":{},"name":"NAME"}`, `{"_meta":{#},"name":"NAME"}`},
		{"token in the middle", `{"name":"NAME","_meta":{"a":1,"progressToken":"t","b":2},"task":{"ttl":1}}`, `{"name":"NAME","_meta":{"a":1,#,"b":2},"task":{"ttl":1}}`},
		{"number token", `{"name":"NAME","_meta":{"progressToken":12345678901234567890}}`, `{"name":"NAME","_meta":{#}}`},
		{"key", `{"name":"NAME","_meta":{"a":1,"api_key":"secret","b":2}}`, `{"name":"NAME","_meta":{#,"a":1,"b":2}}`},
		{"trace context", `{"name":"NAME","_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}`, `{"name":"NAME","_meta":{#,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}`},
		{"spaces", "{ \"name\" :\t\"NAME\" , \"arguments\" : { } }", "{\"_meta\":{#}, \"name\" :\t\"NAME\" , \"arguments\" : { } }"},
	} {
		for _, transport := range transports {
			s := newServer("echo")
			w := newWorld(t, nil, place{"s", transport, s, ""})
			for path, name := range map[string]string{proxyPath: "s__echo", "/servers/s/mcp": "echo"} {
				c := w.dial(path)
				a := c.do("tools/call", strings.Replace(row.sent, "NAME", name, 1))
				if a.result == "" {
					t.Fatalf("%s, %s, %s: got error %s, want a result", row.name, transport, path, a.err)
				}
				got := s.got("tools/call")
				last := ourToken.ReplaceAllString(got[len(got)-1], "#")
				if want := strings.Replace(row.want, "NAME", "echo", 1); last != want {
					t.Errorf("%s, %s, %s: got\n%s at the server, want\n%s", row.name, transport, path, last, want)
				}
			}
			w.stop()
		}
	}
}

// Results and errors arrive byte for byte.
func TestResultsPass(t *testing.T) {
	results := map[string]string{
		"odd":        `{"z":9007199254740993,"content":[],"a":[1.0,-0,1E400],"nested":{"b":1,"a":{"d":[],"c":null}},"s":"\u00e9\/\ud83d\ude00"}`,
		"structured": `{"structuredContent":{"big":18446744073709551616,"x":{"y":1}},"content":[{"type":"text","text":"{}"}],"isError":false,"_meta":{"k":9007199254740993,"progressToken":1}}`,
		"tree":       `{"content":[],"structuredContent":` + strings.Repeat(`{"children":[`, 200) + strings.Repeat("]}", 200) + `}`,
		"blocks":     `{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/wav","annotations":{"audience":["user"],"priority":0.5}},{"type":"image","data":"","mimeType":"image/png"},{"type":"hologram","future":{"deep":[[]]}}]}`,
		"error":      `{"content":[{"type":"text","text":"no"}],"isError":true}`,
		"no content": `{}`,
		"task":       `{"task":{"taskId":"t","status":"working"}}`,
		"spaces":     `{ "content" : [ ] , "x":1 }`,
		"of no kind": `{"resultType":"riddle","content":[]}`,
		"long":       `{"content":[{"type":"text","text":"` + strings.Repeat(`0123456789abcde\n`, 8<<10) + `"}]}`,
	}
	errors := map[string]string{
		"own code":   `{"code":-32042,"message":"URL needed","data":{"elicitations":[{"elicitationId":"1","url":"https://x"}],"n":9007199254740993}}`,
		"big code":   `{"message":"order","code":-2147483648}`,
		"data text":  `{"code":1,"message":"\u00e9","data":"x","extra":[1]}`,
		"not found":  `{"code":-32002,"message":"Resource not found","data":{"uri":"x"}}`,
		"bad params": `{"code":-32602,"message":"Unknown tool: other__x"}`,
	}
	for _, transport := range transports {
		s := newServer()
		s.raw, s.errors = results, errors
		for _, m := range []map[string]string{results, errors} {
			for name := range m {
				s.lists["tools/list"] = append(s.lists["tools/list"], `{"name":`+quote(name)+`,`+object+`}`)
			}
		}
		w := newWorld(t, func(o *setup) { o.quiet = true }, place{"s", transport, s, ""})
		for path, prefix := range map[string]string{proxyPath: "s__", "/servers/s/mcp": ""} {
			c := w.dial(path)
			for name, want := range results {
				if a := c.call(prefix + name); a.result != want {
					t.Errorf("%s, %s: got %.300s %s, want %.300s", transport, name, a.result, a.err, want)
				}
			}
			for name, want := range errors {
				if a := c.call(prefix + name); a.err != want {
					t.Errorf("%s, %s: got %s %s, want %s", transport, name, a.result, a.err, want)
				}
			}
		}
		w.stop()
	}
}

// Definitions keep everything but their name.
func TestDefinitionsPass(t *testing.T) {
	items := map[string]string{
		"tools/list": `{"title":"T","name":"NAME","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"oneOf":[{"type":"integer","maximum":9007199254740993},{"type":"null"}]}},"type":"object","properties":{"x":{"$ref":"#/$defs/a"}}},` +
			`"outputSchema":{"type":"object","$defs":{}},"icons":[{"src":"data:,","mimeType":"image/png","sizes":["48x48"],"theme":"dark"}],"annotations":{"readOnlyHint":true,"unknownHint":1},"execution":{"taskSupport":"optional"},"_meta":{"ui":{"resourceUri":"ui://x"}},"future":[1.0]}`,
		"prompts/list":             `{"arguments":[{"name":"name","required":true}],"name":"NAME","icons":[],"_meta":{"name":"NAME"}}`,
		"resources/list":           `{"name":"uri","uri":"NAME","size":9007199254740993,"annotations":{"lastModified":"2025"},"_meta":{"uri":"NAME"}}`,
		"resources/templates/list": `{"uriTemplate":"NAME","name":"x","future":{"uriTemplate":"NAME"}}`,
	}
	own := map[string]string{"tools/list": "t", "prompts/list": "p", "resources/list": "file:///r", "resources/templates/list": "file:///{t}"}
	s := newServer()
	for method, item := range items {
		s.lists[method] = []string{strings.ReplaceAll(item, "NAME", own[method])}
	}
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	c, single := w.dial(proxyPath), w.dial("/servers/s/mcp")
	for method, item := range items {
		a := c.do(method, "{}")
		want := strings.ReplaceAll(strings.Replace(item, "NAME", "s__"+own[method], 1), "NAME", own[method])
		if !strings.HasSuffix(a.result, "["+want+"]}") {
			t.Errorf("%s: got\n%s %s, want\n%s in it", method, a.result, a.err, want)
		}
		key := map[string]string{"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}[method]
		if got, want := single.do(method, "{}").result, `{"`+key+`":[`+s.lists[method][0]+`]}`; got != want {
			t.Errorf("single %s: got\n%s, want\n%s", method, got, want)
		}
	}
}

// Other requests and notifications keep their bytes, too.
func TestOtherMessagesPass(t *testing.T) {
	s := withResources("file:///x")
	s.caps = `{"logging":{},"resources":{"subscribe":true}}`
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	single := w.dial("/servers/s/mcp")
	for _, row := range []struct{ method, params string }{
		{"completion/complete", `{"argument":{"value":"v","name":"n"},"ref":{"name":"greet","type":"ref/prompt"},"context":{"arguments":{"big":"1"}},"x":9007199254740993}`},
		{"prompts/get", `{"arguments":{"b":"1","a":"2"},"name":"greet"}`},
		{"resources/read", `{"x":9007199254740993,"uri":"file:///x"}`},
		{"logging/setLevel", `{"level":"debug","x":1}`},
		{"custom/method", `{"anything":[9007199254740993]}`},
	} {
		single.do(row.method, row.params)
		got := s.got(row.method)
		want := strings.Replace(row.params, "{", `{"_meta":{#},`, 1)
		if len(got) != 1 || ourToken.ReplaceAllString(got[0], "#") != want {
			t.Errorf("%s: got %q at the server, want %s", row.method, got, want)
		}
	}
	const note = `{"z":1,"big":9007199254740993,"a":{"_meta":{"k":1}}}`
	single.notify("notifications/custom", note)
	mcptest.Eventually(t, "the notification", func() bool { return len(s.got("notifications/custom")) > 0 })
	if got := s.got("notifications/custom")[0]; got != note {
		t.Errorf("notification: got %s, want %s", got, note)
	}
	const said = `{"method":"notifications/custom", "jsonrpc":"2.0","params":` + note + `}`
	mcptest.Eventually(t, "a stream", func() bool { return s.streams() == 2 })
	s.say(said)
	mcptest.Eventually(t, "the notification", func() bool { return len(single.heard()) > 0 })
	if got := single.heard()[0]; got != said {
		t.Errorf("notification of the server: got %s, want %s", got, said)
	}
}

// No key reaches a server, in the headers or in the body, whether keys are asked for or not.
func TestNoKeyPasses(t *testing.T) {
	for _, keyed := range []bool{false, true} {
		s := newServer("echo")
		w := newWorld(t, func(o *setup) {
			if keyed {
				o.edge = edge.Options{Keys: restricted(t, keyOf("A"))}
			}
		}, place{"s", overHTTP, s, ""})
		c := w.newClient(proxyPath)
		c.header.Set("X-API-Key", "secret-A")
		c.hello()
		c.header.Set("Authorization", "Bearer secret-A")
		a := c.do("tools/call", `{"name":"s__echo","_meta":{"api_key":"secret-A"}}`)
		if a.result == "" {
			t.Fatalf("keyed %t: got %s %s, want a result", keyed, a.err, a.refused)
		}
		s.change(func() {
			for i, m := range s.received {
				if strings.Contains(string(m.Raw), "secret") || strings.Contains(string(m.Raw), "api_key") {
					t.Errorf("keyed %t: got %s at the server, want no key", keyed, m.Raw)
				}
				for name, values := range s.headers[i] {
					if strings.Contains(strings.Join(values, " "), "secret") {
						t.Errorf("keyed %t: got header %s: %q at the server, want no key", keyed, name, values)
					}
				}
			}
		})
		if w.logs.Has("secret-A") {
			t.Errorf("keyed %t: got the key in the log, want none", keyed)
		}
	}
}

// The id is the client's own, type included, and two clients may use the same ids and tokens at once.
func TestIDsAreTheClients(t *testing.T) {
	s := newServer("slow")
	s.on = func(r *request) bool {
		if r.name() == "slow" {
			r.progress(`"progress":1`)
			<-r.ctx.Done()
		}
		return false
	}
	w := newWorld(t, nil, place{"s", overPipe, s, ""})
	ids := []string{`1`, `"1"`, `-9007199254740993`, `""`, `"\u0061"`, `"nexus-1"`, `12345678901234567890`}
	for range 2 {
		c := w.dial(proxyPath)
		for i, id := range ids {
			token := ids[(i+1)%len(ids)]
			a := c.start(id, "tools/call", `{"name":"s__slow","_meta":{"progressToken":`+token+`}}`)
			mcptest.Eventually(t, "progress", func() bool { return len(c.noted(a)) > 0 })
			if want := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":1}}`; c.noted(a)[0] != want {
				t.Errorf("%s: got %q, want %s", id, c.noted(a), want)
			}
			if id != `1` { // it is still in use below
				c.notify("notifications/cancelled", `{"requestId":`+id+`}`)
				c.wait(a)
				if a := c.wait(c.start(id, "ping", "")); a.result != "{}" {
					t.Errorf("ping %s: got %s %s, want {}", id, a.err, a.refused)
				}
			}
		}
		if twice := c.wait(c.start(`1`, "ping", "")); !strings.Contains(twice.refused, `-32600`) {
			t.Errorf("an id in flight twice: got %s %s, want -32600", twice.refused, twice.result)
		}
	}
	seen := map[string]bool{}
	for _, params := range s.got("tools/call") {
		token := string(jsonrpc.Get([]byte(params), "_meta", "progressToken"))
		if seen[token] {
			t.Errorf("got token %s twice on one session, want the router's own", token)
		}
		seen[token] = true
	}
}

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

var (
	serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*(_[A-Za-z0-9-]+)*$`)
	listable   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// neighbours are other servers, whose names are easily taken for one another's.
var neighbours = []string{"hr", "my_server", "my-server", "2x", "x2x", "HR2"}

// FuzzNames checks that every tool is listed under a name that clients accept and that leads back to it, and
// every resource under a URI that leads back to it.
func FuzzNames(f *testing.F) {
	for _, seed := range [][2]string{
		{"hr", "get_employee"}, {"everything", "trigger-long-running-operation"}, {"hr", "file:///data/a b.txt"},
		{"my_server", "demo://resource/static/document/architecture.md"}, {"2x", "x2x+test://template/{id}/data"},
		{"a", "_b__c:d.e"}, {"memory", "ünïcode"}, {"hr", "+file:///x"}, {"x2x", "urn:isbn:0451450523"},
	} {
		f.Add(seed[0], seed[1], 46, false)
		f.Add(seed[0], seed[1], 8, true)
	}
	f.Fuzz(func(t *testing.T, server, own string, limit int, scheme bool) {
		if !serverName.MatchString(server) || own == "" || limit < 8 && limit != 0 {
			t.Skip("no configuration has that")
		}
		c := proxy.Config{NameLimit: limit}
		if scheme {
			c.ResourceNames = proxy.ResourceScheme
		}
		n := proxy.NewNaming(c, append([]string{server}, neighbours...))

		full := catalog.FullName(server, own)
		if s, tool, ok := catalog.SplitFull(full); !ok || s != server || tool != own {
			t.Errorf("%q: got server %q and tool %q, %t, want %q and %q", full, s, tool, ok, server, own)
		}
		listed, found := n.Name(server, own)
		if !listable.MatchString(listed) || limit > 0 && len(listed) > limit {
			t.Errorf("%q: listed as %q, want only listable characters, %d at most", full, listed, limit)
		}
		if listed != full && !found {
			t.Errorf("%q: its alias %q is not looked for at %s", full, listed, server)
		}
		if again, _ := n.Name(server, own); again != listed {
			t.Errorf("%q: listed as %q and as %q", full, listed, again)
		}
		uri := n.URI(server, own)
		if s, u, ok := n.Split(uri); !ok || s != server || u != own {
			t.Errorf("%q: got server %q and %q, %t, want %q and %q", uri, s, u, ok, server, own)
		}
	})
}

// FuzzRewrite checks that renaming the URIs in a result leaves all else as it is.
func FuzzRewrite(f *testing.F) {
	for method, result := range map[string]string{
		"tools/call":     `{"content":[{"type":"text","text":"uri"},{"type":"resource_link","uri":"file:///a","name":"a"},{"type":"resource","resource":{"uri":"demo://1","text":"x"}}],"isError":false}`,
		"prompts/get":    `{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"demo://\u00e9","mimeType":"text/plain","blob":"YQ=="}}}]}`,
		"resources/read": `{"contents":[{"uri":"file:///x","text":"{\"uri\":\"no\"}"},{"\u0075ri":"file:///y"},{"uri":7}],"_meta":{"n":9007199254740993}}`,
	} {
		f.Add(method, []byte(result))
	}
	n := proxy.NewNaming(proxy.Config{}, []string{"hr"})
	f.Fuzz(func(t *testing.T, method string, result []byte) {
		if jsonrpc.Valid(result) != nil || len(result) == 0 || result[0] != '{' {
			t.Skip("no result is that")
		}
		out := n.Rewrite("hr", method, result)
		if err := jsonrpc.Valid(out); err != nil {
			t.Fatalf("%s: got %s, which is no JSON: %v", result, out, err)
		}
		var before, after any
		if json.Unmarshal(result, &before) != nil || json.Unmarshal(out, &after) != nil {
			t.Skip("deeper than this check can read")
		}
		if !equalButURIs(before, after) {
			t.Errorf("got %s, want %s with other URIs", out, result)
		}
	})
}

// equalButURIs compares two JSON values and passes over the strings of members called uri.
func equalButURIs(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			other, ok := b[name]
			_, text := value.(string)
			if !ok || !(name == "uri" && text) && !equalButURIs(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equalButURIs(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	return a == b
}
