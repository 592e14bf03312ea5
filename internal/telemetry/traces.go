package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/telemetry/otlp"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// usualRatio is the part of the traces that a collector gets unless OTEL_TRACES_SAMPLER is set.
const usualRatio = 0.1

// startTraces follows OTEL_TRACES_EXPORTER. The console exporter writes to standard error, because standard output
// carries the protocol. The SDK reads the variables of the sampler, the limits of spans and the batches.
func (t *Telemetry) startTraces(cfg Config, about *resource.Resource, mask *redact.Masker) error {
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(about)}
	exports := exportsTraces(cfg)
	switch name := os.Getenv("OTEL_TRACES_EXPORTER"); {
	case !exports:
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	case name == "console":
		var err error
		if t.spans, err = newSpanQueue(printSpans, func() {}); err != nil {
			return err
		}
	case name == "" || name == "otlp":
		client, err := otlp.NewClient("traces")
		if err != nil {
			return err
		}
		if t.spans, err = newSpanQueue(client.ExportSpans, client.Close); err != nil {
			return err
		}
		if os.Getenv("OTEL_TRACES_SAMPLER") == "" {
			options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(usualRatio))))
		}
	default:
		return fmt.Errorf("OTEL_TRACES_EXPORTER: want otlp, console or none, got %q", name)
	}
	if t.spans != nil {
		options = append(options, sdktrace.WithSpanProcessor(t.spans))
	}
	provider := sdktrace.NewTracerProvider(options...)
	t.shutdown = append(t.shutdown, provider.Shutdown)
	var content func(string) string
	if cfg.Content {
		content = mask.Text
	}
	t.tracer = tracing.New(provider.Tracer(scope), exports, content)
	return nil
}

// printSpans writes spans to standard error, each as a line of JSON.
func printSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	out := json.NewEncoder(os.Stderr)
	for _, span := range tracetest.SpanStubsFromReadOnlySpans(spans) {
		if err := out.Encode(span); err != nil {
			return err
		}
	}
	return nil
}

func exportsTraces(cfg Config) bool {
	if disabled() || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	if cfg.Traces != nil {
		return *cfg.Traces
	}
	return os.Getenv("OTEL_TRACES_EXPORTER") != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
		os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Tracer returns the router's tracer.
func (t *Telemetry) Tracer() tracing.Tracer { return t.tracer }

// DroppedSpans returns the number of spans not exported because the collector is slow or refuses them.
func (t *Telemetry) DroppedSpans() int64 {
	if t.spans == nil {
		return 0
	}
	t.spans.mu.Lock()
	defer t.spans.mu.Unlock()
	return t.spans.dropped
}

// maxQueued limits the approximate bytes of the spans that wait or are exported.
const maxQueued = 16 << 20

// spanQueue is the SDK's batch processor, and the exporter behind it. It bounds the waiting spans also by their bytes,
// and counts those that are not exported.
type spanQueue struct {
	sdktrace.SpanProcessor // the batch processor
	export                 func(context.Context, []sdktrace.ReadOnlySpan) error
	close                  func()
	most                   int // spans that may wait or be exported

	mu      sync.Mutex
	waiting struct{ spans, bytes int }
	dropped int64
}

// checked are the least values of variables that the SDK reads without checking them.
var checked = map[string]int{
	"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": 1, "OTEL_BSP_SCHEDULE_DELAY": 1, "OTEL_BSP_EXPORT_TIMEOUT": 1,
	"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": 0, "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": 0, "OTEL_SPAN_EVENT_COUNT_LIMIT": 0,
	"OTEL_SPAN_LINK_COUNT_LIMIT": 0, "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT": 0, "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT": 0,
	"OTEL_ATTRIBUTE_COUNT_LIMIT": 0, "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": 0,
}

func newSpanQueue(
	export func(context.Context, []sdktrace.ReadOnlySpan) error, closeExporter func(),
) (q *spanQueue, err error) {
	q = &spanQueue{export: export, close: closeExporter}
	for variable, least := range checked {
		if _, err := number(variable, least, 0); err != nil {
			return nil, err
		}
	}
	if q.most, err = number("OTEL_BSP_MAX_QUEUE_SIZE", 1, sdktrace.DefaultMaxQueueSize); err != nil {
		return nil, err
	}
	q.SpanProcessor = sdktrace.NewBatchSpanProcessor(exporter{q})
	return q, nil
}

// OnEnd implements sdktrace.SpanProcessor. It drops the span if too many wait.
func (q *spanQueue) OnEnd(s sdktrace.ReadOnlySpan) {
	size := sizeOf(s)
	q.mu.Lock()
	full := q.waiting.spans == q.most || q.waiting.bytes >= maxQueued
	if full {
		q.dropped++
	} else {
		q.waiting.spans++
		q.waiting.bytes += size
	}
	q.mu.Unlock()
	if !full {
		q.SpanProcessor.OnEnd(s)
	}
}

// Shutdown implements sdktrace.SpanProcessor. At the end of ctx, exports in progress are cancelled.
func (q *spanQueue) Shutdown(ctx context.Context) error {
	defer q.close()
	return q.SpanProcessor.Shutdown(ctx)
}

// sizeOf returns the approximate size of a span in memory.
func sizeOf(s sdktrace.ReadOnlySpan) int {
	const usual, event = 1 << 10, 512
	n := usual + event*len(s.Events()) + len(s.Status().Description)
	for _, a := range s.Attributes() {
		if a.Value.Type() == attribute.STRING {
			n += len(a.Value.AsString())
		}
	}
	return n
}

// exporter is what the batch processor exports to.
type exporter struct{ *spanQueue }

// ExportSpans implements sdktrace.SpanExporter.
func (e exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.export(ctx, spans)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range spans {
		e.waiting.bytes -= sizeOf(s)
	}
	e.waiting.spans -= len(spans)
	if err != nil {
		e.dropped += int64(len(spans))
	}
	return err
}

// Shutdown implements sdktrace.SpanExporter.
func (exporter) Shutdown(context.Context) error { return nil }
