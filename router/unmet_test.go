package router_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// Every part of the question that no successful step serves is in unmet, and the answer is degraded then.
func TestUnmet(t *testing.T) {
	const hotel = `{"open":[{"tool":"hotel","arguments":{}}],"unmet":[{"text":"a room","reason":"missing_argument","tool":"hotel","missing":["city"]}],"steps":[{"id":"e","tool":"echo"}]}`
	for name, row := range map[string]struct {
		plans []string
		q     router.Query
		want  string
	}{
		"all done":              {[]string{byRules + `[{"tool":"echo"}]`}, router.Query{}, `[]`},
		"nothing to do":         {[]string{byRules + `[]`}, router.Query{}, `[]`},
		"said by the planner":   {[]string{byRules + `{"steps":[{"tool":"echo"}],"unmet":[{"text":"sing","reason":"no_tool"}]}`}, router.Query{}, `[{"text":"sing","reason":"no_tool"}]`},
		"said by a model":       {[]string{`{"steps":[{"tool":"echo"}],"unmet":["sing","sing"," "]}`}, router.Query{}, `[{"text":"sing","reason":"no_tool"}]`},
		"a model without steps": {[]string{`{"steps":[],"unmet":["sing"]}`}, router.Query{}, `[{"text":"sing","reason":"no_tool"}]`},
		"said too early":        {[]string{`{"steps":[{"tool":"echo"}],"unmet":["sing","dance"],"more":true}`, `{"steps":[],"unmet":["dance"]}`}, router.Query{}, `[{"text":"dance","reason":"no_tool"}]`},
		"said, and no more":     {[]string{`{"steps":[{"tool":"echo"}],"unmet":["sing"],"more":"false"}`}, router.Query{}, `[{"text":"sing","reason":"no_tool"}]`},
		"said, and more":        {[]string{`{"steps":[{"tool":"echo"}],"unmet":["sing"],"more":"true"}`, `[]`}, router.Query{}, `[]`},
		"no texts":              {[]string{`{"steps":[{"tool":"echo"}],"unmet":[{"text":"sing"}]}`}, router.Query{}, `[]`},
		"a dry run":             {[]string{byRules + `{"steps":[{"tool":"echo"}],"unmet":[{"text":"sing","reason":"no_tool"}]}`}, router.Query{DryRun: true}, `[{"text":"sing","reason":"no_tool"}]`},
		"failed":                {[]string{`[{"tool":"fails"},{"tool":"echo"}]`, `[]`}, router.Query{}, `[{"text":"fails","reason":"failed","tool":"fails"}]`},
		"one of several calls":  {nil, router.Query{Plan: json.RawMessage(`[{"tool":"note","arguments":{"badly":true}},{"tool":"note","arguments":{"v":1}}]`)}, `[{"text":"note {\"badly\":true}","reason":"failed","tool":"note"}]`},
		"made good later":       {[]string{`[{"tool":"note","arguments":{"badly":true}}]`, `[{"tool":"note","arguments":{"badly":false}}]`}, router.Query{Approved: true}, `[]`},
		"one made good later":   {[]string{`[{"tool":"note","arguments":{"badly":true}},{"tool":"note","arguments":{"badly":true}}]`, `[{"tool":"note","arguments":{"badly":false}}]`}, router.Query{Approved: true}, `[{"text":"note {\"badly\":true}","reason":"failed","tool":"note"}]`},
		"needs approval, chain": {[]string{byRules + `{"steps":[{"id":"w","tool":"wipe"},{"id":"d","tool":"echo","after":["w"]}]}`}, router.Query{}, `[{"text":"wipe","reason":"needs_approval","tool":"wipe"},{"text":"echo","reason":"needs_approval","tool":"echo"}]`},
		"declined":              {[]string{byRules + `[{"tool":"wipe"}]`}, router.Query{Elicit: (&asked{err: router.ErrDeclined}).elicit}, `[{"text":"q","reason":"declined","tool":"wipe"}]`},
		"lacks an argument":     {[]string{`[{"tool":"hotel"}]`}, router.Query{}, `[{"text":"q","reason":"missing_argument","tool":"hotel","missing":["city"]}]`},
		"said to lack it":       {[]string{`{"steps":[{"tool":"echo"}],"missing":[{"tool":"peer__hotel","names":["city"," "]}]}`}, router.Query{}, `[{"text":"q","reason":"missing_argument","tool":"hotel","missing":["city"]}]`},
		"said to lack them":     {[]string{`{"steps":[],"unmet":["sing"],"missing":[{"tool":"hotel","names":"city"},{"tool":"nope","names":["x","y"]}]}`}, router.Query{}, `[{"text":"sing","reason":"no_tool"},{"text":"hotel","reason":"missing_argument","tool":"hotel","missing":["city"]},{"text":"nope","reason":"missing_argument","missing":["x","y"]}]`},
		"said to lack nothing":  {[]string{`{"steps":[{"tool":"echo"}],"missing":[{"tool":"hotel"},{"names":["x"]},7,{"tool":"hotel","names":[{}]}]}`}, router.Query{}, `[]`},
		"lacking too early":     {[]string{`{"steps":[{"tool":"echo"}],"missing":[{"tool":"hotel","names":["city"]}],"more":"true"}`, `[]`}, router.Query{}, `[]`},
		"open":                  {[]string{byRules + hotel}, router.Query{}, `[{"text":"a room","reason":"missing_argument","tool":"hotel","missing":["city"]}]`},
		"open, and given":       {[]string{byRules + hotel}, router.Query{Elicit: (&asked{content: `{"city":"Oslo"}`}).elicit}, `[]`},
		"open, and declined":    {[]string{byRules + hotel}, router.Query{Elicit: (&asked{err: router.ErrDeclined}).elicit}, `[{"text":"a room","reason":"declined","tool":"hotel","missing":["city"]}]`},
		"given, unknown":        {nil, router.Query{Plan: json.RawMessage(`[{"tool":"nope"}]`)}, `[{"text":"q","reason":"failed","tool":"nope"}]`},
	} {
		k := newKit(t, nil, row.plans...)
		r := k.query(row.q)
		got, err := json.Marshal(r.Content(false).Unmet)
		if err != nil || string(got) != row.want || r.Answer.Degraded != (row.want != "[]") {
			t.Errorf("%s: got %s and degraded %v after %s, want %s", name, got, r.Answer.Degraded, brief(r), row.want)
		}
	}
}

