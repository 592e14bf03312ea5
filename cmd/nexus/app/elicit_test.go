package app_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
)

const bookSchema = `"inputSchema":{"type":"object","properties":{"city":{"type":"string","description":"Where to\nstay","minLength":2},` +
	`"nights":{"type":"integer","minimum":1,"maximum":30},"class":{"enum":["low","high"]},"tags":{"type":"array"},"late":{"type":["boolean","null"]}},` +
	`"required":["city","nights","class"]},"description":"Find a hotel room in a city"` + readOnly

// Required arguments that a plan lacks are asked of the user by a form, whoever planned; without them the step fails
// with a reason that says so, and the others run.
func TestMissingArguments(t *testing.T) {
	const elicitation = `{"elicitation":{}}`
	const both = `{"steps":[{"id":"a","tool":"hotel","arguments":{"nights":2}},{"id":"b","tool":"echo","arguments":{"c":"$a.city"}},{"id":"c","tool":"echo","arguments":{"v":1}}]}`
	for _, row := range []struct {
		name, caps, plan, arguments, reply string
		want, message                      string
		asked, planned                     int
	}{
		{name: "given", caps: elicitation, plan: both, reply: `{"action":"accept","content":{"city":"Oslo","class":"high","tool":"wipe"}}`, asked: 1, planned: 1,
			want: `a=peer/hotel{"class":"high","city":"Oslo","nights":2}; b=peer/echo{"c":"Oslo"}; c=peer/echo{"v":1}`},
		{name: "declined", caps: elicitation, plan: both, reply: `{"action":"decline"}`, asked: 1, planned: 1, message: "the user declined, and the tool needs city and class",
			want: `a=peer/hotel{"nights":2} declined; b=peer/echo{"c":"$a.city"} dependency_failed; c=peer/echo{"v":1}`},
		{name: "given in part", caps: elicitation, plan: both, reply: `{"action":"accept","content":{"city":"Oslo","class":null}}`, asked: 1, planned: 1, message: "class",
			want: `a=peer/hotel{"class":null,"city":"Oslo","nights":2} invalid_arguments; b=peer/echo{"c":"$a.city"} dependency_failed; c=peer/echo{"v":1}`},
		{name: "cannot be asked", caps: `{}`, plan: both, planned: 2, message: "city",
			want: `a=peer/hotel{"nights":2} invalid_arguments; b=peer/echo{"c":"$a.city"} dependency_failed; c=peer/echo{"v":1}`},
		{name: "given plan", caps: elicitation, arguments: `,"plan":[{"tool":"hotel","arguments":{"city":"Bonn","nights":1}}]`, asked: 1,
			reply: `{"action":"accept","content":{"class":"low"}}`, want: `s1=peer/hotel{"class":"low","city":"Bonn","nights":1}`},
	} {
		inEras(t, row.name, func(t *testing.T, dial func(r *running, caps string) *client) {
			m := scripted(t, "All well.", row.plan)
			r, p := withPeer(t, m, nil, peerTool{"hotel", bookSchema, echoTool("").call}, echoTool("echo"))
			c := dial(r, row.caps)
			asked := make(chan message, 9)
			c.answer = func(m message) string { asked <- m; return row.reply }
			a := c.query(`{"query":"q"` + row.arguments + `}`)
			if got := brief(a); got != row.want {
				t.Errorf("steps: got %s, want %s", got, row.want)
			}
			if len(asked) != row.asked || a.Usage.Planner.Calls != row.planned {
				t.Fatalf("got %d questions to the user and %d to the planner, want %d and %d", len(asked), a.Usage.Planner.Calls, row.asked, row.planned)
			}
			if row.message != "" && !strings.Contains(a.Steps[0].Error.Message, row.message) {
				t.Errorf("error: got %q, want %q in it", a.Steps[0].Error.Message, row.message)
			}
			if row.name != "given" {
				return
			}
			var params struct {
				Message string          `json:"message"`
				Schema  json.RawMessage `json:"requestedSchema"`
			}
			question := <-asked
			if err := json.Unmarshal(question.Params, &params); err != nil || question.Method != "elicitation/create" {
				t.Fatalf("got %s, want elicitation/create", question.Raw)
			}
			const form = `{"type":"object","properties":{"city":{"type":"string","description":"Where to stay","minLength":2},"class":{"type":"string","enum":["low","high"]}},"required":["city","class"]}`
			if string(params.Schema) != form || !strings.Contains(params.Message, "hotel of server peer needs city and class") || !strings.Contains(params.Message, `{"nights":2}`) {
				t.Errorf("got the form %s and the message %q", params.Schema, params.Message)
			}
			before := len(p.calls())
			plan, err := json.Marshal(a.Plan)
			if err != nil {
				t.Fatal(err)
			}
			if c.query(`{"query":"q","plan":` + string(plan) + `}`); len(asked) > 0 {
				t.Error("the plan was replayed with another question, want what was given in it")
			}
			wantSameCalls(t, p.calls()[:before], p.calls()[before:])
		})
	}
}

