package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// modelFaults are those of a model. Each happens while it plans one question and while it writes the answer to
// another, whose plan writes.
func modelFaults() []fault {
	const fallback = "plan by rules; answer degraded, the write done once"
	faults := []fault{
		{name: "a model that answers 429 for a while", outcome: "plan by model; answer whole, the write done once", run: model(
			llmtest.Reply{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"0"}}}, true)},
		{name: "a model that answers 429 for good", outcome: fallback, run: model(
			llmtest.Reply{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"0"}}}, false)},
		{name: "a model that answers 503", outcome: fallback, run: model(llmtest.Reply{Status: http.StatusServiceUnavailable}, false)},
	}
	for _, m := range []struct {
		name  string
		fault llmtest.Fault
	}{
		{"that stalls in the middle of its answer", llmtest.Stall},
		{"that says nothing", llmtest.StallFirst},
		{"whose answer is cut", llmtest.End},
		{"whose connection breaks", llmtest.Drop},
		{"that answers with an HTML page", llmtest.HTML},
		{"that answers with an error frame", llmtest.ErrorFrame},
		{"that answers with a line of 128 MiB", llmtest.LongLine},
	} {
		bad := llmtest.Reply{Fault: m.fault, Text: "half of this is missing", Chunk: 4}
		faults = append(faults, fault{name: "a model " + m.name, outcome: fallback, run: model(bad, false)})
	}
	for i := range faults {
		faults[i].waits = true // between attempts
	}
	return faults
}

// model has a model fail with a reply, once or for good, and says where the plan of one question came from and
// what became of the answer to another.
func model(bad llmtest.Reply, once bool) func(w *world) string {
	const unplanned, unanswered = "alpha: return the arguments", "beta: write the key"
	return func(w *world) string {
		key := w.key()
		plan := llmtest.Reply{Text: `[{"tool":"subject__write","arguments":{"key":"` + key + `"}}]`}
		read := llmtest.Reply{Text: `[{"tool":"subject__echo","arguments":{}}]`}
		fine := llmtest.Reply{Text: "All is well."}
		m := llmtest.New(w.t)
		script := func(good llmtest.Reply) []llmtest.Reply {
			if once {
				return []llmtest.Reply{bad, good}
			}
			return []llmtest.Reply{bad}
		}
		m.When(both(llmtest.Structured, llmtest.Contains(unplanned)), script(read)...)
		m.When(llmtest.Structured, plan)
		m.When(llmtest.Contains(unanswered), script(fine)...)
		m.Answer(fine)
		timeout := 2 * time.Second
		if once {
			timeout = ample // it answers in the end
		}
		w.start(func(o *app.Options) {
			o.Config.LLM = &config.LLM{Planner: llm.Config{BaseURL: m.BaseURL, Model: "stub", Timeout: timeout}}
		}, w.serve(subject, &mcptest.Server{}))
		w.ready()

		first, second := make(chan answer, 1), make(chan answer, 1)
		go func() { first <- w.query(unplanned) }()
		go func() { second <- w.query(unanswered) }()
		a, b := <-first, <-second
		quality := map[bool]string{true: "degraded", false: "whole"}[b.Degraded]
		writes, err := w.ledger.Writes()
		if err != nil {
			w.t.Error(err)
		}
		times := map[int]string{0: "not done", 1: "done once"}[writes[key]]
		return fmt.Sprintf("plan by %s; answer %s, the write %s", a.Plan.Source, quality, times)
	}
}

func both(a, b func(llmtest.Request) bool) func(llmtest.Request) bool {
	return func(r llmtest.Request) bool { return a(r) && b(r) }
}

// answer is the structuredContent of process_query as far as the suite looks at it.
type answer struct {
	Degraded bool
	Plan     struct{ Source string }
}

// query asks a question.
func (w *world) query(question string) answer {
	began := time.Now()
	const limit = 55 * time.Second // query.timeout
	c := mcptest.Client{URL: w.base + "/mcp", HTTP: w.http}
	r := w.within(limit, func(ctx context.Context) mcptest.Reply {
		return c.Call(ctx, "process_query", fmt.Sprintf(`{"query":%q}`, question))
	})
	var result struct{ StructuredContent answer }
	if err := json.Unmarshal(r.Result, &result); err != nil || r.Outcome() != "result" {
		w.t.Errorf("%s: got %s (%v), want a result", question, r.Outcome(), r.Err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slowest = max(w.slowest, time.Since(began))
	return result.StructuredContent
}