// A command that the plan of a model leaves out is unmet, if some tool does it and nothing else may serve it.
func TestUnmet_Omitted(t *testing.T) {
	const wiped = `[{"text":"wipe the disk","reason":"failed"}]`
	for _, row := range []struct{ question, plan, want string }{
		{"Echo 5 and then wipe the disk.", `[{"tool":"echo","arguments":{"v":5}}]`, wiped},
		{"Please wipe the disk!", `[]`, wiped},
		{"Write a note about tea, and wipe the disk.", `[{"tool":"note","arguments":{"v":"tea"}}]`, wiped},
		{"Echo 5 and then wipe the disk.", `{"steps":[{"tool":"echo"}],"unmet":["wiping the disk"]}`, `[{"text":"wiping the disk","reason":"no_tool"}]`},
		{"Echo 5 and then wipe the disk.", `[{"tool":"echo"},{"tool":"wipe"}]`, `[]`},
		{"Echo 5 and then wipe the disk.", `[{"tool":"echo"},{"tool":"note","arguments":{"v":"wipe it"}}]`, `[]`},
		{"Echo 5, but do not wipe the disk.", `[{"tool":"echo"}]`, `[]`},
		{"Echo 5. Should I wipe the disk?", `[{"tool":"echo"}]`, `[]`},
		{"Echo 5 and then wipe the table.", `[{"tool":"echo"}]`, `[]`}, // no tool is about tables
		{"Echo 5 and write me a poem.", `[{"tool":"echo"}]`, `[]`},     // the answer may be one
	} {
		k := newKit(t, unconfirmed, row.plan, `[]`)
		r := k.query(router.Query{Text: row.question})
		got, err := json.Marshal(r.Content(false).Unmet)
		if err != nil || string(got) != row.want || r.Answer.Degraded != (row.want != "[]") {
			t.Errorf("%s: got %s after %s, want %s", row.question, got, brief(r), row.want)
		}
	}
	k := newKit(t, unconfirmed, `[{"tool":"fails"}]`, `[{"tool":"wipe"}]`)
	if r := k.query(router.Query{Text: "Fail and wipe the disk."}); slices.ContainsFunc(r.Unmet, func(u plan.Unmet) bool { return u.Tool == "" }) {
		t.Errorf("got %v, want nothing unmet that a later round has done", r.Unmet)
	}
}

