package app

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/breaker"
	"github.com/agenticnexus/agenticnexus/internal/telemetry"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// maxTools limits the tools that have their own series, and maxLabel the bytes of their names.
const (
	maxTools = 256
	maxLabel = 200
)

// serverMetrics begins the names of the metrics that tell the state of a server.
const serverMetrics = "nexus_server_"

// meter holds the router's metrics. Label values come from the configuration, from fixed sets, and from the names of
// at most maxTools listed tools; clients choose none of them. It is safe for concurrent use.
type meter struct {
	off    bool
	prices map[string]config.Price

	calls, requests, waits, modelCalls, tokens *prometheus.HistogramVec
	retries, cost                              *prometheus.CounterVec
	searches                                   prometheus.Histogram
	queries                                    queryMetrics

	mu    sync.Mutex
	tools map[[2]string]bool // server and tool
}

type queryMetrics struct {
	durations                          *prometheus.HistogramVec
	rounds, fallbacks, unmet, consents *prometheus.CounterVec
}

// Buckets of the semantic conventions, in seconds and tokens, and of searches.
var (
	mcpBuckets    = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
	modelBuckets  = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenBuckets  = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	searchBuckets = []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5}
)

// Labels of the semantic conventions.
const (
	labelMethod    = "mcp_method_name"
	labelError     = "error_type"
	labelOperation = "gen_ai_operation_name"
	labelModel     = "gen_ai_request_model"
	labelProvider  = "gen_ai_provider_name"
	labelToken     = "gen_ai_token_type"
)

// newMeter creates the metrics. A nil registry turns them off.
func newMeter(registry *prometheus.Registry, prices map[string]config.Price) *meter {
	var to prometheus.Registerer
	if registry != nil {
		to = registry
	}
	create := promauto.With(to)
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return create.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return create.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &meter{
		off: registry == nil, prices: prices, tools: map[[2]string]bool{},
		calls: histogram("mcp_client_operation_duration_seconds", "Duration of requests to servers, retries and waiting included.",
			mcpBuckets, telemetry.LabelServer, labelMethod, telemetry.LabelTool, labelError),
		requests: histogram("mcp_server_operation_duration_seconds", "Duration of requests of clients.",
			mcpBuckets, labelMethod, telemetry.LabelTool, labelError),
		modelCalls: histogram("gen_ai_client_operation_duration_seconds", "Duration of requests to models, retries included.",
			modelBuckets, labelOperation, labelModel, labelProvider, labelError),
		tokens: histogram("gen_ai_client_token_usage", "Tokens of requests to models.",
			tokenBuckets, labelOperation, labelModel, labelProvider, labelToken),
		waits: histogram("nexus_queue_wait_seconds", "Time that requests waited for a place at a server.",
			mcpBuckets, telemetry.LabelServer),
		searches: create.NewHistogram(prometheus.HistogramOpts{Name: "nexus_search_duration_seconds",
			Help: "Duration of searches for tools.", Buckets: searchBuckets}),
		queries: queryMetrics{
			durations: histogram("nexus_query_duration_seconds", "Duration of queries.", mcpBuckets, "outcome"),
			rounds:    counter("nexus_planning_rounds_total", "Planning rounds by the source of the plan.", "source"),
			fallbacks: counter("nexus_fallbacks_total", "Rounds and answers made without the model that failed.", "stage"),
			unmet:     counter("nexus_unmet_parts_total", "Parts of questions that were not served.", "reason"),
			consents:  counter("nexus_consents_total", "Requests for the user's consent.", "outcome"),
		},
		retries: counter("nexus_retries_total", "Requests to servers that were repeated.", telemetry.LabelServer),
		cost: counter("nexus_model_cost_total", "Cost of requests to models, in the currency of the setting prices.",
			labelModel),
	}
}

// call counts a finished request to a server.
func (m *meter) call(o downstream.Observation) {
	if m.off {
		return
	}
	failure := o.Outcome
	if failure == downstream.OutcomeOK {
		failure = ""
	}
	observe(m.calls, o.Duration.Seconds(), o.Server, methodLabel(o.Method), m.toolLabel(o), failure)
	observe(m.waits, o.Waited.Seconds(), o.Server)
	add(m.retries, float64(o.Attempts-1), o.Server)
}

