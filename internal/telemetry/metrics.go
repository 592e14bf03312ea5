package telemetry

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

// maxTools limits the tools that have their own series.
const maxTools = 256

// Metrics are the router's instruments. Label values come from the configuration, from fixed sets, and from the names
// of at most 256 listed tools; clients choose none of them. Methods are safe for concurrent use.
type Metrics struct {
	client, server, query, wait, search, model *duration
	tokens                                     histogram
	cost                                       metric.Float64Counter
	retries, rounds, fallbacks, unmet, consent counter
	tools                                      bounded
	meter                                      metric.Meter
}

type histogram struct {
	metric.Int64Histogram
	*series[metric.MeasurementOption]
}

type counter struct {
	metric.Int64Counter
	*series[metric.MeasurementOption]
}

func (c counter) add(ctx context.Context, n int, v values) {
	if n > 0 {
		c.Add(ctx, int64(n), c.of(v))
	}
}

// Buckets of the semantic conventions, in seconds and tokens, and of searches.
var (
	mcpBuckets    = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
	modelBuckets  = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenBuckets  = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	searchBuckets = []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5}
)

// Labels of the router itself.
const (
	labelServer  = attribute.Key("server") // on series that belong to one server
	labelOutcome = attribute.Key("outcome")
	labelSource  = attribute.Key("source")
	labelStage   = attribute.Key("stage")
	labelReason  = attribute.Key("reason")
	labelCause   = attribute.Key("cause")
)

// options returns the options of a measurement with these attributes.
func options(a attribute.Set) metric.MeasurementOption { return metric.WithAttributeSet(a) }

// NewMetrics creates the instruments. It must be called once.
func (t *Telemetry) NewMetrics() (*Metrics, error) {
	var failures []error
	meter, seconds := t.meter, t.durations.create
	count := func(name, about string, labels ...attribute.Key) counter {
		c, err := meter.Int64Counter(name, metric.WithDescription(about))
		failures = append(failures, err)
		return counter{c, newSeries(options, labels...)}
	}
	m := &Metrics{
		client: seconds(tracing.OperationClient, "Duration of requests to servers, retries and waiting included.", mcpBuckets,
			labelServer, tracing.MethodName, tracing.ToolName, tracing.ErrorType),
		server: seconds(tracing.OperationServer, "Duration of requests of clients.", mcpBuckets,
			tracing.MethodName, tracing.ToolName, tracing.ErrorType),
		model: seconds(tracing.OperationModel, "Duration of requests to models, retries included.", modelBuckets,
			tracing.Operation, tracing.RequestModel, tracing.Provider, tracing.ErrorType),
		query:     seconds("nexus.query.duration", "Duration of queries.", mcpBuckets, labelOutcome),
		wait:      seconds("nexus.queue.wait", "Time that requests waited for a place at a server.", mcpBuckets, labelServer),
		search:    seconds("nexus.search.duration", "Duration of searches for tools.", searchBuckets),
		retries:   count("nexus.retries", "Requests to servers that were repeated.", labelServer),
		rounds:    count("nexus.planning.rounds", "Planning rounds by the source of the plan.", labelSource),
		fallbacks: count("nexus.fallbacks", "Rounds and answers made without the model that failed.", labelStage),
		unmet:     count("nexus.unmet_parts", "Parts of questions that were not served.", labelReason),
		consent:   count("nexus.consents", "Requests for the user's consent.", labelOutcome),
		tools:     bounded{most: maxTools},
		meter:     meter,
	}
	var err error
	m.tokens.series = newSeries(options, tracing.Operation, tracing.RequestModel, tracing.Provider, tracing.TokenType)
	m.tokens.Int64Histogram, err = meter.Int64Histogram(tracing.OperationToken, metric.WithUnit("{token}"),
		metric.WithDescription("Tokens of requests to models."), metric.WithExplicitBucketBoundaries(tokenBuckets...))
	failures = append(failures, err)
	m.cost, err = meter.Float64Counter("nexus.model.cost",
		metric.WithDescription("Cost of requests to models, in the currency of the setting prices."))
	return m, errors.Join(append(failures, err)...)
}