// What can be done here is told from the catalog, also to a model that calls no tool.
func TestAbout(t *testing.T) {
	want := fmt.Sprintf("I can use %d tools of 1 server:\n- peer (%[1]d tools): ", len(tools))
	k := newKit(t, nil, byRules+`{"about":true,"steps":[]}`)
	r := k.query(router.Query{Text: "what can you do?"})
	if !strings.Contains(r.Answer.Text, want) || !strings.Contains(r.Answer.Text, "echo – Returns its arguments") || len(k.called()) > 0 || r.Answer.Degraded {
		t.Errorf("got %q and the calls %q, want %q and no call", r.Answer.Text, k.called(), want)
	}
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprintf(`{"name":"fly_%d","description":"%s",%s}`, i, strings.Repeat("Flies. ", 50), anything))
	}
	many := &mcptest.Server{}
	many.SetTools("[" + strings.Join(names, ",") + "]")
	k = newKit(t, func(_ *router.Options, o *downstream.Options) {
		o.Servers = append(o.Servers, downstream.ServerConfig{Name: "many", Type: downstream.TransportStdio})
		o.Access.Embedded["many"] = func(context.Context) (io.ReadWriteCloser, error) { return dial(many), nil }
	}, byRules+`{"about":true,"steps":[]}`)
	text := k.query(router.Query{Text: "what can you do?"}).Answer.Text
	for _, tool := range []string{"echo – Returns its arguments; note – Writes a note; ", "; hotel; stay\n", "- many (500 tools): fly_0", " others\nAsk in your own words"} {
		if !strings.Contains(text, tool) || len(text) > 5<<10 {
			t.Errorf("got %q, want %q in at most 5 KiB", text, tool)
		}
	}
	k = newKit(t, nil, `[]`)
	r = k.query(router.Query{Text: "what can you do?"})
	requests := k.model.Requests()
	if told := requests[len(requests)-1].Text; !strings.Contains(told, "| I can use ") || r.Answer.Text != "All well." || r.Answer.Degraded {
		t.Errorf("got %q of a model that was shown %q, want its answer from the catalog", r.Answer.Text, told)
	}
}

// Each part of the question is told with the failure of its own step, also where several steps call the same tool.
func TestFailuresOfOneTool(t *testing.T) {
	k := newKit(t, nil)
	r := k.query(router.Query{Plan: json.RawMessage(`[{"tool":"hotel","arguments":{"city":7}},{"tool":"hotel","arguments":{}},{"tool":"hotel","arguments":{"city":"Oslo","class":"no"}}]`)})
	want := `- Not done: hotel {"city":7}, because it failed: arguments.city: got number, want string.
- Not done: "hotel", because it needs city.
- Not done: hotel {"city":"Oslo","class":"no"}, because it failed: arguments.class: `
	if got := r.Answer.Text; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want it to begin with %q", got, want)
	}
}

