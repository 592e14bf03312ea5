package router_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router"
)

// The writer of the answer may ask for one more round, while there is one and nothing else stands against it.
func TestWriterAsks(t *testing.T) {
	const (
		one    = `{"steps":[{"id":"a","tool":"echo","arguments":{"v":1}}]}`
		two    = `{"steps":[{"id":"b","tool":"echo","arguments":{"w":"$a.v"}}]}`
		write  = `{"steps":[{"id":"b","tool":"note","arguments":{"w":"$a.v"}}]}`
		asks   = "[more: the  w of\tv]"
		needed = "The writer of the answer says what these results lack."
	)
	for _, row := range []struct {
		name    string
		plans   []string
		says    []string // of the writer
		query   router.Query
		change  func(*router.Options, *downstream.Options)
		steps   string
		answer  string
		offered string // to the writer, for each of its answers
		planned int    // questions to the planner
	}{
		{name: "not", plans: []string{one}, says: []string{"All well."}, steps: `a=echo{"v":1}`, answer: "All well.", offered: "y", planned: 1},
		{name: "once", plans: []string{one, two}, says: []string{asks, "It is 1 [b]."}, steps: `a=echo{"v":1}; b=echo{"w":1}`, answer: "It is 1 [b].", offered: "yn", planned: 2},
		{name: "in vain", plans: []string{one, `[]`}, says: []string{asks, "I cannot say."}, steps: `a=echo{"v":1}`, answer: "I cannot say.", offered: "yn", planned: 2},
		{name: "twice", plans: []string{one, two, two}, says: []string{asks, "[more: even more]\nIt is 1."}, steps: `a=echo{"v":1}; b=echo{"w":1}`, answer: "It is 1.", offered: "yn", planned: 2},
		{name: "and says more", plans: []string{one, two}, says: []string{asks + "\nI need that.", "It is 1."}, steps: `a=echo{"v":1}; b=echo{"w":1}`, answer: "It is 1.", offered: "yn", planned: 2},
		{name: "behind its thoughts", plans: []string{one, two}, says: []string{"<think>Hm.</think>\n" + asks, "It is 1."}, steps: `a=echo{"v":1}; b=echo{"w":1}`, answer: "It is 1.", offered: "yn", planned: 2},
		{name: "too late in its text", plans: []string{one}, says: []string{"Well. " + asks}, steps: `a=echo{"v":1}`, answer: "Well. " + asks, offered: "y", planned: 1},
		{name: "twice and no more", plans: []string{one, two, two}, says: []string{asks, "[more: even more]"}, steps: `a=echo{"v":1}; b=echo{"w":1}`, answer: "Not found: even more", offered: "yn", planned: 2},
		{name: "for nothing", plans: []string{one}, says: []string{"[more: ]"}, steps: `a=echo{"v":1}`, answer: "[more: ]", offered: "y", planned: 1},
		{name: "for a write", plans: []string{one, write}, says: []string{asks, "Not written."}, steps: `a=echo{"v":1}; b=note{"w":1} needs_approval`, answer: "Not written.", offered: "yn", planned: 2},
		{name: "in the last round", query: router.Query{MaxRounds: 1}, plans: []string{one, two}, says: []string{asks + " It is so."}, steps: `a=echo{"v":1}`, answer: "It is so.", offered: "n", planned: 1},
		{name: "after two rounds", plans: []string{strings.Replace(one, "]}", `],"more":true}`, 1), two, `[{"tool":"echo","arguments":{"x":1}}]`}, says: []string{asks, "Done."},
			steps: `a=echo{"v":1}; b=echo{"w":1}; s1=echo{"x":1}`, answer: "Done.", offered: "yn", planned: 3},
		{name: "of a plan that was given", query: router.Query{Plan: json.RawMessage(one)}, plans: []string{two}, says: []string{asks + " It is so."}, steps: `a=echo{"v":1}`, answer: "It is so.", offered: "n"},
		{name: "without a result", plans: []string{`[]`}, says: []string{asks + " It is so."}, answer: "It is so.", offered: "n", planned: 1},
		{name: "with a write to approve", plans: []string{`[{"tool":"echo"},{"tool":"wipe"}]`}, says: []string{asks + " It is so."}, steps: `s1=echo{}; s2=wipe{} needs_approval`, answer: "It is so.", offered: "n", planned: 1},
		{name: "with a write that may be done", plans: []string{`[{"tool":"echo"},{"tool":"note"}]`}, says: []string{asks + " It is so."}, steps: `s1=echo{}; s2=note{} outcome_unknown`, answer: "It is so.", offered: "n", planned: 1,
			change: func(o *router.Options, _ *downstream.Options) {
				o.Calls = failsOnce("note", &downstream.Failure{Server: "peer", Reason: reason.OutcomeUnknown, MaybeDelivered: true})
			}},
		{name: "with little time", query: router.Query{Timeout: 2 * time.Second}, plans: []string{`[{"tool":"echo"},{"tool":"hang"}]`}, says: []string{asks + " It is so."}, steps: `s1=echo{}; s2=hang{} timeout`, answer: "It is so.", offered: "n", planned: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := newKit(t, row.change, row.plans...)
			k.model.Reset()
			var plans, answers []llmtest.Reply
			for _, p := range row.plans {
				plans = append(plans, llmtest.Reply{Text: p, Chunk: len(p)})
			}
			for _, text := range row.says {
				answers = append(answers, llmtest.Reply{Text: text, Chunk: 5})
			}
			k.model.When(llmtest.Structured, plans...)
			k.model.Answer(answers...)
			var values []float64
			var texts []string
			row.query.Report = router.NewReporter(func(value float64, text string) { values, texts = append(values, value), append(texts, text) })
			defer row.query.Report.Close()
			r := k.query(row.query)
			if got := brief(r); got != row.steps {
				t.Errorf("got the steps %s, want %s", got, row.steps)
			}
			if got, _, _ := strings.Cut(r.Answer.Text, "\n\n"); got != row.answer {
				t.Errorf("got the answer %q, want %q", r.Answer.Text, row.answer)
			}
			offered, planned, needs := "", 0, 0
			for _, q := range k.model.Requests() {
				switch {
				case llmtest.Structured(q):
					planned++
					if strings.Contains(q.Text, needed) {
						needs++
						if !strings.Contains(q.Text, "<data from=\"the writer\">\n| the w of v\n</data>") {
							t.Errorf("got the prompt %s, want what the writer asks for", q.Text)
						}
					}
				case strings.Contains(q.Text, "More can be looked up, once."):
					offered += "y"
				default:
					offered += "n"
				}
			}
			if offered != row.offered || planned != row.planned || needs != len(offered)-1 {
				t.Errorf("got %d plans, %d of them for the writer, which was offered %s; want %d, %d and %s", planned, needs, offered, row.planned, len(row.offered)-1, row.offered)
			}
			if r.PlannerUsage.Calls != planned || r.Answer.Usage.Calls != len(offered) {
				t.Errorf("got the usage %+v and %+v, want %d and %d calls", r.PlannerUsage, r.Answer.Usage, planned, len(offered))
			}
			var phases []string
			var writing time.Duration
			for _, p := range r.Phases {
				if phases = append(phases, p.Name); p.Name == router.PhaseSynthesis {
					writing += p.Duration
				}
			}
			if n := len(offered); strings.Count(strings.Join(phases, " "), router.PhaseSynthesis) != n || phases[len(phases)-1] != router.PhaseSynthesis || r.Timings.Synthesizing != writing {
				t.Errorf("got the phases %v and %v of writing, want it %d times and %v", phases, r.Timings.Synthesizing, n, writing)
			}
			if !slices.IsSorted(values) || values[len(values)-1] != 1 || !slices.Contains(texts, "Synthesizing response...") {
				t.Errorf("got the progress %v %q", values, texts)
			}
			for _, text := range texts {
				if strings.HasPrefix(text, "[m") {
					t.Errorf("got the progress %q, want no mark", texts)
				}
			}
		})
	}
}

// A round that the writer asks for reports its steps before the answer begins.
func TestWriterAsks_Progress(t *testing.T) {
	k := newKit(t, nil, `[{"tool":"works","arguments":{"v":1}}]`, `[{"tool":"works","arguments":{"v":2}}]`)
	k.model.Reset()
	k.model.When(llmtest.Structured, llmtest.Reply{Text: `[{"tool":"works","arguments":{"v":1}}]`}, llmtest.Reply{Text: `[{"tool":"works","arguments":{"v":2}}]`})
	k.model.Answer(llmtest.Reply{Text: "[more: v]", Chunk: 3}, llmtest.Reply{Text: "All well.", Chunk: 3})
	var got []string
	last := 0.0
	report := router.NewReporter(func(value float64, text string) {
		if got = append(got, text); value <= last {
			t.Errorf("got %v after %v", value, last)
		}
		last = value
	})
	defer report.Close()
	k.query(router.Query{Report: report})
	const step = "[works] Working..."
	want := []string{"Planning tool calls...", "Executing 1 tools...", step, step, step, step, step, step, "All tools complete", "Synthesizing response...", "Complete!"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
