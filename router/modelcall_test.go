package router_test

import (
	"context"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/router"
)

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
