package bench

import (
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

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
	a := startRouter(b, tools, model)
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
	a := startRouter(b, tools, model)
	const question = "News, a percentage, people in Berlin, and a mail about all of it."
	ask(b, a, question, 4)
	var share float64
	n := 0
	for b.Loop() {
		share += ask(b, a, question, 4).Steps[0].Started / ms(written(llmtest.PinnedPlan))
		n++
	}
	b.ReportMetric(share/float64(n), "first-step/plan")
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
