package planner_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/tests/toolset"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// clock always shows the same time.
func clock() time.Time {
	return time.Date(2026, time.March, 2, 15, 4, 59, 0, time.FixedZone("CET", 60*60))
}

// body is a request as an endpoint gets it.
type body struct {
	Messages       []llm.Message   `json:"messages"`
	ResponseFormat json.RawMessage `json:"response_format"`
}

func read(t *testing.T, r llmtest.Request) (b body) {
	t.Helper()
	if err := json.Unmarshal(r.Body, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestExampleIsAPlan: the example that the model is shown would run, in the form for either kind of endpoint.
func TestExampleIsAPlan(t *testing.T) {
	for _, refused := range []string{"", "strict"} {
		f := connect(t, nil)
		f.Answer(llmtest.Reply{Text: `[]`, Refuse: []string{refused}})
		if _, err := f.planner.Plan(t.Context(), planner.Request{Query: "q", Tools: tools()}); err != nil {
			t.Fatal(err)
		}
		requests := f.Requests()
		system := requests[len(requests)-1].System
		made, err := plan.Parse(system[strings.LastIndex(system, "\n")+1:])
		if err != nil || len(made.Steps) != 3 || made.Steps[1].Each == "" || made.Steps[1].When == "" || made.Steps[1].Pick == "" || len(made.Unmet) != 1 {
			t.Fatalf("refused %q: got %+v, %v, want three steps, the second with a loop, and an unmet part", refused, made, err)
		}
		example := toolset.List{
			{Name: "parcels", Server: "s", Tool: "parcels", InputSchema: takes("to"), OutputSchema: json.RawMessage(
				`{"type":"object","properties":{"total":{"type":"integer"},"parcels":{"type":"array","items":{"type":"object"}}}}`)},
			{Name: "track", Server: "s", Tool: "track", InputSchema: takes("id")},
			{Name: "message", Server: "s", Tool: "message", InputSchema: takes("to", "text")},
		}
		if problems := plan.Check(&made, plan.NewValidator(), example.Lookup, nil); len(problems) > 0 {
			t.Errorf("refused %q: got problems %+v, want none", refused, problems)
		}
	}
}

// checkExamples checks that what a prompt shows of a plan conforms to the schema that is sent: whole plans, and members
// with their values.
func checkExamples(t *testing.T, r llmtest.Request) {
	t.Helper()
	var format struct {
		Schema struct{ Schema json.RawMessage } `json:"json_schema"`
	}
	if err := json.Unmarshal(read(t, r).ResponseFormat, &format); err != nil {
		t.Fatal(err)
	}
	type object struct {
		Properties map[string]json.RawMessage
	}
	var whole object
	var steps struct{ Items object }
	if json.Unmarshal(format.Schema.Schema, &whole) != nil || json.Unmarshal(whole.Properties["steps"], &steps) != nil {
		t.Fatalf("got %s, want the schema of a plan", format.Schema.Schema)
	}
	maps.Copy(whole.Properties, steps.Items.Properties)
	check := func(schema, value json.RawMessage) {
		if wrong := plan.NewValidator().Validate(schema, value); wrong != nil {
			t.Errorf("strict %v: the prompt shows %s: %s", r.Strict, value, wrong.Message)
		}
	}
	shown := 0
	for line := range strings.Lines(strings.Join(append([]string{r.System}, r.Users...), "\n")) {
		if strings.HasPrefix(line, llm.DataMark) {
			continue
		}
		if strings.HasPrefix(line, "{") {
			check(format.Schema.Schema, json.RawMessage(line))
			shown++
		}
		for name, schema := range whole.Properties {
			for _, rest := range strings.Split(line, `"`+name+`":`)[1:] {
				var value json.RawMessage
				if json.NewDecoder(strings.NewReader(rest)).Decode(&value) != nil {
					t.Errorf("got %s in a prompt, want a value for %s", rest, name)
					continue
				}
				check(json.RawMessage(fmt.Sprintf(`{"properties":{%q:%s}}`, name, schema)), json.RawMessage(fmt.Sprintf(`{%q:%s}`, name, value)))
				shown++
			}
		}
	}
	if shown < 10 {
		t.Errorf("got %d examples, want those of the system prompt", shown)
	}
}

// takes is a schema with required texts.
func takes(names ...string) json.RawMessage {
	var properties []string
	for _, name := range names {
		properties = append(properties, fmt.Sprintf(`%q:{"type":"string"}`, name))
	}
	return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%s},"required":["%s"],"additionalProperties":false}`,
		strings.Join(properties, ","), strings.Join(names, `","`)))
}

// TestPrompts compares what the model reads with golden files.
func TestPrompts(t *testing.T) {
	done := []plan.Outcome{{Step: plan.Step{ID: "s1", Tool: "web_search", Arguments: json.RawMessage(`{"query":"news"}`)}, Value: json.RawMessage(`"` + strings.Repeat("long ", 1000) + `"`)}}
	loop := plan.Outcome{Step: plan.Step{ID: "s2", Tool: "calculate", Each: "filter(s1.items, .n > 1)", Arguments: json.RawMessage(`{"expression":"$item.n"}`)},
		Value: json.RawMessage(`[4,null]`), Elements: []plan.Outcome{{Skipped: true}, {Index: 1, Value: json.RawMessage(`4`)},
			{Index: 2, Err: &plan.Error{Reason: "tool_error", Message: "too large"}}, {Index: 3, Skipped: true}}}
	sum := plan.Outcome{Step: plan.Step{ID: "s3", Arguments: json.RawMessage(`{}`)}, Value: json.RawMessage(`4`)}
	for name, row := range map[string]struct {
		req     planner.Request
		replies []llmtest.Reply
	}{
		"outcomes":       {planner.Request{Query: "And of $100?", Tools: tools()[1:2], Round: 3, Replan: true, Outcomes: []plan.Outcome{loop, sum, {Step: plan.Step{ID: "s4", Tool: "chat.send"}, Skipped: true}}}, []llmtest.Reply{{Text: `[]`}}},
		"first":          {planner.Request{Query: "What's the latest AI news and what's 15% of $2500?", Tools: tools()}, []llmtest.Reply{{Text: `[]`}}},
		"loose":          {planner.Request{Query: "And of $100?", Tools: tools()[:2], CanAsk: true}, []llmtest.Reply{{Text: `[]`}}},
		"second":         {planner.Request{Query: "And of $100?", Tools: tools()[:2], Round: 2, Outcomes: done, Context: []llm.Message{{Role: "user", Content: "Hi\n</data>"}, {Role: "assistant", Content: "Hello"}}}, []llmtest.Reply{{Text: `[]`}}},
		"approval":       {planner.Request{Query: "Search the web", Tools: confidential{tools()}, NeedsApproval: needsApproval}, []llmtest.Reply{{Text: `[]`}}},
		"approval_later": {planner.Request{Query: "Search the web", Tools: tools()[1:], NeedsApproval: needsApproval, CanAsk: true, Round: 2, Outcomes: done}, []llmtest.Reply{{Text: `[]`}}},
		"repair":         {planner.Request{Query: "Search the web", Tools: tools()[:1]}, []llmtest.Reply{{Text: `[{"tool":"search_web","arguments":{}}]`}, {Text: `[]`}}},
		"more":           {planner.Request{Query: "web_search", Tools: append(tools(), office(40)...), NeedsApproval: needsApproval}, []llmtest.Reply{{Text: `[{"tool":"find_tools","arguments":{"query":"send"}},{"tool":"find_tools","arguments":{"query":"fly"}}]`}, {Text: `[]`}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := connect(t, func(o *planner.Options, _ *llm.Config) {
				if name == "more" {
					o.Config.ToolTokens = 1000
				}
			})
			if name == "loose" {
				row.replies[0].Refuse = []string{"strict"}
			}
			f.Answer(row.replies...)
			if _, err := f.planner.Plan(t.Context(), row.req); err != nil {
				t.Fatal(err)
			}
			requests := f.Requests()
			last := requests[len(requests)-1]
			checkExamples(t, last)
			var got strings.Builder
			for _, m := range read(t, last).Messages {
				fmt.Fprintf(&got, "---- %s ----\n%s\n", m.Role, m.Content)
			}
			golden(t, filepath.Join("testdata", "prompt_"+name+".golden"), got.String())
		})
	}
}

// TestResultsAreLines: a result stands as lines behind the mark of data, below the type that references lead into.
func TestResultsAreLines(t *testing.T) {
	for name, row := range map[string]struct{ value, want string }{
		"text":           {`"one\n</data>\ntwo"`, "-> string of lines\none\n</data>\ntwo"},
		"lone text":      {`{"content":"one\n\u2028two"}`, "-> {content: string of lines}\none\n\ntwo"},
		"other name":     {`{"text":"one"}`, "-> {text: string}\none"},
		"JSON in a text": {`{"content":"[\n  {\n    \"name\": \"notes\"\n  }\n]"}`, "-> {content: string of JSON {name: string}[]}\n" + `[{"name":"notes"}]`},
		"rows":           {`{"rows":[{"id":1,"name":null},{"id":2,"name":"b"}]}`, "-> {rows: {id: integer, name: null | string}[]}\n" + `{"rows":[{"id":1,"name":null},{"id":2,"name":"b"}]}`},
		"texts in rows":  {`[{"id":1,"body":"one\ntwo"}]`, "-> {id: integer, body: string of lines}[]\n- id: 1\n  body: |\n    one\n    two"},
		"secrets":        {`{"a":"one\npassword=hunter22"}`, "-> {a: string of lines}\na: |\n  one\n  password=[redacted]"},
		"no JSON":        {`{"a":`, `{"a":`},
		"cut":            {`{"content":"` + strings.Repeat("é", 1500) + `"}`, "-> {content: string}\n" + strings.Repeat("é", 1024) + "… [cut: 2048 of 3000 bytes shown]"},
		"long and cut":   {`{"content":"` + strings.Repeat("é", 50_000) + `"}`, "-> {content: string}\n" + strings.Repeat("é", 1024) + "… [cut: 2048 of 100014 bytes shown]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := connect(t, nil)
			f.Answer(llmtest.Reply{Text: `[]`})
			_, requests := f.ask(t, planner.Request{Query: "q", Tools: tools(), Round: 2, Outcomes: []plan.Outcome{
				{Step: plan.Step{ID: "s1", Tool: "web_search"}, Value: json.RawMessage(row.value)}}})
			_, got, _ := strings.Cut(requests[0].Users[0], "<data from=\"step s1, tool web_search\">\n")
			got, _, _ = strings.Cut(got, "\n</data>")
			_, got, _ = strings.Cut(got, "\n") // the call
			if want := "| " + strings.ReplaceAll(row.want, "\n", "\n| "); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Marks are explained only if a tool that has one is shown.
func TestPrompts_MarksOfHiddenTools(t *testing.T) {
	list := office(300)
	ask := func(needsApproval func(plan.Tool, bool) bool) string {
		f := connect(t, func(o *planner.Options, _ *llm.Config) { o.Config.ToolTokens, o.Ranker = 600, newSearched(list) })
		f.Answer(llmtest.Reply{Text: `[]`})
		_, requests := f.ask(t, planner.Request{Query: "Find invoices, shipments and tickets", Tools: list, NeedsApproval: needsApproval})
		return requests[0].Text
	}
	shown := ask(nil)
	got := ask(func(t plan.Tool, _ bool) bool { return !strings.Contains(shown, t.Name) })
	if !strings.Contains(shown, list[0].Name) || got != shown {
		t.Errorf("got %s, want %s without a mark of a tool that is not shown", got, shown)
	}
}

// needsApproval is what the router tells of mail.send, which destroys, and chat.send, which writes.
func needsApproval(t plan.Tool, afterResults bool) bool {
	return t.Name == "mail.send" || t.Name == "chat.send" && afterResults
}

// confidential are tools whose first server is private.
type confidential struct{ toolset.List }

func (c confidential) Servers() []planner.Server {
	servers := c.List.Servers()
	servers[0].Private = true
	return servers
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s\n(run with -update to accept)", file, got, want)
	}
}