// Without a model the rules ask as well; where nobody can be asked no tool is called.
func TestMissingArgumentsByRules(t *testing.T) {
	r, p := withPeer(t, nil, nil, peerTool{"get_weather", `"description":"Get the weather forecast for a city","inputSchema":{"type":"object","properties":{"city":{"type":"string","description":"The city"},"date":{"type":"string","format":"date"}},"required":["city"]}`, echoTool("").call})
	c := r.dial(`{"elicitation":{}}`, nil)
	c.answer = func(message) string { return `{"action":"accept","content":{"city":"Oslo"}}` }
	a := c.query(`{"query":"what will the weather be like tomorrow?"}`)
	if len(a.Steps) != 1 || !a.Steps[0].Success || !strings.Contains(string(a.Steps[0].Arguments), `"city":"Oslo"`) || a.Plan.Source != "rules" {
		t.Errorf("got %s, want one call for Oslo", brief(a))
	}
	c.answer = func(message) string { return `{"action":"decline"}` }
	if a := c.query(`{"query":"what will the weather be like tomorrow?"}`); len(a.Steps) != 1 || a.Steps[0].Success || a.Steps[0].Error.Reason != "declined" || !strings.Contains(a.Answer, "get_weather") {
		t.Errorf("got %s and %q, want a step that was declined", brief(a), a.Answer)
	}
	if a := r.dial("{}", nil).query(`{"query":"what will the weather be like tomorrow?"}`); len(a.Steps) != 0 || !strings.Contains(a.Answer, "`get_weather` (needs `city`)") {
		t.Errorf("got %s and %q, want no step and what is missing", brief(a), a.Answer)
	}
	if n := len(p.calls()); n != 1 {
		t.Errorf("got %d calls, want one", n)
	}
}

// A user who does not answer costs the steps that need him and not the query, and is asked for no more arguments.
func TestNobodyAnswers(t *testing.T) {
	for name, row := range map[string]struct{ plan, want string }{
		"for arguments": {`[{"tool":"hotel","arguments":{}},{"tool":"hotel","arguments":{"nights":2}},{"tool":"echo","arguments":{"v":1}}]`,
			`s1=peer/hotel{} declined; s2=peer/hotel{"nights":2} invalid_arguments; s3=peer/echo{"v":1}`},
		"to confirm": {`[{"tool":"wipe","arguments":{}},{"tool":"echo","arguments":{"v":1}}]`, `s1=peer/wipe{} needs_approval; s2=peer/echo{"v":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := withPeer(t, scripted(t, "All well.", row.plan), func(o *app.Options) { o.Config.Query.Timeout = 4 * time.Second },
				peerTool{"hotel", bookSchema, echoTool("").call}, textTool("wipe", object+`,"annotations":{"destructiveHint":true}`, "wiped"), echoTool("echo"))
			c := r.dial(`{"elicitation":{}}`, nil)
			silent, asked := make(chan struct{}), make(chan message, 9)
			defer close(silent)
			c.answer = func(m message) string { asked <- m; <-silent; return `{"action":"cancel"}` }
			a := c.query(`{"query":"q"}`)
			if brief(a) != row.want || !strings.Contains(a.Steps[0].Error.Message, "nobody answered in time") || !a.Degraded {
				t.Errorf("got %s, %q and degraded %v, want %s, that nobody answered, and true", brief(a), a.Steps[0].Error.Message, a.Degraded, row.want)
			}
			if len(asked) != 1 {
				t.Errorf("got %d questions, want 1", len(asked))
			}
		})
	}
}
