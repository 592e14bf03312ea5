package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/trust"
)

// setPolicy applies rules to later calls.
func (w *world) setPolicy(rules ...trust.Rule) {
	w.t.Helper()
	p, err := trust.Compile(rules)
	if err != nil {
		w.t.Fatal(err)
	}
	w.manager.SetPolicy(p)
}

// Nobody can be asked about a request that goes to several servers: where a rule asks, it is forbidden and says why.
func TestPolicyAsksOnBroadcasts(t *testing.T) {
	logs, mute := withResources("file:///x", "file:///y"), withResources("file:///x")
	logs.caps, mute.caps = `{"logging":{},"resources":{"subscribe":true}}`, `{"logging":{},"resources":{"subscribe":true}}`
	w := newWorld(t, nil, place{"hr", overHTTP, logs, ""}, place{"crm", overHTTP, mute, ""})
	w.wait("hr", "crm")
	ask := trust.Rule{When: `server == "hr" and method in ["logging/setLevel", "resources/subscribe"] or server == "crm"`,
		Then: trust.Ask, Reason: "Ask me first."}
	w.setPolicy(ask)
	c := w.dialAs(proxyPath, "test", func(jsonrpc.Message) string { return `"result":{"action":"accept","content":{}}` })
	want := `{"code":-32600,"message":"Ask me first; it needs approval, and nobody can be asked about logging/setLevel here","data":{"reason":"forbidden"}}`
	if a := c.do("logging/setLevel", `{"level":"info"}`); a.err != want {
		t.Errorf("logging/setLevel: got %s %s, want %s", a.result, a.err, want)
	}
	listener := w.newClient(proxyPath)
	a := listener.listens("1", `{"resourceSubscriptions":["hr__file:///x","crm__file:///x"]}`)
	if got := acknowledged(listener, a, "resourceSubscriptions"); got != "[]" {
		t.Errorf("subscriptions/listen: got %s acknowledged, want none", got)
	}
	if n := len(w.logs.Lines("WARN", "cannot subscribe to a resource")); n != 1 {
		t.Errorf("got %d warnings for one request, want 1: %s", n, w.logs)
	}
	if n := len(w.logs.Lines("cannot subscribe to a resource", "nobody can be asked about resources/subscribe here")); n != 2 {
		t.Errorf("got %d log lines with the reason, want 2: %s", n, w.logs)
	}
	if got := len(c.questions()) + len(logs.got("logging/setLevel")) + len(logs.got("resources/subscribe")); got != 0 {
		t.Errorf("got %d questions and requests at the server, want none", got)
	}
	// On the path of one server the client is asked.
	one := w.dialAs("/servers/hr/mcp", "test", func(jsonrpc.Message) string { return `"result":{"action":"accept","content":{}}` })
	one.listen()
	if a := one.do("logging/setLevel", `{"level":"info"}`); a.result != "{}" || len(one.questions()) != 1 {
		t.Errorf("on the server's path: got %s %s and %d questions, want one and the level set", a.result, a.err, len(one.questions()))
	}
	// One server that may be told is enough.
	ask.When = `server == "crm"`
	w.setPolicy(ask)
	if a := c.do("logging/setLevel", `{"level":"info"}`); a.result != "{}" {
		t.Errorf("one of two: got %s %s, want {}", a.result, a.err)
	}
}

// A client and a server of 2026-07-28: the question of the rule and then those of the server are round trips of one
// call, and the server is called only after a yes.
func TestPolicyAsksInTheModernEra(t *testing.T) {
	const accept = `{"action":"accept","content":{}}`
	for name, row := range map[string]struct {
		answer string
		want   string
		calls  int
	}{
		"yes":       {accept, `"resultType":"complete"`, 2},
		"no":        {`{"action":"decline"}`, `{"code":-32600,"message":"the user declined","data":{"reason":"declined"}}`, 0},
		"dismissed": {`{"action":"cancel"}`, `{"code":-32600,"message":"the user dismissed the request","data":{"reason":"declined"}}`, 0},
	} {
		for path, tool := range map[string]string{proxyPath: "s__form", "/servers/s/mcp": "form"} {
			t.Run(name+path, func(t *testing.T) {
				s := curious(twoQuestions)
				w := newWorld(t, nil, place{"s", overHTTP, s, ""})
				w.setPolicy(trust.Rule{When: `tool == "form"`, Then: trust.Ask, Reason: "Ask me first."})
				params := fmt.Sprintf(`{"name":%q,"arguments":{},%s}`, tool,
					strings.Replace(modernMeta, `Capabilities":{}`, `Capabilities":{"elicitation":{},"roots":{}}`, 1))
				var asked []string
				var a *answer
				for range 9 {
					a = w.modernWith(http.Header{}, path, "tools/call", params, tool)
					questions := jsonrpc.Get([]byte(a.result), "inputRequests")
					if questions == nil {
						break
					}
					answers := []byte("{}")
					jsonrpc.Members(questions, func(key []byte, place jsonrpc.Span) bool {
						question := place.Of(questions)
						asked = append(asked, jsonrpc.Text(jsonrpc.Get(question, "params", "message")))
						answer := row.answer
						if jsonrpc.Text(jsonrpc.Get(question, "method")) == "roots/list" {
							answer = `{"roots":[]}`
						}
						answers = jsonrpc.Set(answers, string(key), []byte(answer))
						return true
					})
					retry := jsonrpc.Set([]byte(params), "inputResponses", answers)
					params = string(jsonrpc.Set(retry, "requestState", jsonrpc.Get([]byte(a.result), "requestState")))
				}
				if got := a.result + a.err + a.refused; !strings.Contains(got, row.want) || len(s.got("tools/call")) != row.calls {
					t.Errorf("got %s and %d calls at the server, want %s and %d", got, len(s.got("tools/call")), row.want, row.calls)
				}
				if len(asked) == 0 || !strings.Contains(asked[0], "Ask me first.") || (len(asked) == 3) != (row.calls > 0) {
					t.Errorf("got the questions %q, want that of the rule first and those of the server after a yes", asked)
				}
			})
		}
	}
}
