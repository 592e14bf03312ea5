package bench

import (
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

const (
	modelTime = 40 * time.Millisecond // of each of two answers
	toolTime  = 30 * time.Millisecond // of each of a chain's two steps
)

// BenchmarkQueryOverhead reports what process_query adds to the time of the model and of the slowest chain
// of tools: two model answers, and two chains of two steps that run beside each other.
func BenchmarkQueryOverhead(b *testing.B) {
	tools := serveTools(b, []tool{newTool("nap", "Sleeps.", `{"type":"object"}`, toolTime)})
	model := llmtest.New(b)
	plan := `{"steps":[{"id":"a","tool":"nap","arguments":{}},{"id":"b","tool":"nap","arguments":{},"after":["a"]},` +
		`{"id":"c","tool":"nap","arguments":{}},{"id":"d","tool":"nap","arguments":{},"after":["c"]}]}`
	model.When(llmtest.Structured, llmtest.Reply{Text: plan, Chunk: len(plan), First: modelTime})
	model.Answer(llmtest.Reply{Text: "All awake [a].", Chunk: 100, First: modelTime})
	a := startRouter(b, tools, model)
	const question = "Sleep twice, twice."
	ask(b, a, question, 4) // connects, lists, and learns what the endpoint can do
	floor := 2*modelTime + 2*toolTime
	var total time.Duration
	n := 0
	for b.Loop() {
		began := time.Now()
		ask(b, a, question, 4)
		total += time.Since(began)
		n++
	}
	b.ReportMetric(float64((total/time.Duration(n)-floor).Microseconds())/1000, "added-ms/query")
}
