package planner_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/tests/toolset"
)

func withMode(mode string) func(*planner.Options, *llm.Config) {
	return func(o *planner.Options, _ *llm.Config) { o.Config.Mode = mode }
}

func calls(calls ...string) llmtest.Reply {
	var r llmtest.Reply
	for _, c := range calls {
		name, arguments, _ := strings.Cut(c, " ")
		r.Calls = append(r.Calls, llmtest.Call{Name: name, Arguments: arguments})
	}
	return r
}

// TestToolMode: the calls of a turn become the steps of a round.
func TestToolMode(t *testing.T) {
	done := llmtest.Reply{Text: `{"steps":[]}`}
	for _, row := range []struct {
		name    string
		replies []llmtest.Reply
		last    bool
		want    string
		reasons string
		unmet   string
		calls   int
	}{
		{name: "in parallel", replies: []llmtest.Reply{calls(`web_search {"query":"a"}`, `calculate {"expression":"1"}`)}, calls: 1,
			want: `model: s1=search/web_search{"query":"a"}; s2=math/calculate{"expression":"1"} more`},
		{name: "the last round", last: true, replies: []llmtest.Reply{calls(`web_search {"query":"a"}`)}, calls: 1,
			want: `model: s1=search/web_search{"query":"a"}`},
		{name: "a name that endpoints refuse", replies: []llmtest.Reply{calls(`mail_send {"to":["a@b.example"],"body":"x"}`)}, calls: 1,
			want: `model: s1=mail/mail.send{"to":["a@b.example"],"body":"x"} more`},
		{name: "no call", replies: []llmtest.Reply{{Text: "I need no tool for that."}}, calls: 1, want: "model: "},
		{name: "done", replies: []llmtest.Reply{done}, calls: 1, want: "model: "},
		{name: "nothing can do it", replies: []llmtest.Reply{{Text: `{"steps":[],"unmet":["fly to the moon"]}`}}, calls: 1, want: "model: ", unmet: "fly to the moon"},
		{name: "a plan after all", replies: []llmtest.Reply{{Text: searchPlan}}, calls: 1, want: `model: a=search/web_search{"query":"news"}`},
		{name: "no arguments", replies: []llmtest.Reply{calls("chat_send ")}, calls: 1, want: "model: s1=chat/chat.send{} more"},
		{name: "repaired", replies: []llmtest.Reply{calls(`web_search {"query":7}`), calls(`web_search {"query":"7"}`)}, calls: 2,
			want: `model: s1=search/web_search{"query":"7"} more`},
		{name: "an invented tool", replies: []llmtest.Reply{calls(`rm {"path":"/"}`, `calculate {"expression":"1"}`)}, calls: 2, reasons: "unknown_tool",
			want: `model: s1=/rm{"path":"/"}; s2=math/calculate{"expression":"1"} more`},
		{name: "broken arguments", replies: []llmtest.Reply{calls(`web_search {"query":`), done}, calls: 2, want: "model: "},
		{name: "a name twice", replies: []llmtest.Reply{calls(`web_search {"query":"a","query":"b"}`, `calculate {"expression":"1"}`)}, calls: 2, reasons: "invalid_arguments",
			want: `model: s1=search/web_search{}; s2=math/calculate{"expression":"1"} more`},
		{name: "too deep", replies: []llmtest.Reply{calls(`chat_send {"a":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`}`, `calculate {"expression":"1"}`)}, calls: 2, reasons: "invalid_arguments",
			want: `model: s1=chat/chat.send{}; s2=math/calculate{"expression":"1"} more`},
		{name: "a list", replies: []llmtest.Reply{calls(`chat_send [1]`, `calculate {"expression":"1"}`)}, calls: 2, reasons: "invalid_arguments",
			want: `model: s1=chat/chat.send{}; s2=math/calculate{"expression":"1"} more`},
		{name: "null", replies: []llmtest.Reply{calls("chat_send null")}, calls: 1, want: "model: s1=chat/chat.send{} more"},
		{name: "failing", replies: []llmtest.Reply{{Status: 401, Text: "no"}}, calls: 1, want: `rules: s1=search/web_search{"query":"fallback"} more`},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := connect(t, withMode(planner.ModeTools))
			f.Answer(row.replies...)
			req := planner.Request{Query: "q", Tools: tools(), MaxRounds: 2}
			if row.last {
				req.MaxRounds = 1
			}
			got, err := f.planner.Plan(t.Context(), req)
			if err != nil || brief(got.Plan) != row.want || got.Usage.Calls != row.calls {
				t.Errorf("got %s after %d calls, %v, want %s after %d", brief(got.Plan), got.Usage.Calls, err, row.want, row.calls)
			}
			var reasons, unmet []string
			for _, p := range got.Problems {
				reasons = append(reasons, p.Error.Reason)
			}
			for _, u := range got.Plan.Unmet {
				unmet = append(unmet, u.Text)
			}
			if strings.Join(reasons, " ") != row.reasons || strings.Join(unmet, " ") != row.unmet {
				t.Errorf("got problems %q and unmet %q, want %q and %q", reasons, unmet, row.reasons, row.unmet)
			}
			r := f.Requests()[0]
			if fmt.Sprint(r.Tools) != "[calculate chat_send mail_send web_search]" || r.Form != "" || !strings.Contains(r.System, "You call the tools") ||
				!strings.Contains(r.System, "\n- In types, ? marks what is optional, … what is not shown. In string like \"x 0\", x is a word, 0 a number.\n") {
				t.Errorf("got tools %v, form %q: %s", r.Tools, r.Form, r.System)
			}
		})
	}
}

// TestToolModeWithoutSchemas: where the endpoint refuses a schema, the descriptions say what tools take.
func TestToolModeWithoutSchemas(t *testing.T) {
	f := connect(t, withMode(planner.ModeTools))
	f.Answer(llmtest.Reply{Status: 400, Text: "Invalid schema for function 'web_search': reasoning"}, calls(`web_search {"query":"a"}`))
	got, err := f.planner.Plan(t.Context(), planner.Request{Query: "q", Tools: tools()})
	if want := `model: s1=search/web_search{"query":"a"} more`; err != nil || brief(got.Plan) != want {
		t.Fatalf("got %s, %v, want %s", brief(got.Plan), err, want)
	}
	r := f.Requests()
	if text := string(r[1].Body); strings.Contains(string(r[0].Body), "web_search(query: string") || !strings.Contains(text, "web_search(query: string") {
		t.Errorf("got %s, want the arguments in the description", text)
	}
}

// TestToolModeKeepsItsTools: what a search finds comes after the tools of earlier turns, which stay. The model is told
// of those alone that it can call.
func TestToolModeKeepsItsTools(t *testing.T) {
	var list toolset.List
	add := func(n, size int, name string) {
		for i := range n {
			name := fmt.Sprintf("%s_%d", name, i)
			list = append(list, plan.Tool{Name: name, Server: "s", Tool: name, InputSchema: json.RawMessage(
				`{"type":"object","properties":{"a":{"description":"` + strings.Repeat("x", size) + `"}}}`)})
		}
	}
	add(40, 200, "walk")
	add(3, 3800, "bake_long")
	add(6, 200, "bake")
	f := connect(t, func(o *planner.Options, _ *llm.Config) {
		o.Config.Mode, o.Config.ToolTokens, o.Ranker = planner.ModeTools, 1000, firstWords{}
	})
	f.Answer(calls(`find_tools {"query":"bake"}`), calls(`bake_0 {}`))
	shown := &planner.Shown{}
	for range 2 { // rounds
		got, err := f.planner.Plan(t.Context(), planner.Request{Query: "walk", Tools: list, Shown: shown})
		if want := `model: s1=s/bake_0{} more`; err != nil || brief(got.Plan) != want {
			t.Fatalf("got %s, %v, want %s", brief(got.Plan), err, want)
		}
	}
	r := f.Requests()
	if len(r) != 3 || r[0].Tools[0] != "find_tools" || !slices.Equal(r[2].Tools, r[1].Tools) {
		t.Fatalf("got %d requests, want one of the next round with what was found", len(r))
	}
	before, after := r[0].Tools, r[1].Tools
	if len(before) < 5 || len(after) <= len(before) || !slices.Equal(after[:len(before)], before) {
		t.Fatalf("got tools %v after %v, want more at the end", after, before)
	}
	told := r[1].Users[1]
	for _, tool := range list[40:] {
		found := strings.Contains(told, " "+tool.Name+",") || strings.Contains(told, " "+tool.Name+"\n")
		if can := slices.Contains(after, tool.Name); found != can {
			t.Errorf("%s can be called: %v; the model is told so: %v", tool.Name, can, found)
		}
	}
	if !strings.Contains(r[2].Users[0], "\n| s: "+strings.Join(after[1:], ", ")+"\n") {
		t.Errorf("got the next round\n%s\nwant the names of %v", r[2].Users[0], after[1:])
	}
	if !strings.Contains(told, `"bake": found bake_`) {
		t.Errorf("got %s, want what was found", told)
	}
}

// TestToolModeShowsAll: where they fit, the model can call all tools, also those that the question does not match.
func TestToolModeShowsAll(t *testing.T) {
	some, many := tools(), tools()
	for i := range 200 {
		name := fmt.Sprintf("tool_%d", i)
		many = append(many, plan.Tool{Name: name, Server: "s", Tool: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	for _, row := range []struct {
		query string
		tools toolset.List
		want  int // with find_tools where it is offered
	}{
		{"Bonjour", some, len(some)},
		{"web_search", some, len(some)},
		{"Bonjour", many, 1},
		{"web_search", many, 2},
	} {
		f := connect(t, func(o *planner.Options, _ *llm.Config) { o.Config.Mode, o.Ranker = planner.ModeTools, firstWords{} })
		f.Answer(calls(`web_search {"query":"a"}`))
		if _, err := f.planner.Plan(t.Context(), planner.Request{Query: row.query, Tools: row.tools}); err != nil {
			t.Fatal(err)
		}
		if got := f.Requests()[0].Tools; len(got) != row.want {
			t.Errorf("%q of %d tools: got %v, want %d", row.query, len(row.tools), got, row.want)
		}
	}
}

// TestFindToolsOfAServer: where all tools are shown, a server's tool of that name is called like others; natively it
// always is.
func TestFindToolsOfAServer(t *testing.T) {
	own := plan.Tool{Name: "find_tools", Server: "shed", Tool: "find_tools", InputSchema: json.RawMessage(`{"type":"object"}`)}
	few, many := append(tools(), own), toolset.List{own}
	for i := range 200 {
		name := fmt.Sprintf("tool_%d", i)
		many = append(many, plan.Tool{Name: name, Server: "s", Tool: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	sum := sha256.Sum256([]byte("find_tools"))
	native := calls("find_tools_" + hex.EncodeToString(sum[:4]) + ` {"query":"hammer"}`)
	for _, row := range []struct {
		mode  string
		tools toolset.List
		reply llmtest.Reply
		want  string
	}{
		{planner.ModePlan, few, llmtest.Reply{Text: `{"steps":[{"id":"s1","tool":"find_tools","arguments":{"query":"hammer"}}]}`}, ""},
		{planner.ModeTools, few, native, " more"},
		{planner.ModeTools, many, native, " more"},
	} {
		f := connect(t, func(o *planner.Options, _ *llm.Config) { o.Config.Mode, o.Ranker = row.mode, firstWords{} })
		f.Answer(row.reply)
		got, err := f.planner.Plan(t.Context(), planner.Request{Query: "find_tools", Tools: row.tools, MaxRounds: 2})
		if want := `model: s1=shed/find_tools{"query":"hammer"}` + row.want; err != nil || brief(got.Plan) != want || len(f.Requests()) != 1 {
			t.Errorf("%s, %d tools: got %s, %v after %d turns, want %s after one", row.mode, len(row.tools), brief(got.Plan), err, len(f.Requests()), want)
		}
	}
}

// firstWords ranks tools whose name begins with the question.
type firstWords struct{}

func (firstWords) Rank(_ context.Context, query string, tools planner.Tools, limit int) (out []plan.Tool) {
	for t := range tools.All() {
		if strings.HasPrefix(t.Name, query) && len(out) < limit {
			out = append(out, *t)
		}
	}
	return out
}

// TestNativeNames: names of any form are converted, kept apart and found again.
func TestNativeNames(t *testing.T) {
	f := connect(t, withMode(planner.ModeTools))
	var odd toolset.List
	long := strings.Repeat("l", 80)
	sum := sha256.Sum256([]byte(long))
	twin := long[:llm.MaxToolName-9] + "_" + hex.EncodeToString(sum[:4]) // what the long name becomes
	for i, name := range []string{"a.b", "a_b", "a b", "Ünï.ço", strings.Repeat("long", 40) + "1", strings.Repeat("long", 40) + "2", "find_tools!", twin, long} {
		odd = append(odd, plan.Tool{Name: name, Server: "s", Tool: name, InputSchema: json.RawMessage([]string{`{}`, `7`, `{"type":["object","null"]}`, ``}[i%4])})
	}
	var native []string
	for range 2 { // in both orders
		slices.Reverse(odd)
		f.Answer(llmtest.Reply{Text: "{}"})
		if _, err := f.planner.Plan(t.Context(), planner.Request{Query: "q", Tools: odd}); err != nil {
			t.Fatal(err)
		}
		native = f.Requests()[0].Tools
		seen := map[string]bool{}
		for _, name := range native {
			if len(name) > 64 || name == "" || seen[name] || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
				t.Errorf("got name %q among %q, want one that endpoints take", name, native)
			}
			seen[name] = true
		}
		if len(native) != len(odd) {
			t.Fatalf("got %d tools, want %d: %q", len(native), len(odd), native)
		}
		f.Reset()
	}
	var all []string
	for _, name := range native {
		all = append(all, name+" {}")
	}
	f.Answer(calls(all...))
	got, err := f.planner.Plan(t.Context(), planner.Request{Query: "q", Tools: odd})
	if err != nil || len(got.Problems) > 0 || len(got.Plan.Steps) != len(odd) {
		t.Fatalf("got %d steps with problems %v, %v, want every tool found", len(got.Plan.Steps), got.Problems, err)
	}
	called := map[string]bool{}
	for _, s := range got.Plan.Steps {
		called[s.Tool] = true
	}
	for _, tool := range odd {
		if !called[tool.Name] {
			t.Errorf("no step calls %q", tool.Name)
		}
	}
}

// TestAutoMode: a model that writes no plans calls tools, and after a while writes plans again.
func TestAutoMode(t *testing.T) {
	now := clock()
	f := connect(t, func(o *planner.Options, c *llm.Config) {
		withMode(planner.ModeAuto)(o, c)
		o.Now = func() time.Time { return now }
	})
	f.When(llmtest.WithTools, calls(`web_search {"query":"a"}`))
	f.Answer(llmtest.Reply{Text: "I would search the web."})
	var counts []int
	for _, later := range []time.Duration{0, 9 * time.Minute, 2 * time.Minute} {
		now = now.Add(later)
		got, err := f.planner.Plan(t.Context(), planner.Request{Query: "q", Tools: tools()})
		if want := `model: s1=search/web_search{"query":"a"} more`; err != nil || brief(got.Plan) != want {
			t.Fatalf("got %s, %v, want %s", brief(got.Plan), err, want)
		}
		counts = append(counts, got.Usage.Calls)
	}
	if fmt.Sprint(counts) != "[3 1 3]" {
		t.Errorf("got %v calls, want a plan tried first, then tools at once, then a plan again", counts)
	}
}

// TestAutoModeNeedsCalls: a model that writes a plan where it could call tools is asked for plans.
func TestAutoModeNeedsCalls(t *testing.T) {
	f := connect(t, withMode(planner.ModeAuto))
	f.When(llmtest.WithTools, llmtest.Reply{Text: searchPlan})
	f.Answer(llmtest.Reply{Text: "I would search the web."})
	for range 2 {
		got, err := f.planner.Plan(t.Context(), planner.Request{Query: "q", Tools: tools()})
		if want := `model: a=search/web_search{"query":"news"}`; err != nil || brief(got.Plan) != want || got.Usage.Calls != 3 {
			t.Errorf("got %s after %d calls, %v, want %s after 3", brief(got.Plan), got.Usage.Calls, err, want)
		}
	}
}

// slow is a model that writes prose for ten seconds a turn and notes until when it may.
type slow struct{ until []time.Duration }

func (m *slow) Complete(ctx context.Context, _ llm.Request) (llm.Response, error) {
	deadline, _ := ctx.Deadline()
	m.until = append(m.until, time.Until(deadline))
	time.Sleep(10 * time.Second)
	return llm.Response{Text: "I would search the web."}, nil
}

// TestAutoModeHasOneShare: asking in both modes takes no more of the time than asking in one.
func TestAutoModeHasOneShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &slow{}
		p := planner.New(planner.Options{Config: planner.Config{Mode: planner.ModeAuto}, Model: m, Fallback: rules{}})
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Second)
		defer stop()
		if _, err := p.Plan(ctx, planner.Request{Query: "q", Tools: tools()}); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(m.until); got != "[50s 40s 30s]" {
			t.Errorf("got %s left at each turn, want half of the time for all of them", got)
		}
	})
}

// TestAutoModeKeepsItsFallback: a model that neither plans nor calls is not asked for ever, and plans stay plans.
func TestAutoModeKeepsItsFallback(t *testing.T) {
	f := connect(t, withMode(planner.ModeAuto))
	f.Answer(llmtest.Reply{Text: "Hello!"})
	got, err := f.planner.Plan(t.Context(), planner.Request{Query: "q", Tools: tools()})
	if want := `rules: s1=search/web_search{"query":"fallback"} more`; err != nil || brief(got.Plan) != want || got.Usage.Calls != 3 {
		t.Errorf("got %s after %d calls, %v, want %s after 3", brief(got.Plan), got.Usage.Calls, err, want)
	}
	f.Reset()
	f.When(llmtest.WithTools, refusal)
	f.Answer(llmtest.Reply{Text: "Hello!"})
	if got, err = f.planner.Plan(t.Context(), planner.Request{Query: "q", Tools: tools()}); err != nil || !strings.Contains(got.Plan.Note, "declined") {
		t.Errorf("got %+v, %v, want the refusal", got.Plan, err)
	}
	f.Reset()
	f.Answer(llmtest.Reply{Text: searchPlan})
	got, err = f.planner.Plan(t.Context(), planner.Request{Query: "q", Tools: tools()})
	if want := `model: a=search/web_search{"query":"news"}`; err != nil || brief(got.Plan) != want || len(f.Requests()[0].Tools) > 0 {
		t.Errorf("got %s, %v, want %s without tools", brief(got.Plan), err, want)
	}
}