// toolLabel returns the label for the tool of a call.
func (m *meter) toolLabel(o downstream.Observation) string {
	if o.Tool == "" {
		return ""
	}
	if !o.Listed || len(o.Tool) > maxLabel {
		return telemetry.Other
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if key := [2]string{o.Server, o.Tool}; !m.tools[key] {
		if len(m.tools) == maxTools {
			return telemetry.Other
		}
		m.tools[key] = true
	}
	return o.Tool
}

// methods are the MCP methods that have their own series.
var methods = []string{"tools/call", "tools/list", "initialize", "ping", "prompts/get", "prompts/list",
	"resources/list", "resources/read", "resources/subscribe", "resources/templates/list", "resources/unsubscribe",
	"completion/complete", "logging/setLevel", "server/discover", "subscriptions/listen"}

func methodLabel(name string) string {
	if slices.Contains(methods, name) {
		return name
	}
	return telemetry.Other
}

// served returns the observer of client requests, or nil if metrics are off.
func (m *meter) served() func(edge.Served) {
	if m.off {
		return nil
	}
	own := router.DefaultTools().Tools
	return func(s edge.Served) {
		tool := s.Name
		if s.Method != "tools/call" || !slices.Contains(own, tool) {
			tool = "" // the client may have made the name up
		}
		observe(m.requests, s.Duration.Seconds(), methodLabel(s.Method), tool, s.ErrorType)
	}
}

// query counts a finished query. r is nil if the query failed.
func (m *meter) query(outcome string, took time.Duration, r *router.Record) {
	observe(m.queries.durations, took.Seconds(), outcome)
	if r == nil {
		return
	}
	add(m.queries.rounds, float64(r.Plan.Rounds), r.Plan.Source)
	for _, stage := range r.Fallbacks {
		add(m.queries.fallbacks, 1, stage)
	}
	for _, u := range r.Unmet {
		add(m.queries.unmet, 1, u.Reason)
	}
	add(m.queries.consents, float64(r.Consents.Given.Load()), "given")
	add(m.queries.consents, float64(r.Consents.Declined.Load()), "declined")
	add(m.queries.consents, float64(r.Consents.Unanswered.Load()), "unanswered")
}

// search counts a finished search for tools.
func (m *meter) search(took time.Duration) { m.searches.Observe(took.Seconds()) }

// model counts a finished request to a model.
func (m *meter) model(c router.ModelCall) {
	observe(m.modelCalls, c.Duration.Seconds(), c.Operation, c.Model, c.Provider, c.ErrorType)
	for kind, n := range map[string]int{tracing.TokenInput: c.Input, tracing.TokenOutput: c.Output} {
		if n > 0 {
			observe(m.tokens, float64(n), c.Operation, c.Model, c.Provider, kind)
		}
	}
	add(m.cost, m.prices[c.Model].Of(c.Input, c.Output), c.Model)
}

// observe adds a value to a series. Unlike the methods of the library, it does not panic on a label that is not UTF-8.
func observe(h *prometheus.HistogramVec, value float64, labels ...string) {
	if series, err := h.GetMetricWithLabelValues(labels...); err == nil {
		series.Observe(value)
	}
}

// add adds n to a series, which begins with the first n above 0.
func add(c *prometheus.CounterVec, n float64, labels ...string) {
	if n <= 0 {
		return
	}
	if series, err := c.GetMetricWithLabelValues(labels...); err == nil {
		series.Add(n)
	}
}

// state is a prometheus.Collector of metrics that are read when they are collected.
type state struct{ app *App }

// Describe implements prometheus.Collector. Without descriptions, the registry checks what Collect sends.
func (state) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s state) Collect(to chan<- prometheus.Metric) {
	a := s.app
	send := func(kind prometheus.ValueType, name, help string, value float64, label, labelValue string) {
		var names, values []string
		if label != "" {
			names, values = []string{label}, []string{strings.ToValidUTF8(labelValue, "\ufffd")}
		}
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, value, values...)
	}
	gauge := func(name, help string, value int) { send(prometheus.GaugeValue, name, help, float64(value), "", "") }
	total := func(name, help string, value int64, label, labelValue string) {
		send(prometheus.CounterValue, name, help, float64(value), label, labelValue)
	}
	to <- prometheus.MustNewConstMetric(prometheus.NewDesc("nexus_build_info", "Version of the router.", nil,
		prometheus.Labels{"version": a.opts.Version, "go_version": runtime.Version()}), prometheus.GaugeValue, 1)
	gauge("nexus_sessions", "Sessions of clients.", a.edge.Sessions())
	gauge("nexus_tracked_requests", "Requests of clients whose answer is outstanding.", a.edge.Tracked())
	refusals, dropped := a.edge.Losses()
	total("nexus_dropped_notifications_total", "Progress and other notifications that clients did not read in time.",
		dropped, "", "")
	if a.web.ready.Load() {
		total("nexus_closed_connections_total", "Connections that were closed because clients held too many.",
			a.web.listener.Closed(), "", "")
	}
	total("nexus_dropped_spans_total", "Spans that were not exported, because the collector was slow or did not take them.",
		a.telemetry.DroppedSpans(), "", "")
	if a.opts.Cluster != nil {
		a.opts.Cluster.collect(func(kind prometheus.ValueType, name, help string, value float64) {
			send(kind, name, help, value, "", "")
		})
	}
	if a.audit != nil {
		total("nexus_audit_lost_lines_total", "Lines of the audit log that could not be written.", a.audit.Lost(), "", "")
	}
	refusals["rate_limited"] = a.rate.Refused()
	for cause, n := range refusals {
		total("nexus_refused_requests_total", "Requests of clients that were refused.", n, "cause", cause)
	}
	for name, s := range a.servers.Status() {
		if s.Status == downstream.StateDisabled || s.Status == downstream.StatePerCaller {
			continue // it is not down
		}
		server := func(metric, help string, value int) {
			send(prometheus.GaugeValue, serverMetrics+metric, help, float64(value), telemetry.LabelServer, name)
		}
		server("up", "Whether the server is connected.", flag(s.Status == downstream.StateConnected))
		server("breaker_open", "Whether the circuit breaker of the server is open or half-open.",
			flag(s.Breaker != breaker.Closed))
		server("in_flight", "Requests at the server.", s.InFlight)
		server("queued", "Requests that wait for a place at the server.", s.Queued)
		server("sessions", "Sessions with the server.", s.Sessions)
		server("tools", "Tools that the server listed last.", s.Tools)
		server("quarantined_tools", "Tools of the server that cannot be used.", len(s.Quarantined))
	}
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
