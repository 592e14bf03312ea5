package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/execution"
	"github.com/agenticnexus/agenticnexus/synth"
)

// randomPlan makes a plan whose steps refer to one another in every way that there is, and name much that is no step.
func randomPlan(r *rand.Rand) plan.Plan {
	p := plan.Plan{Source: plan.SourceGiven, Rounds: 1}
	n := 1 + r.IntN(6)
	order := r.Perm(n) // a step may stand before what it needs
	p.Steps = make([]plan.Step, n)
	for k, at := range order {
		s := plan.Step{ID: fmt.Sprintf("s%d", k+1), Tool: "t"}
		var values []string
		earlier := func() string { return fmt.Sprintf("s%d", 1+r.IntN(k)) }
		for range r.IntN(3) {
			decoy := []string{"$2500", "costs $5", "$nothing", "$$s1x", "s1", "${other}", "$item", "$s99.x"}
			values = append(values, decoy[r.IntN(len(decoy))])
			if k == 0 {
				continue
			}
			switch r.IntN(5) {
			case 0:
				values = append(values, "$"+earlier())
			case 1:
				values = append(values, "the value ${"+earlier()+"} in a text")
			case 2:
				s.After = append(s.After, earlier())
			case 3:
				s.When = earlier() + ` != "no" && 1 < 2`
			case 4:
				s.Pick = `{"items": [1, 2], "of": ` + earlier() + `}`
			}
		}
		if k > 0 && r.IntN(3) == 0 {
			s.Each = "$s1.items" // the first step has no loop
		}
		arguments, err := json.Marshal(map[string]any{"a": values, "s1": "$no", "deep": map[string]any{"b": values}})
		if err != nil {
			panic(err)
		}
		s.Arguments = arguments
		p.Steps[at] = s
	}
	return p
}

// ran executes a plan in which one step fails, and returns the steps that were called.
func ran(p plan.Plan, fails string) map[string]bool {
	p.Steps = slices.Clone(p.Steps)
	for i := range p.Steps {
		p.Steps[i].Tool = p.Steps[i].ID
	}
	round := execution.New(execution.Options{Servers: failing(fails)}).Begin(context.Background(), execution.Request{})
	defer round.Stop()
	called := map[string]bool{}
	for _, o := range round.Execute(context.Background(), execution.Work{Plan: p, Lookup: func(name string) (plan.Tool, *plan.Error) {
		return plan.Tool{Name: name, Tool: name}, nil
	}}) {
		if o.Attempts > 0 {
			called[o.Step.ID] = true
		}
	}
	return called
}

// failing is the name of a tool that fails.
type failing string

// Call implements execution.ToolCaller.
func (f failing) Call(_ context.Context, r *downstream.Request) (link.Reply, error) {
	*r.Attempts = 1
	if r.Tool == string(f) {
		return link.Reply{Result: []byte(`{"isError":true}`)}, nil
	}
	return link.Reply{Result: []byte(`{"structuredContent":{"items":[1,2]}}`)}, nil
}

// The edges of the graph are those that the executor goes by: what does not run because a step fails is what the graph
// can reach from it.
func TestEdges(t *testing.T) {
	const plans = 100
	r := rand.New(rand.NewPCG(7, 7))
	edges := 0
	for range plans {
		p := randomPlan(r)
		shown, err := json.Marshal(newGraph(&queryDetail{content: &router.AnswerContent{Plan: p}, rounds: []int{len(p.Steps)}}))
		if err != nil {
			t.Fatal(err)
		}
		var g struct {
			Nodes []struct {
				ID    string
				Needs []string
			}
		}
		if err := json.Unmarshal(shown, &g); err != nil {
			t.Fatal(err)
		}
		needs := map[string][]string{}
		for _, n := range g.Nodes {
			needs[n.ID] = n.Needs
			edges += len(n.Needs)
		}
		for _, s := range p.Steps {
			called := ran(p, s.ID)
			for _, other := range p.Steps {
				reached := other.ID != s.ID && reaches(needs, other.ID, s.ID)
				if called[other.ID] == reached {
					text, _ := json.Marshal(p)
					t.Fatalf("%s: %s fails, %s ran: %t; the graph %s", text, s.ID, other.ID, called[other.ID], shown)
				}
			}
		}
	}
	if edges < plans {
		t.Errorf("got %d edges in %d plans, want more", edges, plans)
	}
}

