package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

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
				if len(asked) != 2 || asked[0].Method != "elicitation/create" || string(asked[0].Params) != `{"message":"Who?","requestedSchema":{"type":"object","x":1.50}}` || asked[1].Method != "roots/list" {
					t.Errorf("%s: got the questions %v, want both as the server wrote them", method, asked)
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

// A handshake server's resultType is a member like others, unless it asks for input.
func TestResultTypeOfHandshakeServers(t *testing.T) {
	s := newServer("x")
	s.raw["x"] = `{"resultType":"riddle","content":[]}`
	w := newWorld(t, nil, place{"s", overHTTP, s, ""})
	c := w.dial(proxyPath)
	if a := c.do("tools/call", `{"name":"s__x"}`); a.result != s.raw["x"] {
		t.Errorf("got %s %s, want what the server said", a.result, a.err)
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
			a := w.modernDo(proxyPath, method, named[1], "{"+params+"}")
			want := `{"resultType":"input_required","inputRequests":` + twoQuestions + `,"requestState":` + state + `,"content":[]}`
			if a.result != want {
				t.Errorf("%s: got %s %s %s, want %s", method, a.result, a.err, a.refused, want)
			}
			answers := `"inputResponses":{"who":{"action":"accept","content":{"n":1.0}},"r":{"roots":[]}}`
			a = w.modernDo(proxyPath, method, named[1], "{"+params+","+answers+`,"requestState":`+state+"}")
			for _, want := range []string{answers, `"requestState":` + state, `"resultType":"complete"`} {
				if !strings.Contains(a.result, want) {
					t.Errorf("%s: got %s %s %s, want %s at the server", method, a.result, a.err, a.refused, want)
				}
			}
		}
	}
}
