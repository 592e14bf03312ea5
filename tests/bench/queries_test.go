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
	a := startRouter(b, model, tools.config())
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
	b.ReportMetric(promptBytes(model), "prompt-bytes/query")
}

// BenchmarkEach reports the time of a loop over 1,000 elements as a ratio to that of its calls, all places in use: as
// long as each was asked to nap, and as long as it did.
func BenchmarkEach(b *testing.B) {
	const calls, places = 1000, 8
	tools := serveTools(b, []tool{newTool("list", "Lists.", `{"type":"object"}`, 0), newTool("nap", "Sleeps.", `{"type":"object"}`, toolTime)})
	a := startRouter(b, nil, tools.config())
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

// pace is how fast the model writes where the time to the first step counts: 4 bytes per 10 ms.
const pace = 10 * time.Millisecond

// written is how long the model takes for a text, from its first piece to its last.
func written(text string) time.Duration { return time.Duration((len(text)+3)/4-1) * pace }

// BenchmarkThreeSources reports the time of a question with three parallel sources as a ratio to the time until all of
// them are called, plus the slowest of them, plus the answer.
func BenchmarkThreeSources(b *testing.B) {
	const object, slowest = `{"type":"object"}`, 1500 * time.Millisecond
	tools := serveTools(b, []tool{newTool("news", "The news.", object, time.Second), newTool("mail", "Mail.", object, 1200*time.Millisecond), newTool("files", "Files.", object, slowest)})
	model := llmtest.New(b)
	const plan = `{"steps":[{"id":"s1","tool":"news","arguments":{"about":"AI"}},{"id":"s2","tool":"mail","arguments":{"folder":"inbox"}},{"id":"s3","tool":"files","arguments":{"name":"*.md"}}],"more":false}`
	const answer = "There are news of AI [s1], four mails in your inbox [s2], and nine files whose names end in .md [s3]."
	model.When(llmtest.Structured, llmtest.Reply{Text: plan, Chunk: 4, Every: pace})
	model.Answer(llmtest.Reply{Text: answer, Chunk: 4, Every: pace})
	a := startRouter(b, model, tools.config())
	const question = "What is new in AI, in my inbox and among my notes?"
	ask(b, a, question, 3)
	var ratio, first float64
	n := 0
	for b.Loop() {
		began := time.Now()
		got := ask(b, a, question, 3)
		took := float64(time.Since(began).Microseconds()) / 1000
		called := 0.0
		for _, s := range got.Steps {
			called = max(called, s.Started)
		}
		ratio += took / (called + ms(slowest) + ms(written(answer)))
		first += got.Steps[0].Started / ms(written(plan))
		n++
	}
	b.ReportMetric(ratio/float64(n), "wall/ideal")
	b.ReportMetric(first/float64(n), "first-step/plan")
}

// BenchmarkFirstStep reports after which part of the stream of the pinned plan the first step is called.
func BenchmarkFirstStep(b *testing.B) {
	const object = `{"type":"object"}`
	mail := newTool("mail.send", "Send a mail.", object, 0)
	mail.Annotations = []byte(`{}`)
	tools := serveTools(b, []tool{newTool("web_search", "Search the web.", object, 0), newTool("calculate", "Calculate.", object, 0), newTool("query_hr", "Ask for people.", object, 0), mail})
	model := llmtest.New(b)
	model.When(llmtest.Structured, llmtest.Reply{Text: llmtest.PinnedPlan, Chunk: 4, Every: pace})
	model.Answer(llmtest.Reply{Text: "Done.", Chunk: 100})
	a := startRouter(b, model, tools.config())
	const question = "News, a percentage, people in Berlin, and a mail about all of it."
	ask(b, a, question, 4)
	var share float64
	n := 0
	for b.Loop() {
		share += ask(b, a, question, 4).Steps[0].Started / ms(written(llmtest.PinnedPlan))
		n++
	}
	b.ReportMetric(share/float64(n), "first-step/plan")
	b.ReportMetric(promptBytes(model), "prompt-bytes/query")
}

// promptBytes returns the bytes of the last two prompts, for the plan and the answer of a query.
func promptBytes(model *llmtest.Server) float64 {
	n, requests := 0, model.Requests()
	for _, r := range requests[len(requests)-2:] {
		n += len(r.Text)
	}
	return float64(n)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