// reaches reports whether a step needs another, directly or not.
func reaches(needs map[string][]string, step, other string) bool {
	return slices.ContainsFunc(needs[step], func(n string) bool { return n == other || reaches(needs, n, other) })
}

// A step of a later round is no need of an earlier one, whose arguments name it by chance.
func TestEdgesOfRounds(t *testing.T) {
	p := plan.Plan{Steps: []plan.Step{
		{ID: "a", Arguments: json.RawMessage(`{"x":"$b"}`)}, {ID: "b", Arguments: json.RawMessage(`{"x":"$a"}`)},
	}}
	g := newGraph(&queryDetail{content: &router.AnswerContent{Plan: p}, rounds: []int{1, 2}})
	if len(g.Nodes[0].Needs) != 0 || !slices.Equal(g.Nodes[1].Needs, []string{"a"}) || g.Nodes[1].Round != 2 {
		t.Errorf("got %+v, want one edge from a to b", g.Nodes)
	}
}

// Steps with the same id are one node with all their calls: a client's plan may name a step twice.
func TestRepeatedID(t *testing.T) {
	p := plan.Plan{Steps: []plan.Step{
		{ID: "a", Tool: "t", Arguments: json.RawMessage(`{}`)}, {ID: "a", Tool: "t", After: []string{"b"}}, {ID: "b", Arguments: json.RawMessage(`{"x":"$a"}`)},
	}}
	calls := []router.StepResult{{ID: "a", Success: true, Attempts: 1}, {ID: "a", Error: &plan.Error{Reason: "duplicate_id"}}, {ID: "b", Success: true, Attempts: 1}}
	g := newGraph(&queryDetail{content: &router.AnswerContent{Plan: p, Steps: calls}, rounds: []int{3}})
	if len(g.Nodes) != 2 || g.Nodes[0].Calls != 2 || g.Nodes[0].State != statePartly || len(g.Nodes[0].Needs) != 0 || !slices.Equal(g.Nodes[1].Needs, []string{"a"}) {
		t.Errorf("got %+v, want a with two calls, one of them failed, and b that needs a", g.Nodes)
	}
}

// The critical path goes through planning, steps and synthesis; a step that began early does not wait for the planning.
func TestCriticalPath(t *testing.T) {
	step := func(id string, after ...string) plan.Step { return plan.Step{ID: id, Tool: id, After: after} }
	result := func(id string, started, took float64) router.StepResult {
		return router.StepResult{ID: id, Success: true, Attempts: 1, Started: started, Duration: took}
	}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	d := &queryDetail{
		content: &router.AnswerContent{
			Plan:  plan.Plan{Steps: []plan.Step{step("a"), step("b"), step("c", "a", "b"), step("d")}},
			Steps: []router.StepResult{result("a", 10, 30), result("b", 10, 50), result("c", 60, 20), result("d", 5, 8)},
		},
		phases: []router.Phase{{Name: router.PhasePlanning, Duration: ms(10)}, {Name: router.PhaseExecution, Started: ms(10), Duration: ms(70)},
			{Name: router.PhaseSynthesis, Started: ms(80), Duration: ms(5)}},
		rounds: []int{4},
	}
	g := newGraph(d)
	if want := []string{"planning 1", "b", "c", "synthesis"}; !slices.Equal(g.Path, want) {
		t.Errorf("got the path %v, want %v", g.Path, want)
	}
	d.phases = append(d.phases, router.Phase{Name: router.PhasePlanning, Started: ms(85), Duration: ms(10)},
		router.Phase{Name: router.PhaseExecution, Started: ms(95), Duration: ms(20)}, router.Phase{Name: router.PhaseSynthesis, Started: ms(115), Duration: ms(5)})
	d.rounds = []int{4, 5}
	d.content.Plan.Steps, d.content.Steps = append(d.content.Plan.Steps, step("e")), append(d.content.Steps, result("e", 95, 20))
	if want := []string{"planning 1", "b", "c", "synthesis", "planning 2", "e", "synthesis"}; !slices.Equal(newGraph(d).Path, want) {
		t.Errorf("the writer asked for a round: got the path %v, want %v", newGraph(d).Path, want)
	}
}