// TestFailureTexts: whatever a step fails for, its line names the tool once and reads as a sentence, in an answer and in
// the prompt for one.
func TestFailureTexts(t *testing.T) {
	const one = `[{"tool":"echo"},{"tool":"note","arguments":{"v":1}}]`
	declines := func(context.Context, string, []byte) ([]byte, error) { return nil, router.ErrDeclined }
	rows := map[string]struct {
		plan  string // one by default
		query router.Query
		want  string // a part of the answer
	}{
		reason.UnknownTool:      {plan: `[{"tool":"echo"},{"tool":"nothing"}]`, want: "nothing"},
		reason.InvalidArguments: {plan: `[{"tool":"echo"},{"tool":"hotel","arguments":{"city":1}}]`, want: "got number, want string"},
		"missing":               {plan: `[{"tool":"echo"},{"tool":"hotel"}]`, want: "city"},
		reason.MissingReference: {plan: `{"steps":[{"id":"a","tool":"echo"},{"id":"b","tool":"note","arguments":{"v":"$a.x"}}]}`, want: "$a.x"},
		reason.Cycle:            {plan: `{"steps":[{"id":"a","tool":"echo"},{"id":"b","tool":"note","after":["b"]}]}`, want: "the step waits for itself"},
		reason.DuplicateID:      {plan: `{"steps":[{"id":"a","tool":"echo"},{"id":"a","tool":"note"}]}`, want: "is used by an earlier step"},
		reason.DependencyFailed: {plan: `{"steps":[{"id":"a","tool":"fails"},{"id":"b","tool":"note","after":["a"]}]}`, want: "Step a, which this step needs, failed"},
		reason.NeedsApproval:    {plan: `[{"tool":"echo"},{"tool":"wipe","arguments":{"v":1}}]`, want: "needs your approval"},
		reason.Declined:         {plan: `[{"tool":"echo"},{"tool":"wipe","arguments":{"v":1}}]`, query: router.Query{Elicit: declines}, want: "the user declined"},
		reason.ToolError:        {plan: `[{"tool":"echo"},{"tool":"fails","arguments":{"v":1}}]`, want: "it rained"},
		"a loop":                {plan: `{"steps":[{"id":"a","tool":"echo","arguments":{"l":[1,2]}},{"id":"b","tool":"fails","each":"$a.l","arguments":{"v":"$item"}}]}`, want: "it rained"},
		"part of a loop":        {plan: `{"steps":[{"id":"a","tool":"echo","arguments":{"l":[true,1]}},{"id":"b","tool":"note","each":"$a.l","arguments":{"badly":"$item"}}]}`, want: "for 1 of 2 elements"},
	}
	for _, why := range []string{reason.Timeout, reason.Unavailable, reason.Disconnected, reason.OutcomeUnknown, reason.TooLarge,
		reason.Overloaded, reason.Unauthorized, reason.Quarantined, reason.Protocol} {
		rows[why] = struct {
			plan  string
			query router.Query
			want  string
		}{want: "It went wrong."}
	}
	for name, row := range rows {
		for _, shown := range []string{"to the user", "to the writer"} {
			t.Run(name+" "+shown, func(t *testing.T) {
				plans := []string{`[]`}
				if shown == "to the user" {
					plans = nil
				}
				k := newKit(t, func(o *router.Options, d *downstream.Options) {
					if row.want == "It went wrong." {
						o.Execution.ConfirmWrites = never
						o.Calls = failsOnce("note", &downstream.Failure{Server: "peer", Reason: name, Message: row.want})
					} else if o.Execution.ConfirmWrites = downstream.ConfirmAlways; name != reason.NeedsApproval && name != reason.Declined {
						unconfirmed(o, d)
					}
				}, plans...)
				row.query.Plan, row.query.Text = json.RawMessage(cmp.Or(row.plan, one)), "Do all that."
				text := k.query(row.query).Answer.Text
				if plans != nil {
					requests := k.model.Requests()
					text = requests[len(requests)-1].Text
				}
				if !strings.Contains(text, strings.TrimSuffix(row.want, ".")) {
					t.Errorf("got %s, want %q", text, row.want)
				}
				for line := range strings.Lines(text) {
					for _, tool := range []string{"note", "hotel", "fails", "wipe"} {
						if strings.Count(line, tool) > 1 && !strings.Contains(line, "give the plan") {
							t.Errorf("got %q, want the tool once", line)
						}
					}
					for _, odd := range []string{".:", "..", ".,", ": :", ".;", "::", ",,"} {
						if strings.Contains(strings.ReplaceAll(line, "...", ""), odd) {
							t.Errorf("got %q with %q", line, odd)
						}
					}
				}
			})
		}
	}
}

