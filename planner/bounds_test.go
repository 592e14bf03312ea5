package planner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/tests/toolset"
)

// said is a model that always answers the same.
type said llm.Response

// Complete implements llm.Model.
func (s said) Complete(context.Context, llm.Request) (llm.Response, error) {
	return llm.Response(s), nil
}

// TestTokens: what the endpoint counts holds; where it counts nothing, four bytes of prompt and answer are a token.
func TestTokens(t *testing.T) {
	tokens := func(answer llm.Response) int {
		p := planner.New(planner.Options{Fallback: rules{}, Model: said(answer)})
		got, err := p.Plan(t.Context(), planner.Request{Query: "news", Tools: tools(), Tokens: 5})
		if err != nil || got.Plan.Source != plan.SourceModel {
			t.Fatalf("got %+v, %v, want a plan of the model", got, err)
		}
		return got.Tokens - 5
	}
	short, long := tokens(llm.Response{Text: "[]"}), tokens(llm.Response{Text: "[]" + strings.Repeat(" ", 4000)})
	if short < 100 || long-short != 1000 {
		t.Errorf("estimated %d tokens, and %d with 4000 bytes more of answer; want 1000 more", short, long)
	}
	if long := tokens(llm.Response{Text: "[]", Calls: []llm.Call{{Arguments: strings.Repeat(" ", 4000)}}}); long-short != 1000 {
		t.Errorf("estimated %d tokens more for 4000 bytes of calls, want 1000", long-short)
	}
	if got := tokens(llm.Response{Text: "[]", Usage: llm.Usage{InputTokens: 90_000, OutputTokens: 1234}}); got != 91_234 {
		t.Errorf("got %d tokens, want the 91234 that were counted", got)
	}
}

// TestAsManyStepsAsAllowed: a plan that just fits is taken as it is.
func TestAsManyStepsAsAllowed(t *testing.T) {
	var steps []string
	for i := range 100 {
		steps = append(steps, fmt.Sprintf(`{"id":"n%d","tool":"calculate","arguments":{"expression":"%d"}}`, i, i))
	}
	p := planner.New(planner.Options{Fallback: rules{}, Model: said{Text: `{"steps":[` + strings.Join(steps, ",") + `]}`}})
	got, err := p.Plan(t.Context(), planner.Request{Query: "count", Tools: tools()})
	if err != nil || len(got.Plan.Steps) != 100 || len(got.Warnings) > 0 {
		t.Errorf("got %d steps, warnings %q, %v, want 100 and none", len(got.Plan.Steps), got.Warnings, err)
	}
}

// TestNoTools: a model that could call nothing is not asked.
func TestNoTools(t *testing.T) {
	p := planner.New(planner.Options{Fallback: rules{}, Model: said{Text: `[]`}})
	got, err := p.Plan(t.Context(), planner.Request{Query: "news", Tools: toolset.List{}})
	if err != nil || got.Plan.Source != plan.SourceRules || got.Usage.Calls != 0 || got.Tokens != 0 {
		t.Errorf("got %+v, %v, want the rules' plan and no tokens", got, err)
	}
}
