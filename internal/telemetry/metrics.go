package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Names of span attributes. Where the OpenTelemetry semantic conventions have a name, it is theirs.
const (
	AttrMethod          = attribute.Key("mcp.method.name")
	AttrSessionID       = attribute.Key("mcp.session.id")
	AttrProtocolVersion = attribute.Key("mcp.protocol.version")
	AttrTool            = attribute.Key("gen_ai.tool.name")
	AttrModel           = attribute.Key("gen_ai.request.model")
	AttrInputTokens     = attribute.Key("gen_ai.usage.input_tokens")
	AttrOutputTokens    = attribute.Key("gen_ai.usage.output_tokens")
	AttrErrorType       = attribute.Key("error.type")
	AttrServer          = attribute.Key("nexus.server")
	AttrAttempt         = attribute.Key("nexus.attempt")
	AttrQueryLength     = attribute.Key("query.length")
	AttrToolCount       = attribute.Key("plan.tool_count")
)

// OutcomeOK is the outcome of what succeeded; failures have their reason as outcome, such as timeout.
const OutcomeOK = "ok"

// Metrics are the router's instruments. Servers come from the configuration and outcomes from a fixed
// set, so the number of time series is bounded. Methods may be called from any goroutine.
type Metrics struct {
	calls, queries, retries     metric.Int64Counter
	callDuration, queryDuration metric.Float64Histogram
	meter                       metric.Meter
	known                       sync.Map // attributes of calls by server and outcome
}

// NewMetrics creates the instruments of the meter.
func NewMetrics(meter metric.Meter) (*Metrics, error) {
	// In seconds, from a call within the machine to the longest query.
	buckets := metric.WithExplicitBucketBoundaries(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
		30, 60, 300)
	var failures []error
	counter := func(name, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithDescription(description))
		failures = append(failures, err)
		return c
	}
	duration := func(name, description string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithDescription(description), metric.WithUnit("s"), buckets)
		failures = append(failures, err)
		return h
	}
	m := &Metrics{
		calls:         counter("nexus.calls", "Downstream tool calls by server and outcome, retries included."),
		queries:       counter("nexus.queries", "Queries by outcome."),
		retries:       counter("nexus.retries", "Downstream tool calls that were repeated, by server."),
		callDuration:  duration("nexus.call.duration", "Duration of downstream tool calls by server and outcome."),
		queryDuration: duration("nexus.query.duration", "Duration of queries by outcome."),
		meter:         meter,
	}
	return m, errors.Join(failures...)
}

// Call counts a finished downstream call.
func (m *Metrics) Call(ctx context.Context, server, outcome string, took time.Duration) {
	labels := m.labels(server, outcome)
	m.calls.Add(ctx, 1, labels)
	m.callDuration.Record(ctx, took.Seconds(), labels)
}

// labels returns the attributes of a call, made once for each server and outcome.
func (m *Metrics) labels(server, outcome string) metric.MeasurementOption {
	key := [2]string{server, outcome}
	if known, ok := m.known.Load(key); ok {
		return known.(metric.MeasurementOption)
	}
	labels := metric.WithAttributeSet(attribute.NewSet(attribute.String(labelServer, server),
		attribute.String("outcome", outcome)))
	m.known.Store(key, labels)
	return labels
}

// Retry counts a downstream call that is about to be repeated.
func (m *Metrics) Retry(ctx context.Context, server string) {
	m.retries.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(attribute.String(labelServer, server))))
}

// Query counts a finished query.
func (m *Metrics) Query(ctx context.Context, outcome string, took time.Duration) {
	labels := metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", outcome)))
	m.queries.Add(ctx, 1, labels)
	m.queryDuration.Record(ctx, took.Seconds(), labels)
}

// Watch adds instruments that are read when somebody looks: the sessions and requests there are, and how many
// requests were refused so far.
func (m *Metrics) Watch(sessions, tracked, refused func() int) error {
	reading := func(read func() int) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(read()))
			return nil
		}
	}
	gauge := func(name, description string, read func() int) error {
		_, err := m.meter.Int64ObservableGauge(name, metric.WithDescription(description),
			metric.WithInt64Callback(reading(read)))
		return err
	}
	_, err := m.meter.Int64ObservableCounter("nexus.refused_requests",
		metric.WithDescription("Client requests that there was no room for."), metric.WithInt64Callback(reading(refused)))
	return errors.Join(err,
		gauge("nexus.sessions", "Open client sessions.", sessions),
		gauge("nexus.tracked_requests", "Client requests whose answer is outstanding.", tracked),
	)
}
