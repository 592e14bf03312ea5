package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/telemetry/otlp"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

const (
	serviceName   = "agenticnexus-router" // OTEL_SERVICE_NAME overrides it
	scope         = "github.com/agenticnexus/agenticnexus"
	shutdownLimit = 3 * time.Second
)

// Telemetry holds the providers of traces and metrics. It owns their goroutines; Shutdown ends them.
type Telemetry struct {
	tracer    tracing.Tracer
	meter     metric.Meter
	durations *durations
	registry  *prometheus.Registry // nil = no metrics
	process   process
	lost      func() int64 // number of spans not exported; nil = none
	shutdown  []func(context.Context) error
}

// Setup starts traces and metrics. Traces are exported if OTEL_* variables name an exporter or an endpoint, or if cfg
// enables them. Without an exporter, spans have valid trace ids and cost very little. Metrics are kept in their own
// Prometheus registry, and pushed if OTEL_METRICS_EXPORTER is otlp. Setup fails if a variable is malformed.
//
// The providers are not global, but the error handlers of the OpenTelemetry libraries are: errors go to the log of
// the process's last Setup, failed exports at most once a minute.
func Setup(ctx context.Context, cfg Config, version string, log *slog.Logger) (*Telemetry, error) {
	report(log)
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName(serviceName), semconv.ServiceVersion(version)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(),
	)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describing the service for telemetry: %w", err)
	}
	t := &Telemetry{durations: &durations{began: time.Now()}}
	if err := t.trace(cfg, about); err != nil {
		return nil, err
	}
	if err := t.measure(cfg, about); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	return t, nil
}

func (t *Telemetry) trace(cfg Config, about *resource.Resource) error {
	var content func(string) string
	if cfg.Content {
		content = redact.Text
	}
	exports := exportsTraces(cfg)
	tracer, shutdown, err := newTracer(exports, about)
	if err != nil {
		return fmt.Errorf("starting the trace exporter: %w", err)
	}
	t.shutdown = append(t.shutdown, shutdown)
	if own, ok := tracer.(*otlp.Tracer); ok {
		t.lost = own.Dropped
	}
	t.tracer = tracing.New(tracer, exports, content)
	return nil
}

func exportsTraces(cfg Config) bool {
	if os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	if cfg.Traces != nil {
		return *cfg.Traces
	}
	return os.Getenv("OTEL_TRACES_EXPORTER") != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
		os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// newTracer follows OTEL_TRACES_EXPORTER. The console exporter writes to standard error, because standard output
// carries the protocol. OTEL_TRACES_SAMPLER applies to exported spans.
func newTracer(
	exports bool, about *resource.Resource,
) (_ trace.Tracer, shutdown func(context.Context) error, err error) {
	option := sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample()))
	switch name := os.Getenv("OTEL_TRACES_EXPORTER"); {
	case !exports:
	case name == "console":
		exporter, err := stdouttrace.New(stdouttrace.WithWriter(os.Stderr))
		if err != nil {
			return nil, nil, err
		}
		option = sdktrace.WithBatcher(exporter)
	case name == "" || name == "otlp":
		t, err := otlp.NewTracer(about, scope)
		if err != nil {
			return nil, nil, err
		}
		return t, t.Shutdown, nil
	default:
		return nil, nil, fmt.Errorf("OTEL_TRACES_EXPORTER: want otlp, console or none, got %q", name)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(about), option)
	return provider.Tracer(scope), provider.Shutdown, nil
}

func (t *Telemetry) measure(cfg Config, about *resource.Resource) error {
	if cfg.Metrics != nil && !*cfg.Metrics || os.Getenv("OTEL_SDK_DISABLED") == "true" {
		t.meter = noop.NewMeterProvider().Meter(scope)
		return nil
	}
	registry := prometheus.NewRegistry()
	t.process = newProcess()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(),
		otelprometheus.WithProducer(t.durations))
	if err != nil {
		return fmt.Errorf("starting the Prometheus exporter: %w", err)
	}
	options := []sdkmetric.Option{sdkmetric.WithResource(about), sdkmetric.WithReader(exporter),
		sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter)} // measurements have no span
	if os.Getenv("OTEL_METRICS_EXPORTER") == "otlp" {
		exporter, err := otlp.NewMetrics()
		if err != nil {
			return fmt.Errorf("starting the metric exporter: %w", err)
		}
		reader := sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithProducer(t.durations),
			sdkmetric.WithProducer(t.process))
		options = append(options, sdkmetric.WithReader(reader))
	}
	provider := sdkmetric.NewMeterProvider(options...)
	t.shutdown = append(t.shutdown, provider.Shutdown)
	t.meter = provider.Meter(scope)
	t.registry = registry
	return nil
}

// Tracer returns the router's tracer.
func (t *Telemetry) Tracer() tracing.Tracer { return t.tracer }

// DroppedSpans returns the number of spans not exported because the collector is slow or refuses them.
func (t *Telemetry) DroppedSpans() int64 {
	if t.lost == nil {
		return 0
	}
	return t.lost()
}

// Shutdown exports remaining data and stops. It takes at most 3 s.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownLimit)
	defer cancel()
	failures := make([]error, len(t.shutdown))
	var stopping sync.WaitGroup
	for i, stop := range t.shutdown {
		stopping.Go(func() {
			if err := stop(ctx); err != nil {
				failures[i] = errors.New("ending telemetry: " + redact.Text(err.Error()))
			}
		})
	}
	stopping.Wait()
	return errors.Join(failures...)
}