// A model that declines to plan has the last word, and the answer says that it declined.
func TestModelDeclines(t *testing.T) {
	refusal := llmtest.Reply{
		Raw: `{"choices":[{"message":{"content":null,"refusal":"I cannot help."},"finish_reason":"stop"}]}`, RawType: "application/json",
	}
	for name, row := range map[string]struct {
		plans []llmtest.Reply
		says  string
	}{
		"in words":             {[]llmtest.Reply{refusal}, "The model declined: I cannot help."},
		"a filter":             {[]llmtest.Reply{{Text: "x", Finish: "content_filter"}}, "The model declined: "},
		"an error":             {[]llmtest.Reply{{Status: 400, Code: "content_policy_violation", Text: "no"}}, "The model declined: no"},
		"instead of repairing": {[]llmtest.Reply{{Text: `[{"tool":"nope"},{"tool":"note"}]`}, refusal}, "The model declined: I cannot help."},
	} {
		for _, answer := range []llmtest.Reply{{Text: "All well."}, refusal} {
			k := newKit(t, nil, `[]`)
			k.model.Reset()
			k.model.When(llmtest.Structured, row.plans...)
			k.model.Answer(answer)
			r := k.query(router.Query{Text: "find a hotel room in Oslo"})
			if len(r.Plan.Steps) > 0 || r.Plan.Source != "model" || len(r.Unmet) != 1 || !r.Answer.Degraded || len(k.called()) > 0 {
				t.Errorf("%s: got %s by %s and %+v, want no plan and that it is unmet", name, brief(r), r.Plan.Source, r.Unmet)
			}
			if got := r.Answer.Text; !strings.Contains(got, row.says) || !strings.Contains(got, `Not done: "find a hotel room in Oslo"`) {
				t.Errorf("%s: got the answer %q, want %q in it", name, got, row.says)
			}
		}
	}
}

// A model that declines in a later round has the last word, too; what was done before stands.
func TestModelDeclinesLater(t *testing.T) {
	k := newKit(t, nil, `[]`)
	k.model.Reset()
	k.model.When(llmtest.Structured, llmtest.Reply{Text: `{"steps":[{"id":"a","tool":"echo","arguments":{}}],"more":true}`}, llmtest.Reply{Text: "x", Finish: "content_filter"})
	k.model.Answer(llmtest.Reply{Text: "All well [a]."})
	r := k.query(router.Query{Text: "wipe it"})
	if got := r.Answer.Text; brief(r) != `a=echo{}` || !r.Answer.Degraded || !strings.Contains(got, "The model declined: ") || !strings.Contains(got, `Not done: "wipe it"`) {
		t.Errorf("got %s and %q, want the read and that the model declined", brief(r), got)
	}
}

// What still runs after four fifths of the time is cut, so that there is time for the answer.
func TestStepsAreCut(t *testing.T) {
	k := newKit(t, func(o *router.Options, _ *downstream.Options) { o.Execution.ConfirmWrites = always })
	r := k.query(router.Query{Plan: json.RawMessage(`{"steps":[{"id":"a","tool":"hang"},{"id":"b","tool":"echo"}]}`), Timeout: 2 * time.Second})
	if got, want := brief(r), `a=hang{} timeout; b=echo{}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if want := "after 80 % of the query's 2s"; !strings.Contains(strings.Join(r.Warnings, "\n"), want) {
		t.Errorf("got warnings %q, want %q", r.Warnings, want)
	}
	var left time.Duration
	user := func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		deadline, _ := ctx.Deadline()
		left = time.Until(deadline)
		return nil, nil
	}
	k.query(router.Query{Plan: json.RawMessage(`[{"tool":"wipe"}]`), Timeout: 100 * time.Second, Elicit: user})
	if most := 48 * time.Second; left <= 0 || left > most {
		t.Errorf("got %v for the user, want at most three fifths of four fifths of 100 s, %v", left, most)
	}
}

// Progress goes on in a round that was not foreseen.
func TestProgressOfReplannedRound(t *testing.T) {
	k := newKit(t, nil, `[{"tool":"works","arguments":{"fail":1}}]`, `[{"tool":"works","arguments":{"v":2}}]`)
	var values []float64
	steps := 0
	report := router.NewReporter(func(value float64, message string) {
		values = append(values, value)
		if strings.HasPrefix(message, "[works]") {
			steps++
		}
	})
	defer report.Close()
	r := k.query(router.Query{Report: report})
	if got, want := brief(r), `s1=works{"fail":1} tool_error; s2=works{"v":2}`; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	for i := range values[1:] {
		if values[i+1] <= values[i] {
			t.Errorf("got %v, want values that increase", values)
		}
	}
	if steps != 6 {
		t.Errorf("got %d reports of steps in %v, want three of each round", steps, values)
	}
}
