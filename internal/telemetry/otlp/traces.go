package otlp

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// NewTraces returns an exporter of spans. It fails where a variable is malformed; it does not connect.
func NewTraces(ctx context.Context) (sdktrace.SpanExporter, error) {
	p, err := newPoster("traces")
	if err != nil {
		return nil, err
	}
	return otlptrace.New(ctx, traces{p})
}

// traces implements otlptrace.Client.
type traces struct{ *poster }

func (t traces) Start(context.Context) error { return nil }

func (t traces) Stop(context.Context) error {
	t.close()
	return nil
}

func (t traces) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	return t.post(ctx, &tracepb.TracesData{ResourceSpans: spans})
}
