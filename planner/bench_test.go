package planner_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/planner"
)

// BenchmarkShow measures what choosing the tools of a prompt costs, over as many tools as are listed and over more.
func BenchmarkShow(b *testing.B) {
	for _, n := range []int{40, 200, 1000} {
		list := office(n)
		p := planner.New(planner.Options{Fallback: rules{}, Ranker: newSearched(list)})
		req := planner.Request{Query: "Find the refunds since Monday and tag them", Tools: list}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Show(b.Context(), req)
			}
		})
	}
}

// BenchmarkPlan measures what planning costs beyond the model: prompt, stream, reading and checking the plan. The
// scripted model's own work is in it.
func BenchmarkPlan(b *testing.B) {
	s, err := llmtest.Start("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	s.Answer(llmtest.Reply{Text: searchPlan, Chunk: 1000})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	model := llm.New(llm.Config{BaseURL: s.BaseURL, Model: "stub"}, llm.Options{HTTPClient: &http.Client{Transport: transport}})
	p := planner.New(planner.Options{Model: model, Fallback: rules{}})
	req := planner.Request{Query: "What's the latest AI news?", Tools: tools()}
	for b.Loop() {
		if _, err := p.Plan(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}