// ClientCall is a finished request to a server.
type ClientCall struct {
	Server, Method string
	Tool           string // empty if it is not a tool call; see Listed
	Listed         bool   // the server lists the tool
	ErrorType      string // empty = success
	Took, Waited   time.Duration
	Retries        int
}

// Off reports whether metrics are off.
func (m *Metrics) Off() bool {
	_, off := m.meter.(noop.Meter)
	return off
}

// ClientCall counts a finished request to a server.
func (m *Metrics) ClientCall(ctx context.Context, c ClientCall) {
	if m.Off() {
		return
	}
	v := values{c.Server, method(c.Method), c.Tool, c.ErrorType}
	series, ok := m.client.find(v)
	if !ok {
		v[2] = m.tool(c)
		series = m.client.of(v)
	}
	m.client.add(series, c.Took)
	m.wait.record(c.Waited, values{c.Server})
	m.retries.add(ctx, c.Retries, values{c.Server})
}

// tool returns the label of the tool of a call.
func (m *Metrics) tool(c ClientCall) string {
	switch {
	case c.Tool == "":
		return ""
	case !c.Listed:
		return other
	}
	return m.tools.label(c.Server, c.Tool)
}

// ServerCall counts a finished request of a client. tool is one of the router's own, or empty.
func (m *Metrics) ServerCall(name, tool, errorType string, took time.Duration) {
	m.server.record(took, values{method(name), tool, errorType})
}

// methods are the MCP methods that have their own series.
var methods = []string{"tools/call", "tools/list", "initialize", "ping", "prompts/get", "prompts/list",
	"resources/list", "resources/read", "resources/subscribe", "resources/templates/list", "resources/unsubscribe",
	"completion/complete", "logging/setLevel", "server/discover", "subscriptions/listen"}

func method(name string) string {
	if slices.Contains(methods, name) {
		return name
	}
	return other
}

// QueryCall describes a finished query.
type QueryCall struct {
	Outcome   string // from a fixed set
	Took      time.Duration
	Source    string         // source of the plan
	Rounds    int            // planning rounds
	Fallbacks []string       // stages
	Unmet     []string       // reasons
	Consents  map[string]int // by outcome
}

// Query counts a finished query.
func (m *Metrics) Query(ctx context.Context, q QueryCall) {
	m.query.record(q.Took, values{q.Outcome})
	m.rounds.add(ctx, q.Rounds, values{q.Source})
	for _, stage := range q.Fallbacks {
		m.fallbacks.add(ctx, 1, values{stage})
	}
	for _, reason := range q.Unmet {
		m.unmet.add(ctx, 1, values{reason})
	}
	for outcome, n := range q.Consents {
		m.consent.add(ctx, n, values{outcome})
	}
}

// Search counts a finished search for tools.
func (m *Metrics) Search(took time.Duration) { m.search.record(took, values{}) }

// ModelCall is a finished request to a model.
type ModelCall struct {
	Operation, Model, Provider string
	ErrorType                  string // empty = success
	Took                       time.Duration
	Input, Output              int     // tokens
	Cost                       float64 // 0 = unknown
}

// ModelCall counts a finished request to a model.
func (m *Metrics) ModelCall(ctx context.Context, c ModelCall) {
	m.model.record(c.Took, values{c.Operation, c.Model, c.Provider, c.ErrorType})
	for kind, n := range map[string]int{tracing.TokenInput: c.Input, tracing.TokenOutput: c.Output} {
		if n > 0 {
			m.tokens.Record(ctx, int64(n), m.tokens.of(values{c.Operation, c.Model, c.Provider, kind}))
		}
	}
	if c.Cost > 0 {
		m.cost.Add(ctx, c.Cost, metric.WithAttributes(tracing.RequestModel.String(c.Model)))
	}
}
