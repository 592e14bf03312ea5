package router_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/router"
)

// A client that offers sampling is asked, and not asked again once it has refused.
func TestSampling(t *testing.T) {
	const question = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"process_query","arguments":{"query":"find a hotel room in Oslo"}}}`
	offers := func(o *router.Options, _ *downstream.Options) { o.Models.Sampling = true }
	says := func(text, rest string) string {
		quoted, _ := json.Marshal(text)
		return fmt.Sprintf(`"result":{"role":"assistant","content":{"type":"text","text":%s}%s}`, quoted, rest)
	}
	for _, row := range []struct {
		name, caps, answer     string
		asks                   int
		source, model, warning string
	}{
		{"it plans and answers", `{"sampling":{}}`, says(`[]`, `,"model":"client-1"`), 2, "model", "client-1", ""},
		{"it has no name", `{"sampling":{}}`, says(`[]`, ``), 2, "model", "the client's", ""},
		{"it refuses", `{"sampling":{}}`, `"error":{"code":-1,"message":"The user said no"}`, 1, "rules", "the client's", "the client refused sampling: The user said no"},
		{"it stops early", `{"sampling":{}}`, says(`[]`, `,"stopReason":"maxTokens"`), 2, "rules", "", "reached its length limit"},
		{"it is not offered", `{}`, ``, 0, "rules", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := newKit(t, offers)
			s := k.sessionOf(row.caps)
			s.answer = row.answer
			lines := s.ask(question)
			asks := len(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.Contains(l, "sampling/createMessage") }))
			var m struct {
				Result struct {
					StructuredContent struct {
						Plan  struct{ Source string }
						Usage struct {
							Planner struct{ Model string }
						}
					}
				}
			}
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &m); err != nil {
				t.Fatal(err)
			}
			got := m.Result.StructuredContent
			if asks != row.asks || got.Plan.Source != row.source || row.model != "" && got.Usage.Planner.Model != row.model {
				t.Errorf("got %d questions and %+v, want %d, a plan by %s and the model %s", asks, got, row.asks, row.source, row.model)
			}
			if answer := lines[len(lines)-1]; !strings.Contains(answer, row.warning) {
				t.Errorf("got %s, want %q in it", answer, row.warning)
			}
		})
	}
}

// caller is a model that calls a tool.
type caller struct{}

// Complete implements llm.Model.
func (caller) Complete(context.Context, llm.Request) (llm.Response, error) {
	return llm.Response{Calls: []llm.Call{{Name: "web_search", Arguments: `{"query":"news"}`}}}, nil
}

// TestObservedCalls: the span of a request to a model has the calls that the model makes.
func TestObservedCalls(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	tracer := tracing.New(provider.Tracer("test"), true, func(text string) string { return text })
	model := router.Observed{Tracer: tracer}.Model(caller{}, "m", "http://localhost/v1")
	if _, err := model.Complete(t.Context(), llm.Request{}); err != nil {
		t.Fatal(err)
	}
	for _, kv := range spans.GetSpans()[0].Attributes {
		if kv.Key == tracing.OutputMessages {
			if text := kv.Value.AsString(); !strings.Contains(text, `"name":"web_search","arguments":"{\"query\":\"news\"}"`) {
				t.Errorf("got %s, want the call", text)
			}
			return
		}
	}
	t.Error("got no message of the model")
}
