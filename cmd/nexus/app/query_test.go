package app_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// brief writes the steps of an answer: id, tool, arguments and the reason of failures.
func brief(a *router.AnswerContent) string {
	var all []string
	for _, s := range a.Steps {
		text := s.ID + "=" + s.Server + "/" + s.Tool + string(s.Arguments)
		if !s.Success {
			text += " " + s.Error.Reason
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// withPeer starts an App with one server named peer, and the model if it is not nil.
func withPeer(t *testing.T, m *llmtest.Server, change func(*app.Options), tools ...peerTool) (*running, *peer) {
	t.Helper()
	p := newPeer(tools...)
	url := p.serve(t).URL
	return start(t, func(o *app.Options) {
		if m != nil {
			model(o, m)
		}
		o.Config.Servers = append(o.Config.Servers, server("peer", url))
		if change != nil {
			change(o)
		}
	}), p
}

// Plans of every form, from the model and from the caller.
func TestPlans(t *testing.T) {
	row := func(name, plan, want string) [3]string { return [3]string{name, plan, want} }
	rows := [][3]string{
		row("array", `[{"tool":"echo","arguments":{"a":1}},{"tool":"text","arguments":{}}]`, `s1=peer/echo{"a":1}; s2=peer/text{}`),
		row("tools", `{"tools":[{"tool":"echo","arguments":{"a":1}}]}`, `s1=peer/echo{"a":1}`),
		row("steps", `{"steps":[{"id":"x","tool":"echo","arguments":{"a":1}},{"id":"y","tool":"echo","arguments":{"b":"$x.a"},"after":["x"]}]}`, `x=peer/echo{"a":1}; y=peer/echo{"b":1}`),
		row("none", `[]`, ``),
		row("names", `[{"tool":"peer__echo","arguments":{}},{"tool":"peer:echo","arguments":{}},{"tool":"peer.echo","arguments":{}}]`, `s1=peer/echo{}; s2=peer/echo{}; s3=peer/echo{}`),
		row("texts of references", `{"steps":[{"id":"x","tool":"echo","arguments":{"a":[{"f":"v"}]}},{"id":"y","tool":"echo","arguments":{"whole":"$x","part":"$x.a.0.f","text":"<${x.a.0.f}>","price":"$2500"}}]}`,
			`x=peer/echo{"a":[{"f":"v"}]}; y=peer/echo{"whole":{"a":[{"f":"v"}]},"part":"v","text":"<v>","price":"$2500"}`),
		row("text parsed as JSON", `{"steps":[{"id":"x","tool":"json","arguments":{}},{"id":"y","tool":"echo","arguments":{"n":"$x.n"}}]}`, `x=peer/json{}; y=peer/echo{"n":9007199254740993}`),
		row("plain text", `{"steps":[{"id":"x","tool":"text","arguments":{}},{"id":"y","tool":"echo","arguments":{"n":"$x"}}]}`, `x=peer/text{}; y=peer/echo{"n":"plain"}`),
		row("unknown tool and what depends on it", `{"steps":[{"id":"x","tool":"nope","arguments":{}},{"id":"y","tool":"echo","arguments":{"n":"$x"}},{"id":"z","tool":"echo","arguments":{},"after":["y"]},{"id":"w","tool":"text","arguments":{}}]}`,
			`x=/nope{} unknown_tool; y=peer/echo{"n":"$x"} dependency_failed; z=peer/echo{} dependency_failed; w=peer/text{}`),
		row("cycle", `{"steps":[{"id":"x","tool":"echo","arguments":{"a":"$y"}},{"id":"y","tool":"echo","arguments":{},"after":["x"]},{"id":"z","tool":"text","arguments":{}}]}`,
			`x=peer/echo{"a":"$y"} cycle; y=peer/echo{} cycle; z=peer/text{}`),
		row("after nothing", `{"steps":[{"id":"x","tool":"echo","arguments":{},"after":["q"]}]}`, `x=peer/echo{} missing_reference`),
		row("missing path", `{"steps":[{"id":"x","tool":"echo","arguments":{}},{"id":"y","tool":"echo","arguments":{"a":"$x.b.c"}}]}`, `x=peer/echo{}; y=peer/echo{"a":"$x.b.c"} missing_reference`),
		row("arguments that the schema refuses", `[{"tool":"strict","arguments":{"n":"seven"}},{"tool":"text","arguments":{}}]`, `s1=peer/strict{"n":"seven"} invalid_arguments; s2=peer/text{}`),
		row("arguments that the schema refuses after substitution", `{"steps":[{"id":"x","tool":"text","arguments":{}},{"id":"y","tool":"strict","arguments":{"n":"$x"}}]}`, `x=peer/text{}; y=peer/strict{"n":"$x"} invalid_arguments`),
		row("failing tools", `{"steps":[{"id":"x","tool":"fails","arguments":{}},{"id":"y","tool":"breaks","arguments":{}},{"id":"z","tool":"text","arguments":{}},{"id":"d","tool":"echo","arguments":{"a":"$x"}}]}`,
			`x=peer/fails{} tool_error; y=peer/breaks{} tool_error; z=peer/text{}; d=peer/echo{"a":"$x"} dependency_failed`),
	}
	tools := []peerTool{
		echoTool("echo"), textTool("text", object, "plain"), textTool("json", object, `{"n": 9007199254740993}`),
		textTool("strict", `"inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, "ok"),
		{"fails", object, func(*peerCall) (string, string) {
			return `{"content":[{"type":"text","text":"it rained"}],"isError":true}`, ""
		}},
		{"breaks", object, func(*peerCall) (string, string) { return "", `{"code":-32000,"message":"it broke"}` }},
	}
	check := func(t *testing.T, a *router.AnswerContent, row [3]string, source string) {
		t.Helper()
		if got := brief(a); got != row[2] {
			t.Errorf("steps: got %s, want %s", got, row[2])
		}
		failed := slices.ContainsFunc(a.Steps, func(s router.StepResult) bool { return !s.Success })
		if a.Plan.Source != source || a.Plan.Rounds != 1 || len(a.Plan.Steps) != len(a.Steps) || a.Degraded != failed {
			t.Errorf("got degraded %v and a plan of source %s, %d rounds and %d steps, want %v, %s, 1 and %d", a.Degraded, a.Plan.Source, a.Plan.Rounds, len(a.Plan.Steps), failed, source, len(a.Steps))
		}
		for _, s := range a.Steps {
			if s.Success {
				continue
			}
			if !strings.Contains(a.Answer, s.Tool) {
				t.Errorf("answer: got %q, want it to name the failed step's tool %s", a.Answer, s.Tool)
			}
			if text := jsonText(s.Result); text != "Error: "+s.Error.Message {
				t.Errorf("result of failed step %s: got %s, want Error: %s", s.ID, s.Result, s.Error.Message)
			}
			if s.Error.Reason != reason.ToolError && s.Attempts != 0 {
				t.Errorf("attempts of step %s: got %d, want 0", s.ID, s.Attempts)
			}
		}
	}
	for _, row := range rows {
		t.Run(row[0], func(t *testing.T) {
			m := scripted(t, "All well.", row[1])
			r, p := withPeer(t, m, nil, tools...)
			c := r.dial("", nil)
			a := c.query(`{"query":"q"}`)
			check(t, a, row, "model")
			if a.Usage.Planner.Calls < 1 || a.Usage.Planner.Model != "stub" || a.Usage.Planner.InputTokens == 0 || a.Usage.Synthesizer.Calls != 1 {
				t.Errorf("usage: got %+v, want that of both", a.Usage)
			}
			first, asked := p.calls(), len(m.Requests())

			given := c.query(`{"query":"q","plan":` + row[1] + `}`)
			check(t, given, row, "given")
			if given.Usage.Planner.Calls != 0 || len(m.Requests()) != asked+1 {
				t.Errorf("requests to the model for a given plan: got %d, want 1 for the answer", len(m.Requests())-asked)
			}
			second := p.calls()[len(first):]

			returned, err := json.Marshal(a.Plan)
			if err != nil {
				t.Fatal(err)
			}
			check(t, c.query(`{"query":"q","plan":`+string(returned)+`}`), row, "given")
			wantSameCalls(t, first, second)
			wantSameCalls(t, first, p.calls()[len(first)+len(second):])

			before := len(p.calls())
			check(t, c.query(`{"query":"q","plan":{"answer":"","plan":`+string(returned)+`,"steps":[{"tool":"other"}]}}`), row, "given")
			wantSameCalls(t, first, p.calls()[before:])
		})
	}
}

func jsonText(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // then it is no text
	return s
}

var perCall = regexp.MustCompile(`"(traceparent|progressToken)":("[^"]*"|\d+),?`)

// wantSameCalls compares raw params of calls; steps that wait for nothing may come in any order.
func wantSameCalls(t *testing.T, first, second []string) {
	t.Helper()
	normal := func(calls []string) (out []string) {
		for _, c := range calls {
			out = append(out, perCall.ReplaceAllString(c, ""))
		}
		slices.Sort(out)
		return out
	}
	if a, b := normal(first), normal(second); !slices.Equal(a, b) {
		t.Errorf("calls: got %q, want the same as before, %q", b, a)
	}
}

// The returned plan, replayed as the client got it, makes the same calls byte for byte.
func TestReplay(t *testing.T) {
	const args = `{"html": "<a href=\"x\">&amp;</a>", "big":9007199254740993,"e":1.0e2,"u":"\u00e9\u2028é","nested":{"b":1, "a":[ ]},"text":"${x.v} & <b>"}`
	m := scripted(t, "ok", `{"steps":[{"id":"x","tool":"echo","arguments":{"v": "<i>"}},{"id":"y","tool":"echo","arguments":`+args+`}]}`)
	r, p := withPeer(t, m, nil, echoTool("echo"))
	c := r.dial("", nil)
	reply := c.call("process_query", `{"query":"q"}`, "")
	c.answerOf(reply)
	var content struct{ Plan json.RawMessage }
	if err := json.Unmarshal(c.result(reply).StructuredContent, &content); err != nil {
		t.Fatal(err)
	}
	first := p.calls()
	if len(first) != 2 {
		t.Fatalf("calls: got %q, want 2", first)
	}
	c.query(`{"query":"q","plan":` + string(content.Plan) + `}`)
	wantSameCalls(t, first, p.calls()[2:])
}

func TestDryRun(t *testing.T) {
	m := scripted(t, "never", `{"steps":[{"id":"x","tool":"echo","arguments":{"a":1}},{"id":"y","tool":"nope","arguments":{},"after":["x"]}],"more":true}`)
	r, p := withPeer(t, m, nil, echoTool("echo"))
	c := r.dial("", nil)
	reply := c.call("process_query", `{"query":"q","dry_run":true}`, `{"progressToken":7}`)
	a := c.answerOf(reply)
	if len(p.calls()) != 0 || len(a.Steps) != 0 || len(a.Plan.Steps) != 2 || a.Plan.Steps[1].After[0] != "x" || a.Degraded {
		t.Errorf("got %d calls, %d steps and the plan %+v, want the plan of two steps alone", len(p.calls()), len(a.Steps), a.Plan)
	}
	if !slices.ContainsFunc(a.Warnings, func(w string) bool { return strings.Contains(w, "nope") }) {
		t.Errorf("warnings: got %q, want one that names nope", a.Warnings)
	}
	wantReports(t, reports(t, reply, "7"), []at{{0.1, "Planning tool calls..."}, {1, "Complete!"}})
}

func TestServersOfQuery(t *testing.T) {
	one, two := newPeer(textTool("alpha", object, "from one")), newPeer(textTool("beta", object, "from two"))
	m := scripted(t, "ok", `[{"tool":"alpha","arguments":{}},{"tool":"beta","arguments":{}}]`)
	r := start(t, func(o *app.Options) {
		model(o, m)
		o.Config.Servers = append(o.Config.Servers, server("one", one.serve(t).URL), server("two", two.serve(t).URL))
	})
	c := r.dial("", nil)
	if got, want := brief(c.query(`{"query":"q","servers":["two"]}`)), `s1=/alpha{} unknown_tool; s2=two/beta{}`; got != want {
		t.Errorf("steps: got %s, want %s", got, want)
	}
	if asked := m.Requests()[0].Text; strings.Contains(asked, "alpha") || !strings.Contains(asked, "beta") {
		t.Errorf("prompt: got %q, want beta and not alpha in it", asked)
	}
	if len(one.calls()) > 0 {
		t.Errorf("calls of one: got %d, want none", len(one.calls()))
	}
	if got, want := brief(c.query(`{"query":"q","servers":[]}`)), `s1=one/alpha{}; s2=two/beta{}`; got != want {
		t.Errorf("without a restriction: got %s, want %s", got, want)
	}
}

func TestRounds(t *testing.T) {
	plans := []string{
		`{"steps":[{"id":"a","tool":"echo","arguments":{"v":"first outcome"}}],"more":true}`,
		`{"steps":[{"id":"b","tool":"echo","arguments":{"w":"$a.v"}}],"more":true}`,
		`{"steps":[{"id":"c","tool":"echo","arguments":{"x":"$b.w"}}],"more":true}`,
	}
	for _, row := range []struct {
		arguments string
		rounds    int
	}{{`{"query":"q"}`, 2}, {`{"query":"q","max_rounds":1}`, 1}, {`{"query":"q","max_rounds":3}`, 3}, {`{"query":"q","max_rounds":3.0}`, 3}} {
		t.Run(fmt.Sprint(row.rounds), func(t *testing.T) {
			m := scripted(t, "ok", plans...)
			r, _ := withPeer(t, m, nil, echoTool("echo"))
			a := r.dial("", nil).query(row.arguments)
			want := strings.Join([]string{`a=peer/echo{"v":"first outcome"}`, `b=peer/echo{"w":"first outcome"}`, `c=peer/echo{"x":"first outcome"}`}[:row.rounds], "; ")
			if got := brief(a); got != want || a.Plan.Rounds != row.rounds {
				t.Errorf("got %s in %d rounds, want %s in %d", got, a.Plan.Rounds, want, row.rounds)
			}
			if asked := m.Requests(); row.rounds > 1 && !strings.Contains(asked[1].Text, "first outcome") {
				t.Errorf("second planning prompt: got %q, want the outcome of the first round in it", asked[1].Text)
			}
		})
	}
}

// A later round may use the ids of an earlier one again, or none.
func TestIDsOfRounds(t *testing.T) {
	m := scripted(t, "ok", `{"steps":[{"id":"s1","tool":"echo","arguments":{"v":1}}],"more":true}`, `[{"tool":"echo","arguments":{"v":2}},{"tool":"echo","arguments":{"v":3}}]`)
	r, p := withPeer(t, m, nil, echoTool("echo"))
	a := r.dial("", nil).query(`{"query":"q"}`)
	ids := map[string]bool{}
	for _, s := range a.Steps {
		ids[s.ID] = s.Success
	}
	if len(a.Steps) != 3 || len(ids) != 3 || len(a.Plan.Steps) != 3 || len(p.calls()) != 3 {
		t.Errorf("got %s and %d calls, want three steps with ids of their own", brief(a), len(p.calls()))
	}
}

func TestContext(t *testing.T) {
	m := scripted(t, "ok", `[]`)
	r, _ := withPeer(t, m, nil, echoTool("echo"))
	c := r.dial("", nil)
	for _, context := range []string{`"We spoke of zebras."`, `[{"role":"user","content":"Tell me of zebras."},{"role":"assistant","content":"They are striped."}]`} {
		before := len(m.Requests())
		c.query(`{"query":"How many?","context":` + context + `}`)
		if asked := m.Requests()[before:]; len(asked) != 2 || !strings.Contains(asked[0].Text, "zebras") || !strings.Contains(asked[1].Text, "zebras") {
			t.Errorf("context %s: got %d prompts, want it in that of the planner and that of the synthesizer", context, len(asked))
		}
	}
}

func TestDetail(t *testing.T) {
	long := strings.Repeat("ä", 8<<10)
	m := scripted(t, "ok", `[{"tool":"long","arguments":{}},{"tool":"object","arguments":{}},{"tool":"short","arguments":{}}]`)
	r, _ := withPeer(t, m, nil, textTool("long", object, long), textTool("short", object, strings.Repeat("x", 8<<10)), peerTool{"object", object, func(*peerCall) (string, string) {
		return `{"content":[],"structuredContent":{"v":` + quote(long) + `}}`, ""
	}})
	c := r.dial("", nil)
	for _, row := range []struct {
		arguments string
		cut       bool
	}{{`{"query":"q"}`, true}, {`{"query":"q","detail":"brief"}`, true}, {`{"query":"q","detail":"full"}`, false}} {
		a := c.query(row.arguments)
		for i, s := range a.Steps[:2] {
			if s.Truncated != row.cut {
				t.Errorf("%s: truncated of %s: got %v, want %v", row.arguments, s.Tool, s.Truncated, row.cut)
			}
			if !row.cut {
				if want := []string{quote(long), `{"v":` + quote(long) + `}`}[i]; string(s.Result) != want {
					t.Errorf("%s: result of %s: got %d bytes, want all %d", row.arguments, s.Tool, len(s.Result), len(want))
				}
				continue
			}
			if text := jsonText(s.Result); len(text) > 8<<10 || len(text) < 8<<10-4 || !strings.HasPrefix([]string{long, `{"v":` + quote(long) + `}`}[i], text) {
				t.Errorf("%s: result of %s: got %d bytes, want the first 8192", row.arguments, s.Tool, len(text))
			}
		}
		if a.Steps[2].Truncated {
			t.Errorf("%s: a text of 8 KiB: got it truncated, want it whole", row.arguments)
		}
	}
}

// When most of the query's time is over the running steps are cancelled at their servers, and the model answers from what
// is there.
func TestQueryTimeout(t *testing.T) {
	for _, row := range []struct{ name, arguments string }{
		{"of the caller", `{"query":"q","timeout_seconds":3}`},
		{"configured", `{"query":"q"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			started, cancelled := make(chan string, 2), make(chan string, 2)
			m := scripted(t, "So far.", `{"steps":[{"id":"a","tool":"text","arguments":{}},{"id":"b","tool":"hang","arguments":{"n":1}},{"id":"c","tool":"text","arguments":{},"after":["b"]}]}`)
			r, p := withPeer(t, m, func(o *app.Options) {
				if row.name == "configured" {
					o.Config.Query.Timeout = 3 * time.Second
				}
			}, textTool("text", object, "plain truth"), hangTool("hang", started, cancelled))
			a := r.dial("", nil).query(row.arguments)
			if !a.Degraded || !strings.Contains(a.Answer, "hang") || len(a.Warnings) == 0 {
				t.Errorf("got degraded %v, warnings %q and %q, want an answer that names what failed", a.Degraded, a.Warnings, a.Answer)
			}
			if got, want := brief(a), `a=peer/text{}; b=peer/hang{"n":1} timeout; c=peer/text{} timeout`; got != want {
				t.Errorf("steps: got %s, want %s", got, want)
			}
			if a.Timings.Total < 2400 {
				t.Errorf("total: got %v ms, want 80 %% of 3000 at least", a.Timings.Total)
			}
			select {
			case <-cancelled:
			case <-time.After(deadline):
				t.Error("the running step was not cancelled at its server")
			}
			mcptest.Eventually(t, "notifications/cancelled", func() bool { return len(p.received("notifications/cancelled")) == 1 })
		})
	}
}

// A step that stays silent for its limit is cancelled; the others go on.
func TestToolTimeout(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*app.Options)
		want   string
	}{
		{"of execution", func(o *app.Options) { o.Config.Execution.ToolTimeout = 200 * time.Millisecond }, "Tool execution timed out after 0.2s"},
		{"of the server", func(o *app.Options) { o.Config.Servers[0].Timeout = time.Second }, "Tool execution timed out after 1s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			started, cancelled := make(chan string, 2), make(chan string, 2)
			m := scripted(t, "It is so.", `[{"tool":"hang","arguments":{}},{"tool":"lively","arguments":{}}]`)
			lively := peerTool{"lively", object, func(c *peerCall) (string, string) {
				for i := range 8 { // longer than the limit, never silent for it
					time.Sleep(50 * time.Millisecond)
					c.progress(fmt.Sprintf(`"progress":%d`, i))
				}
				return textResult("alive"), ""
			}}
			r, p := withPeer(t, m, row.change, hangTool("hang", started, cancelled), lively)
			a := r.dial("", nil).query(`{"query":"q"}`)
			if got, want := brief(a), `s1=peer/hang{} timeout; s2=peer/lively{}`; got != want {
				t.Errorf("steps: got %s, want %s", got, want)
			}
			if s := a.Steps[0]; s.Error.Message != row.want || jsonText(s.Result) != "Error: "+row.want || s.Attempts != 1 {
				t.Errorf("step: got %+v with %q, want %q after one attempt", s, s.Error, row.want)
			}
			if !a.Degraded || !strings.Contains(a.Answer, "It is so.") || !strings.Contains(a.Answer, row.want) {
				t.Errorf("answer: got %q, degraded %v, want the model's with the failure", a.Answer, a.Degraded)
			}
			<-cancelled
			mcptest.Eventually(t, "notifications/cancelled", func() bool { return len(p.received("notifications/cancelled")) == 1 })
		})
	}
}

// Images and links follow the answer, as they came and within bounds.
func TestBlocks(t *testing.T) {
	image := `{"type":"image","data":"aGk=","mimeType":"image/png","x":{"big":9007199254740993}}`
	link := `{"type":"resource_link","uri":"file:///a?b=1&c=<2>","name":"a"}`
	many := strings.Repeat(image+",", 40) + image
	m := scripted(t, "Look.", `[{"tool":"pictures","arguments":{}}]`, `[{"tool":"many","arguments":{}}]`, `[{"tool":"huge","arguments":{}},{"tool":"pictures","arguments":{}}]`)
	r, _ := withPeer(t, m, nil,
		peerTool{"pictures", object, func(*peerCall) (string, string) {
			return `{"content":[` + image + `,{"type":"text","text":"two pictures"},` + link + `]}`, ""
		}},
		peerTool{"many", object, func(*peerCall) (string, string) { return `{"content":[` + many + `]}`, "" }},
		peerTool{"huge", object, func(*peerCall) (string, string) {
			return `{"content":[{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("A", 9<<20) + `"}]}`, ""
		}})
	c := r.dial("", nil)
	blocks := func(left string) []json.RawMessage {
		t.Helper()
		reply := c.call("process_query", `{"query":"q"}`, "")
		if got := strings.Join(c.answerOf(reply).Warnings, ""); left == "" && got != "" || !strings.Contains(got, left) {
			t.Errorf("warnings: got %q, want %q in them", got, left)
		}
		return c.result(reply).Content[1:]
	}
	if got := blocks(""); len(got) != 2 || string(got[0]) != image || string(got[1]) != link {
		t.Errorf("blocks: got %s, want %s and %s", got, image, link)
	}
	if got := blocks("left out 9 images or links"); len(got) == 0 || len(got) > 32 {
		t.Errorf("41 images: got %d blocks, want 1 to 32", len(got))
	}
	if got := blocks("left out 1 images or links"); len(got) != 2 || string(got[0]) != image {
		t.Errorf("blocks beside one that is too large: got %d, want 2", len(got))
	}
	for _, q := range m.Requests() {
		if strings.Contains(q.Text, "aGk=") {
			t.Error("prompt: got the data of an image in it, want it left out")
		}
	}
}

// _meta goes with each step, without the progress token and the key, and with the trace context.
func TestMetaOfSteps(t *testing.T) {
	m := scripted(t, "ok", `[{"tool":"echo","arguments":{}},{"tool":"echo","arguments":{"n":2}}]`)
	r, p := withPeer(t, m, nil, echoTool("echo"))
	c := r.dial("", nil)
	a := c.answerOf(c.call("process_query", `{"query":"q"}`, `{"progressToken":"mine","api_key":"k3y","org.example/x":{"n":9007199254740993}}`))
	b := c.query(`{"query":"q"}`)
	for i, params := range p.calls() {
		var sent struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
		if err := json.Unmarshal([]byte(params), &sent); err != nil {
			t.Fatal(err)
		}
		trace := a.TraceID
		if i >= 2 {
			trace = b.TraceID
		}
		parent := jsonText(sent.Meta["traceparent"])
		if !regexp.MustCompile(`^00-` + trace + `-[0-9a-f]{16}-0[01]$`).MatchString(parent) {
			t.Errorf("traceparent of call %d: got %s, want one of trace %s", i, parent, trace)
		}
		want := ""
		if i < 2 {
			want = `{"n":9007199254740993}`
		}
		if got := string(sent.Meta["org.example/x"]); got != want {
			t.Errorf("_meta of call %d: got %s for org.example/x, want %s", i, got, want)
		}
		if token := string(sent.Meta["progressToken"]); token == "" || strings.Contains(token, "mine") || sent.Meta["api_key"] != nil {
			t.Errorf("_meta of call %d: got %s, want a progress token of the router's own and no key", i, params)
		}
	}
}

func TestQueryLog(t *testing.T) {
	r, _ := withPeer(t, scripted(t, "ok", `[{"tool":"echo","arguments":{}},{"tool":"nope","arguments":{}}]`), nil, echoTool("echo"))
	c := r.dial("", nil)
	a := c.query(`{"query":"größe"}`)
	line := r.logs.want(t, "Query processed in ")
	if line == nil {
		return
	}
	if message := line["msg"].(string); !regexp.MustCompile(`^Query processed in \d+\.\d\ds$`).MatchString(message) {
		t.Errorf("message: got %q, want seconds with two digits", message)
	}
	if line["query_length"] != 5.0 || line["tools_called"] != 1.0 || line["duration_ms"] == nil || line["trace_id"] != a.TraceID || line["outcome"] != "degraded" {
		t.Errorf("attributes: got %v, want query_length 5, tools_called 1, duration_ms, the trace_id and the outcome", line)
	}
	c.refused("process_query", `{"query":""}`)
	if line := r.logs.want(t, "Query failed: "); line["outcome"] != "refused" || line["trace_id"] == nil {
		t.Errorf("a refused query: got %v, want the outcome and a trace_id", line)
	}
	if n := strings.Count(r.logs.String(), `"msg":"Query `); n != 2 {
		t.Errorf("got %d lines, want one for each query", n)
	}
}

// The embedded default answers without any model.
func TestWithoutModel(t *testing.T) {
	r := start(t, func(o *app.Options) { o.Demo = true })
	c := r.dial("", nil)
	a := c.query(`{"query":"What's the latest AI news and what's 15% of $2500?"}`)
	if a.Degraded || a.Plan.Source != "rules" || !strings.Contains(a.Answer, "375") || !strings.Contains(brief(a), "search/web_search") {
		t.Errorf("got %q by %s, want news and 375", a.Answer, brief(a))
	}
	a = c.query(`{"query":"qwertz uiop asdf"}`)
	if len(a.Steps) != 0 || a.Answer == "" {
		t.Errorf("a question that no tool fits: got %s and %q, want no step and a note", brief(a), a.Answer)
	}
}
