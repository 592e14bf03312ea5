package proxy_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

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
		"long":       `{"content":[{"type":"text","text":"` + strings.Repeat(`0123456789abcde\n`, 64<<10) + `"}]}`,
	}
	errors := map[string]string{
		"own code":   `{"code":-32042,"message":"URL needed","data":{"elicitations":[{"elicitationId":"1","url":"https://x"}],"n":9007199254740993}}`,
		"big code":   `{"message":"order","code":-2147483648}`,
		"data text":  `{"code":1,"message":"\u00e9","data":"x","extra":[1]}`,
		"not found":  `{"code":-32002,"message":"Resource not found","data":{"uri":"x"}}`,
		"bad params": `{"code":-32602,"message":"Unknown tool: other__x"}`,
	}
	for _, transport := range transports {
		for _, plain := range []bool{false, true} {
			s := newServer()
			s.plain, s.raw, s.errors = plain, results, errors
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
						t.Errorf("%s, plain %t, %s: got %.300s %s, want %.300s", transport, plain, name, a.result, a.err, want)
					}
				}
				for name, want := range errors {
					if a := c.call(prefix + name); a.err != want {
						t.Errorf("%s, plain %t, %s: got %s %s, want %s", transport, plain, name, a.result, a.err, want)
					}
				}
			}
			w.stop()
		}
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
	release := make(chan struct{})
	s.on = func(r *request) bool {
		if r.name() != "slow" {
			return false
		}
		r.progress(`"progress":1`)
		select {
		case <-release:
		case <-r.ctx.Done():
		}
		r.result(`{"content":[],"seen":` + string(r.Params) + `}`)
		return true
	}
	for _, transport := range transports {
		w := newWorld(t, nil, place{"s", transport, s, ""})
		var clients []*client
		var answers []*answer
		ids := []string{`1`, `"1"`, `-9007199254740993`, `""`, `"\u0061"`, `"nexus-1"`, `12345678901234567890`}
		for n := range 2 {
			c := w.dial(proxyPath)
			clients = append(clients, c)
			for i, id := range ids {
				answers = append(answers, c.start(id, "tools/call", `{"name":"s__slow","arguments":{"who":`+string(rune('0'+n))+`,"id":`+id+`},"_meta":{"progressToken":`+ids[(i+1)%len(ids)]+`}}`))
			}
		}
		for i, a := range answers {
			c := clients[i/len(ids)]
			token := ids[(i+1)%len(ids)]
			mcptest.Eventually(t, "progress", func() bool { return len(c.noted(a)) > 0 })
			if want := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":1}}`; c.noted(a)[0] != want {
				t.Errorf("%s, %s: got %q, want %s", transport, a.id, c.noted(a), want)
			}
		}
		if twice := clients[0].wait(clients[0].start(`1`, "ping", "")); !strings.Contains(twice.refused, `-32600`) {
			t.Errorf("%s: an id in flight twice: got %s %s, want -32600", transport, twice.refused, twice.result)
		}
		close(release)
		for i, a := range answers[1:] { // the id of the first was used twice
			i++
			clients[i/len(ids)].wait(a)
			want := `"arguments":{"who":` + string(rune('0'+i/len(ids))) + `,"id":` + a.id + `}`
			if !strings.Contains(a.result, want) || len(a.notes) != 1 {
				t.Errorf("%s, %s: got %s %s after %q, want %s after one notification", transport, a.id, a.result, a.err, a.notes, want)
			}
		}
		seen := map[string]bool{}
		for _, params := range s.got("tools/call") {
			token := string(jsonrpc.Get([]byte(params), "_meta", "progressToken"))
			if transport == overPipe && seen[token] {
				t.Errorf("%s: got token %s twice on one session, want the router's own", transport, token)
			}
			seen[token] = true
		}
		w.stop()
		s.change(func() { s.received, s.headers = nil, nil })
		release = make(chan struct{})
	}
}