// The path is a chain that takes as long as all the work.
func TestLongestChain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		parts := make([]part, 1+r.IntN(9))
		order := r.Perm(len(parts)) // the order of the slice means nothing
		for i := range parts {
			parts[i].time = r.Int64N(5)
			for n := range parts {
				if order[n] < order[i] && r.IntN(3) == 0 {
					parts[i].needs = append(parts[i].needs, n)
				}
			}
		}
		var end func(i int) int64 // by trying every chain
		end = func(i int) (start int64) {
			for _, n := range parts[i].needs {
				start = max(start, end(n))
			}
			return start + parts[i].time
		}
		var longest, along int64
		for i := range parts {
			longest = max(longest, end(i))
		}
		path := longestChain(parts)
		for k, i := range path {
			if along += parts[i].time; k > 0 && !slices.Contains(parts[i].needs, path[k-1]) {
				t.Fatalf("%v: the path %v is no chain", parts, path)
			}
		}
		if along != longest {
			t.Fatalf("%v: the path %v takes %d, want %d", parts, path, along, longest)
		}
	}
	for _, parts := range [][]part{nil, {{time: 1}, {needs: []int{2, 0}, time: 9}, {needs: []int{1}, time: 9}, {needs: []int{2}}}} {
		if path := longestChain(parts); len(path) != min(len(parts), 1) {
			t.Errorf("%v: got %v, want the parts outside the cycle", parts, path)
		}
	}
}

// Loops, skipped and failed calls show in their step.
func TestStates(t *testing.T) {
	call := func(id string, ok, skipped bool) router.StepResult {
		r := router.StepResult{ID: id, Success: ok, Skipped: skipped, Attempts: 2}
		if !ok && !skipped {
			r.Error = &plan.Error{Reason: "timeout"}
		}
		return r
	}
	var steps []plan.Step
	for _, id := range []string{"ok", "partly", "failed", "skipped", "not run"} {
		steps = append(steps, plan.Step{ID: id, Each: "$x", When: "true", Pick: "value"})
	}
	g := newGraph(&queryDetail{content: &router.AnswerContent{Plan: plan.Plan{Steps: steps}, Steps: []router.StepResult{
		call("ok", true, false), call("ok", false, true), call("partly", true, false), call("partly", false, false),
		call("failed", false, false), call("failed", false, true), call("skipped", false, true), call("early-1", true, false),
	}}})
	for i, want := range []string{stateOK, statePartly, stateFailed, stateSkipped, stateNotRun} {
		n := g.Nodes[i]
		if n.State != want || !n.Loop || !n.When || !n.Pick {
			t.Errorf("%s: got %+v, want %s", n.ID, n, want)
		}
	}
	if n := g.Nodes[1]; n.Calls != 2 || n.Failed != 1 || n.Reason != "timeout" || n.Retries != 2 {
		t.Errorf("got %+v, want two calls, one of them failed", n)
	}
}

