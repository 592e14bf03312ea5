package planner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner"
)

// TestBadOutput: whatever a model or its endpoint sends, there is a plan or the rules', in bounded time and memory.
func TestBadOutput(t *testing.T) {
	const (
		byRules = `rules: s1=search/web_search{"query":"fallback"} more`
		search  = `model: a=search/web_search{"query":"news"}`
		sum     = `{"id":"b","tool":"calculate","arguments":{"expression":"1"}}`
	)
	steps := func(list ...string) string { return `{"steps":[` + strings.Join(list, ",") + `]}` }
	var thousand []string
	for i := range 1000 {
		thousand = append(thousand, fmt.Sprintf(`{"id":"n%d","tool":"calculate","arguments":{"expression":"%d"}}`, i, i))
	}
	text := func(s string) llmtest.Reply { return llmtest.Reply{Text: s, Chunk: max(16, len(s)/100)} }
	for _, row := range []struct {
		name    string
		reply   llmtest.Reply // again and again
		want    string
		reasons string // of the problems
		calls   int
		warning string
	}{
		{name: "prose around", reply: text("Let me see [1].\n" + searchPlan + "\nThat should do."), want: search, calls: 1},
		{name: "thoughts before", reply: text("<think>[{\"tool\":\"mail.send\",\"arguments\":{}}]</think>" + searchPlan), want: search, calls: 1},
		{name: "prose alone", reply: text("I would search the web."), want: byRules, calls: 2},
		{name: "nothing", reply: text(" "), want: byRules, calls: 2},
		{name: "truncated", reply: text(searchPlan[:len(searchPlan)-9]), want: byRules, calls: 2},
		{name: "truncated by the length limit", reply: llmtest.Reply{Text: searchPlan, Finish: "length"}, want: byRules, calls: 1},
		{name: "repeated keys", reply: text(`{"steps":[{"id":"a","tool":"web_search","tool":"mail.send","arguments":{"query":"news"}}]}`), want: byRules, calls: 2},
		{name: "repeated ids", reply: text(steps(sum, sum)), want: `model: b=math/calculate{"expression":"1"}; s2=math/calculate{"expression":"1"}`, reasons: "duplicate_id", calls: 2},
		{name: "1 MB of [", reply: llmtest.Reply{Text: strings.Repeat("[", 1_000_000), Chunk: 64 << 10}, want: byRules, calls: 2},
		{name: "200 kB of {\"a\":", reply: llmtest.Reply{Text: strings.Repeat(`{"a":`, 40_000), Chunk: 64 << 10}, want: byRules, calls: 2},
		{name: "unknown tool", reply: text(steps(`{"id":"a","tool":"rm","arguments":{}}`, sum)), want: `model: a=/rm{}; b=math/calculate{"expression":"1"}`, reasons: "unknown_tool", calls: 2},
		{name: "ambiguous tool", reply: text(steps(`{"id":"a","tool":"send","arguments":{}}`)), want: `model: a=/send{}`, reasons: "ambiguous_tool", calls: 2},
		{name: "no tool", reply: text(steps(`{"id":"a","arguments":{}}`, sum)), want: `model: a=/{}; b=math/calculate{"expression":"1"}`, reasons: "unknown_tool", calls: 2},
		{name: "wrong types", reply: text(steps(`{"id":"a","tool":"web_search","arguments":{"query":7}}`, sum)), want: `model: a=search/web_search{"query":7}; b=math/calculate{"expression":"1"}`, reasons: "invalid_arguments", calls: 2},
		{name: "arguments of the wrong kind", reply: text(steps(`{"id":"a","tool":"web_search","arguments":["news"]}`, sum)), want: `model: a=search/web_search{}; b=math/calculate{"expression":"1"}`, reasons: "invalid_arguments", calls: 2},
		{name: "null where something is required", reply: text(steps(`{"id":"a","tool":"web_search","arguments":null}`)), want: `model: a=search/web_search{}`, reasons: "invalid_arguments", calls: 2},
		{name: "cycle", reply: text(steps(`{"id":"a","tool":"calculate","arguments":{"expression":"$c"}}`, `{"id":"c","tool":"calculate","arguments":{"expression":"2"},"after":["a"]}`, sum)),
			want: `model: a=math/calculate{"expression":"$c"}; c=math/calculate{"expression":"2"} after a; b=math/calculate{"expression":"1"}`, reasons: "cycle cycle", calls: 2},
		{name: "after no step", reply: text(steps(`{"id":"a","tool":"calculate","arguments":{"expression":"2"},"after":["z"]}`)), want: `model: a=math/calculate{"expression":"2"} after z`, reasons: "missing_reference", calls: 2},
		{name: "1,000 steps", reply: llmtest.Reply{Text: steps(thousand...), Chunk: 4096}, want: "model: n0=math/calculate", calls: 2, warning: "1000 steps"},
		{name: "1,001 steps", reply: llmtest.Reply{Text: steps(append(thousand, sum)...), Chunk: 4096}, want: byRules, calls: 2},
		{name: "429 with a Retry-After beyond the query", reply: llmtest.Reply{Status: 429, Text: "slow", Header: http.Header{"Retry-After": {"3600"}}}, want: byRules, calls: 1},
		{name: "500", reply: llmtest.Reply{Status: 500}, want: byRules, calls: 3},
		{name: "stall before anything", reply: llmtest.Reply{Fault: llmtest.StallFirst}, want: byRules, calls: 3},
		{name: "128 MiB line", reply: llmtest.Reply{Text: searchPlan, Fault: llmtest.LongLine}, want: byRules, calls: 1},
		{name: "refused parameters", reply: llmtest.Reply{Text: searchPlan, Refuse: []string{"strict", "json_schema", "stream_options"}}, want: search, calls: 4},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := connect(t, func(_ *planner.Options, c *llm.Config) {
				if strings.HasPrefix(row.name, "stall") {
					c.Timeout = 200 * time.Millisecond
				}
			})
			f.Answer(row.reply)
			limit := time.Minute // catches what hangs
			if strings.HasSuffix(row.name, "beyond the query") {
				limit = 20 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			early := 0
			got, err := f.planner.Plan(ctx, planner.Request{Query: "q", Tools: tools(), OnStep: func(s plan.Step) {
				if early++; s.Tool == "mail.send" || s.Tool == "chat.send" {
					t.Errorf("%s was started early, want only what reads", s.Tool)
				}
			}})
			runtime.ReadMemStats(&after)
			if err != nil || ctx.Err() != nil {
				t.Fatalf("got %v within %v (%v), want a plan", err, limit, ctx.Err())
			}
			// The scripted model allocates in this process too.
			if used := after.TotalAlloc - before.TotalAlloc; used > 256<<20 {
				t.Errorf("got %d MiB allocated, want at most 256", used>>20)
			}
			if made := brief(got.Plan); made != row.want && (row.name != "1,000 steps" || !strings.HasPrefix(made, row.want) || len(got.Plan.Steps) != 100) {
				t.Errorf("got plan %.500s\nwant %s", made, row.want)
			}
			var reasons []string
			for _, p := range got.Problems {
				reasons = append(reasons, p.Error.Reason)
			}
			if strings.Join(reasons, " ") != row.reasons || early > 100 {
				t.Errorf("got problems %q and %d early steps, want %q and 100 at most", reasons, early, row.reasons)
			}
			if got.Usage.Calls != row.calls || !strings.Contains(strings.Join(got.Warnings, "\n"), row.warning) {
				t.Errorf("got %d requests and warnings %q, want %d and %q", got.Usage.Calls, got.Warnings, row.calls, row.warning)
			}
		})
	}
}

