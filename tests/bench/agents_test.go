package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

var plot = flag.String("plot", "", "write the plot of BenchmarkAgents to this file")

// How fast the model of BenchmarkAgents is, about five times as fast as one at work, so that the benchmark ends. It
// reads a prompt of any length in the same time, which favours whoever sends the longer ones.
const (
	agentFirst = 100 * time.Millisecond // until the first piece
	agentPace  = 2 * time.Millisecond   // for 4 bytes
	agentTool  = 200 * time.Millisecond // of a tool's call
)

// Ways to get a question answered.
const (
	byRouter   = "router"   // process_query of the router
	byTurns    = "turns"    // ReAct, one call a turn (S. Yao et al., ReAct, 2022)
	byParallel = "parallel" // the same loop, with all independent calls in one turn
)

// figures are what answering one question takes.
type figures struct {
	way         string
	needed, out int     // tools called, tools there are
	ms          float64 // from question to answer
	tokens      float64 // of all prompts together
}

// BenchmarkAgents answers the same question with the same model and tools by the router, and by agents that hold all
// the tools themselves.
func BenchmarkAgents(b *testing.B) {
	var all []figures
	for _, out := range []int{10, 100, 1000} {
		for _, needed := range []int{1, 3, 8} {
			w := newAgentWorld(b, needed, out)
			for _, way := range []string{byRouter, byTurns, byParallel} {
				b.Run(fmt.Sprintf("%dof%d/%s", needed, out, way), func(b *testing.B) {
					w.answer(b, way) // connects, lists, and learns what the endpoint can do
					before, calls, n := len(w.model.Requests()), w.tools.calls.Load(), 0
					began := time.Now()
					for b.Loop() {
						w.answer(b, way)
						n++
					}
					took := time.Since(began)
					if made := w.tools.calls.Load() - calls; made != int64(n*needed) {
						b.Fatalf("got %d calls of tools for %d questions, want %d each", made, n, needed)
					}
					tokens := 0
					for _, r := range w.model.Requests()[before:] {
						tokens += len(r.Text) / 4
					}
					f := figures{way, needed, out, ms(took) / float64(n), float64(tokens) / float64(n)}
					b.ReportMetric(f.ms, "ms/question")
					b.ReportMetric(f.tokens, "prompt-tokens/question")
					all = append(all, f)
				})
			}
		}
	}
	if *plot != "" {
		if err := os.WriteFile(*plot, []byte(draw(all)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// agentWorld is one question, the tools there are, and a model that knows which of them it takes.
type agentWorld struct {
	tools    *toolServer
	model    *llmtest.Server
	client   *llm.Client
	question string
	needed   int
	catalog  string // the tools as an agent holds them
	ask      func(tb testing.TB)
}

const (
	agentAnswer = "Here is what you asked for: the newest entries of each kind, as the tools returned them a moment ago, with nothing left out."
	observed    = "Observation: "
)

// subjects are what tools are about, verbs what they do with it.
var (
	subjects = strings.Fields("invoices shipments contracts employees holidays tickets builds releases alerts metrics customers leads orders refunds coupons warehouses suppliers meetings rooms flights hotels recipes songs movies books papers patents stocks currencies weather tides earthquakes planets proteins genes drugs clinics courses exams grants")
	verbs    = strings.Fields("list count find export archive compare rank tag merge split share print translate summarize validate convert import sort filter watch rename copy approve reject review")
)

// agentTools are n tools with descriptions and schemas of the usual size.
func agentTools(n int) []tool {
	tools := make([]tool, n)
	for i := range tools {
		verb, subject := verbs[i/len(subjects)], subjects[i%len(subjects)]
		tools[i] = newTool(verb+"_"+subject, fmt.Sprintf("%s%s %s of the organisation, newest first. Returns at most limit of them, as they are at the moment of the call.", strings.ToUpper(verb[:1]), verb[1:], subject),
			fmt.Sprintf(`{"type":"object","properties":{"query":{"type":"string","description":"Words that the %s must have"},"since":{"type":"string","format":"date","description":"Only those from this day on"},"limit":{"type":"integer","minimum":1,"maximum":100,"default":10}},"required":["query"],"additionalProperties":false}`, subject), agentTool)
	}
	return tools
}

func newAgentWorld(b *testing.B, needed, out int) *agentWorld {
	tools := agentTools(out)
	w := &agentWorld{tools: serveTools(b, tools), model: llmtest.New(b), needed: needed}
	var parts, steps []string
	for i := range needed {
		t := tools[i]
		parts = append(parts, strings.ReplaceAll(t.Name, "_", " "))
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":%q,"arguments":{"query":"all","limit":5}}`, i+1, t.Name))
	}
	w.question = "Please " + strings.Join(parts, ", then ") + "."
	says := func(text string) llmtest.Reply {
		return llmtest.Reply{Text: text, Chunk: 4, First: agentFirst, Every: agentPace}
	}
	w.model.When(llmtest.Structured, says(`{"steps":[`+strings.Join(steps, ",")+`],"more":false}`))
	for turn := range needed {
		w.model.When(seen(byTurns, turn), says(steps[turn]))
	}
	w.model.When(seen(byParallel, 0), says("["+strings.Join(steps, ",")+"]"))
	w.model.Answer(says(agentAnswer))

	list, err := json.Marshal(tools)
	if err != nil {
		b.Fatal(err)
	}
	w.catalog = string(list)
	transport := &http.Transport{}
	b.Cleanup(transport.CloseIdleConnections)
	w.client = llm.New(llm.Config{BaseURL: w.model.BaseURL, Model: "stub"}, llm.Options{HTTPClient: &http.Client{Transport: transport}})
	a := startRouter(b, w.tools, w.model)
	w.ask = func(tb testing.TB) {
		if got := ask(tb, a, w.question, needed); got.Answer != agentAnswer {
			tb.Fatalf("got %q, want the model's answer", got.Answer)
		}
	}
	w.ask(b)
	for _, r := range w.model.Requests() { // the shortlist must have what the plan names
		for _, t := range tools[:needed] {
			if llmtest.Structured(r) && !strings.Contains(r.Text, t.Name+"(") {
				b.Fatalf("the planner was not shown %s", t.Name)
			}
		}
	}
	return w
}

// seen holds of an agent's turn after so many calls.
func seen(way string, calls int) func(llmtest.Request) bool {
	return func(r llmtest.Request) bool {
		return strings.HasPrefix(r.System, way+":") && strings.Count(r.Text, observed) == calls
	}
}

func (w *agentWorld) answer(b *testing.B, way string) {
	if way == byRouter {
		w.ask(b)
	} else if got := w.loop(b, way); got != agentAnswer {
		b.Fatalf("got %q, want the model's answer", got)
	}
}

// loop is an agent without a planner: it shows the model all tools and what came so far, calls what the model names,
// and ends with the first text that names nothing.
func (w *agentWorld) loop(b *testing.B, way string) string {
	system := way + `: Answer the question with these tools. Reply with {"tool":NAME,"arguments":{}} to call one` +
		map[string]string{byTurns: ".", byParallel: ", or with an array of such objects to call several at once."}[way] +
		" Reply with the answer once you know it.\n" + w.catalog
	turns := []llm.Message{{Role: llm.RoleUser, Content: w.question}}
	for range w.needed + 1 {
		resp, err := w.client.Complete(context.Background(), llm.Request{System: system, Messages: turns})
		if err != nil {
			b.Fatal(err)
		}
		calls := actions(resp.Text)
		if calls == nil {
			return resp.Text
		}
		var all sync.WaitGroup
		for _, c := range calls {
			all.Go(func() {
				if err := w.tools.call(c.Tool, string(c.Arguments)); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		turns = append(turns, llm.Message{Role: llm.RoleAssistant, Content: resp.Text})
		for range calls {
			turns = append(turns, llm.Message{Role: llm.RoleUser, Content: observed + found})
		}
	}
	b.Fatal("the loop has no end")
	return ""
}

type action struct {
	Tool      string
	Arguments json.RawMessage
}

// actions reads the calls that a text names, none if it is the answer.
func actions(text string) []action {
	var one action
	if json.Unmarshal([]byte(text), &one) == nil && one.Tool != "" {
		return []action{one}
	}
	var several []action
	if json.Unmarshal([]byte(text), &several) == nil {
		return several
	}
	return nil
}