// Problems of a server tell their causes; a server that is lost again and again is one, though it is connected.
func TestAttention(t *testing.T) {
	refused := &plan.Error{Reason: "unavailable", Message: "it answered 503"}
	gone := health.Transition{At: time.Now(), State: downstream.StateDisconnected}
	back, before := health.Transition{At: time.Now(), State: downstream.StateConnected}, health.Transition{At: time.Now().Add(-2 * time.Hour), State: downstream.StateDisconnected}
	for name, row := range map[string]struct {
		status downstream.Status
		past   []health.Transition
		want   string
	}{
		"well":               {downstream.Status{Status: downstream.StateConnected, Breaker: "closed"}, []health.Transition{gone, back, gone, back}, ""},
		"lost long ago":      {downstream.Status{Status: downstream.StateConnected, Breaker: "closed"}, []health.Transition{before, before, gone}, ""},
		"lost again":         {downstream.Status{Status: downstream.StateConnected, Breaker: "closed", LastError: refused}, []health.Transition{gone, back, gone, back, gone, back}, "warn: connected, but lost 3 times within an hour: unavailable, it answered 503"},
		"lost and down":      {downstream.Status{Status: downstream.StateDisconnected, Breaker: "closed", LastError: refused}, []health.Transition{gone, gone, gone}, "bad: disconnected: unavailable, it answered 503"},
		"breaker open":       {downstream.Status{Status: downstream.StateConnected, Breaker: "open", LastError: refused}, nil, "bad: calls are held back (breaker open): unavailable, it answered 503"},
		"breaker half-open":  {downstream.Status{Status: downstream.StateConnected, Breaker: "half-open", LastError: refused}, nil, "bad: calls kept failing, the next one is a trial (breaker half-open): unavailable, it answered 503"},
		"disabled, and open": {downstream.Status{Status: downstream.StateDisabled, Breaker: "open"}, nil, ""},
	} {
		var n nowView
		n.server("s", row.status, row.past)
		got := ""
		for _, a := range n.Attention {
			got += a.Severity + ": " + a.Text
		}
		if got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}

// Credentials never reach the store; without contents nothing that users or servers wrote does.
func TestContents(t *testing.T) {
	const secret, private = "hunter2hunter2", "private matter"
	value := json.RawMessage(`{"api_key":"` + secret + `","text":"` + private + `"}`)
	record := &router.Record{
		Answer:   synth.Answer{Text: private + " Bearer " + secret, Citations: []synth.Citation{{Step: "s1", Quote: private}}},
		Warnings: []string{private, "password=" + secret},
		Unmet:    []plan.Unmet{{Text: private + " token=" + secret, Reason: plan.UnmetFailed}},
		Plan:     plan.Plan{Steps: []plan.Step{{ID: "s1", Tool: "t", Server: "srv", Arguments: value, When: `s0 == "` + private + `"`}, {ID: "s0", Arguments: value, Each: `["` + private + ` token=` + secret + `"]`}, {ID: "c", Pick: `s0 == "token=` + secret + `"`}}},
		Outcomes: []plan.Outcome{
			{Step: plan.Step{ID: "s1", Tool: "t", Server: "srv", Arguments: value}, Sent: value, Value: value, Attempts: 1, Tries: []plan.Try{{Duration: time.Second}}},
			{Step: plan.Step{ID: "s0", Tool: "t", Server: "srv"}, Err: &plan.Error{Reason: "tool_error", Message: private + " Bearer " + secret}, Attempts: 1},
		},
		Rounds: []int{3},
	}
	for _, contents := range []bool{true, false} {
		d, size := newDetail(private+" secret="+secret, record, contents, nil)
		text, err := json.Marshal(d)
		if err != nil || size < 500 {
			t.Fatalf("got %v and %d bytes", err, size)
		}
		if strings.Contains(string(text), secret) {
			t.Errorf("contents %t: the credential is kept: %s", contents, text)
		}
		if got := strings.Contains(string(text), private); got != contents {
			t.Errorf("contents %t: what users wrote is kept: %t; %s", contents, got, text)
		}
		for _, want := range []string{`"server":"srv"`, `"needs":["s0"]`, `"tool":"computed"`, `"reason":"tool_error"`, `"tries":[{"started_ms":0,"duration_ms":1000}]`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("contents %t: got %s, want %s in it", contents, text, want)
			}
		}
		if got := describe(errors.New(private), contents, nil); strings.Contains(got, private) != contents {
			t.Errorf("contents %t: got the error %q", contents, got)
		}
	}
}

// A query with thousands of calls is kept within bounds.
func TestDetailIsBounded(t *testing.T) {
	big := json.RawMessage(`"` + strings.Repeat("x", 9_000) + `"`)
	record := &router.Record{Plan: plan.Plan{Steps: []plan.Step{{ID: "s1", Each: "$s0"}}}, Rounds: []int{1}}
	loop := plan.Outcome{Step: plan.Step{ID: "s1"}}
	for i := range 2500 {
		loop.Elements = append(loop.Elements, plan.Outcome{Step: loop.Step, Sent: big, Value: big, Index: i, Attempts: 1})
	}
	record.Outcomes = []plan.Outcome{loop}
	d, _ := newDetail("q", record, true, nil)
	text, err := json.Marshal(d)
	if err != nil || len(text) > 3<<20 || !strings.Contains(string(text), `"calls_left_out":500`) || !strings.Contains(string(text), `"calls":2500`) {
		t.Errorf("got %d bytes, %v, want at most 3 MiB with 2,000 calls of 2,500", len(text), err)
	}
}
