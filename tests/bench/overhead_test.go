package bench

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

const (
	modelTime = 40 * time.Millisecond // of each of two answers
	toolTime  = 30 * time.Millisecond // of each of a chain's two steps
)

// BenchmarkQueryOverhead reports what process_query adds to two model answers and the slowest of two chains of two steps
// that run beside each other. A plain client makes the same requests after each query, because the naps of a scripted
// model and of a tool end late by up to two milliseconds.
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
	requests := model.Requests()
	planning, answering := requests[len(requests)-2], requests[len(requests)-1]
	var added []time.Duration
	for b.Loop() {
		began := time.Now()
		ask(b, a, question, 4)
		took := time.Since(began)
		began = time.Now()
		post(b, model.BaseURL+"/chat/completions", planning.Body)
		var chains sync.WaitGroup
		for range 2 {
			chains.Go(func() {
				for range 2 {
					if err := tools.call("nap", `{}`); err != nil {
						b.Error(err)
					}
				}
			})
		}
		chains.Wait()
		post(b, model.BaseURL+"/chat/completions", answering.Body)
		added = append(added, took-time.Since(began))
	}
	slices.Sort(added)
	b.ReportMetric(ms(added[len(added)/2]), "added-ms/query")
}

// BenchmarkEach reports the time of a loop over 1,000 elements as a ratio to that of its calls, all places in use: as
// long as each was asked to nap, and as long as it did.
func BenchmarkEach(b *testing.B) {
	const calls, places = 1000, 8
	tools := serveTools(b, []tool{newTool("list", "Lists.", `{"type":"object"}`, 0), newTool("nap", "Sleeps.", `{"type":"object"}`, toolTime)})
	a := startRouter(b, tools, llmtest.New(b))
	arguments := map[string]any{"query": "Sleep often.", "plan": json.RawMessage(`{"steps":[` +
		`{"id":"l","tool":"list","arguments":{},"pick":"1..1000"},{"id":"e","tool":"nap","each":"$l","arguments":{"n":"$item"}}]}`)}
	var took, napped time.Duration
	n := 0
	for b.Loop() {
		tools.napped.Store(0)
		got := query(b, a, arguments)
		if len(got.Steps) != calls+1 || !got.Steps[calls].Success {
			b.Fatalf("got %d steps, want %d that succeed: %s", len(got.Steps), calls+1, got.Answer)
		}
		first, last := got.Steps[1].Started, 0.0
		for _, s := range got.Steps[1:] {
			first, last = min(first, s.Started), max(last, s.Started+s.Duration)
		}
		took += time.Duration((last - first) * float64(time.Millisecond))
		napped += time.Duration(tools.napped.Load())
		n++
	}
	b.ReportMetric(took.Seconds()/(float64(n*calls)/places*toolTime.Seconds()), "wall/asked")
	b.ReportMetric(took.Seconds()/(napped.Seconds()/places), "wall/napped")
}
