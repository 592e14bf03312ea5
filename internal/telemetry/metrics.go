package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/agenticnexus/agenticnexus/internal/telemetry/otlp"
)

const (
	// LabelServer and LabelTool are the labels of series that belong to one server and to one of its tools.
	LabelServer = "server"
	LabelTool   = "gen_ai_tool_name"
	// Other replaces the values of a label beyond its limit.
	Other = "_other"
)

// maxScrapes limits the concurrent requests of all callers. Further ones get status 503.
const maxScrapes = 8

// startMetrics creates the registry with the metrics of the Go runtime and the process.
func (t *Telemetry) startMetrics(cfg Config, about *resource.Resource) error {
	if cfg.Metrics != nil && !*cfg.Metrics || disabled() {
		return nil
	}
	t.registry = prometheus.NewRegistry()
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	opts := prometheus.GaugeOpts{Name: targetInfo, Help: "The service.", ConstLabels: labelsOf(about)}
	info := prometheus.NewGaugeFunc(opts, func() float64 { return 1 })
	if err := t.registry.Register(info); err != nil {
		return err
	}
	switch name := os.Getenv("OTEL_METRICS_EXPORTER"); name {
	case "", "none", "prometheus":
		return nil
	case "otlp":
		return t.startPush(about)
	default:
		return fmt.Errorf("OTEL_METRICS_EXPORTER: want otlp, prometheus or none, got %q", name)
	}
}

// targetInfo is the metric whose labels are the attributes of the resource, as OpenTelemetry defines.
const targetInfo = "target_info"

func labelsOf(about *resource.Resource) prometheus.Labels {
	out := prometheus.Labels{}
	for _, a := range about.Attributes() {
		name := regexp.MustCompile(`\W`).ReplaceAllString(string(a.Key), "_")
		out[name] = strings.ToValidUTF8(a.Value.String(), "\ufffd")
	}
	return out
}

// startPush starts a goroutine that sends the metrics to a collector periodically, and once at the end.
func (t *Telemetry) startPush(about *resource.Resource) error {
	interval, err := number("OTEL_METRIC_EXPORT_INTERVAL", 1, 60_000)
	if err != nil {
		return err
	}
	limit, err := number("OTEL_METRIC_EXPORT_TIMEOUT", 1, 30_000)
	if err != nil {
		return err
	}
	client, err := otlp.NewClient("metrics")
	if err != nil {
		return err
	}
	began := time.Now()
	push := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(limit)*time.Millisecond)
		defer cancel()
		families, err := visibleTo{t.registry, nil}.Gather()
		if err != nil {
			return err
		}
		families = slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == targetInfo })
		return client.ExportMetrics(ctx, about, scope, began, families)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(time.Duration(interval) * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if err := push(ctx); err != nil {
					otel.Handle(err)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	t.shutdown = append(t.shutdown, func(ctx context.Context) error {
		defer client.Close()
		stop()
		<-done
		return push(ctx)
	})
	return nil
}

// Registry returns the registry of the router's metrics; nil if metrics are off.
func (t *Telemetry) Registry() *prometheus.Registry { return t.registry }

// Sees reports whether a caller may see the series of a name, server and tool; nil = all. The tool is empty in a series
// of a server itself, and both are in one of no server.
type Sees func(series, server, tool string) bool

// Handler serves /metrics in the Prometheus format, or 404 if metrics are off. sees returns what the sender of a
// request may see. Other series are left out.
func (t *Telemetry) Handler(sees func(r *http.Request) Sees) http.Handler {
	if t.registry == nil {
		return http.NotFoundHandler()
	}
	slots := make(chan struct{}, maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
		default:
			http.Error(w, fmt.Sprintf("%d requests for metrics are being served; try again later", maxScrapes),
				http.StatusServiceUnavailable)
			return
		}
		defer func() { <-slots }()
		promhttp.HandlerFor(visibleTo{t.registry, sees(r)}, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	})
}

// visibleTo gathers the series that a caller may see. It omits empty labels.
type visibleTo struct {
	prometheus.Gatherer
	see Sees
}

// Gather implements prometheus.Gatherer.
func (v visibleTo) Gather() ([]*dto.MetricFamily, error) {
	families, err := v.Gatherer.Gather()
	for _, f := range families {
		f.Metric = slices.DeleteFunc(f.Metric, func(m *dto.Metric) bool { return v.hides(f.GetName(), m) })
		for _, m := range f.Metric {
			var labels []*dto.LabelPair // a copy, because the registry shares the labels
			for _, l := range m.Label {
				if l.GetValue() != "" {
					labels = append(labels, l)
				}
			}
			m.Label = labels
		}
	}
	return slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return len(f.Metric) == 0 }), err
}

func (v visibleTo) hides(series string, m *dto.Metric) bool {
	server, tool := "", ""
	for _, l := range m.Label {
		switch l.GetName() {
		case LabelServer:
			server = l.GetValue()
		case LabelTool:
			tool = l.GetValue()
		}
	}
	if tool == Other {
		tool = ""
	}
	return v.see != nil && !(v.see(series, server, "") && (tool == "" || v.see(series, server, tool)))
}