// TestBadSchemas: what a server says of its parameters decides about its own tool alone, in bounded time.
func TestBadSchemas(t *testing.T) {
	for name, schema := range map[string]string{
		"reference to itself": `{"$ref":"#"}`,
		"25 levels, doubled":  `{"$defs":{` + doubled(25) + `},"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}}}`,
		"brackets":            strings.Repeat("[", 100_000),
		"wide": `{"type":"object","properties":{"a":{"$ref":"#/$defs/w"}},"$defs":{"w":{"type":"object","properties":{` +
			strings.TrimSuffix(strings.Repeat(`"a":{"$ref":"#/$defs/w"},`, 5000), ",") + `}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := connect(t, nil)
			f.Answer(llmtest.Reply{Text: `{"steps":[{"id":"x","tool":"odd","arguments":{"a":"text"}},{"id":"a","tool":"web_search","arguments":{"query":"news"}}]}`})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			odd := plan.Tool{Name: "odd", Server: "s", Tool: "odd", InputSchema: json.RawMessage(schema), OutputSchema: json.RawMessage(schema)}
			got, err := f.planner.Plan(ctx, planner.Request{Query: "q", Tools: append(tools(), odd)})
			if err != nil || ctx.Err() != nil || got.Plan.Source != plan.SourceModel || len(got.Plan.Steps) != 2 {
				t.Fatalf("got %s, %v, want the model's plan within a minute", brief(got.Plan), err)
			}
			for _, p := range got.Problems {
				if p.Step != "x" {
					t.Errorf("got problem %+v of a step of another server, want none", p)
				}
			}
		})
	}
}

// doubled are definitions each of which refers to the next one twice.
func doubled(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	return strings.Join(append(out, fmt.Sprintf(`"d%d":{"type":"integer"}`, n)), ",")
}
