// Package telemetry provides the router's log, traces and metrics: [NewLogger] and [Setup].
//
// It redacts the secrets known to package redact in everything that it writes or exports. All its values are safe for
// concurrent use.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
)

const (
	serviceName   = "agenticnexus-router" // OTEL_SERVICE_NAME overrides it
	scope         = "github.com/agenticnexus/agenticnexus"
	shutdownLimit = 3 * time.Second
)

// Config configures OpenTelemetry; the standard OTEL_* variables select exporters and endpoints.
type Config struct {
	Traces  *bool `yaml:"traces"`  // nil = on if OTEL_* names an exporter
	Metrics *bool `yaml:"metrics"` // nil = true: Prometheus at /metrics
	Content bool  `yaml:"content"` // record redacted queries, arguments, results and answers in spans
}

// Telemetry holds the tracer and the registry of metrics. It owns the goroutines that export them; Shutdown ends them.
type Telemetry struct {
	tracer   tracing.Tracer
	spans    *spanQueue           // nil = no spans are exported
	registry *prometheus.Registry // nil = no metrics
	shutdown []func(context.Context) error
}

// Setup starts traces and metrics. Spans are exported if OTEL_* variables name an exporter or an endpoint, or if cfg
// enables them. Without an exporter, spans have valid trace ids and cost very little. Metrics are kept in their own
// Prometheus registry, and pushed if OTEL_METRICS_EXPORTER is otlp. Setup fails if a variable is malformed.
//
// The tracer is not global, but the error handlers of the OpenTelemetry libraries are: errors go to the log of the
// process's last Setup, failed exports at most once a minute.
func Setup(
	ctx context.Context, cfg Config, version string, log *slog.Logger, mask *redact.Masker,
) (*Telemetry, error) {
	otel.SetErrorHandler(&failures{log: log})
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName(serviceName), semconv.ServiceVersion(version)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(),
	)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describing the service for telemetry: %w", err)
	}
	t := &Telemetry{}
	if err := t.startTraces(cfg, about, mask); err != nil {
		return nil, fmt.Errorf("starting the trace exporter: %w", err)
	}
	if err := t.startMetrics(cfg, about); err != nil {
		return nil, errors.Join(fmt.Errorf("starting metrics: %w", err), t.Shutdown(ctx))
	}
	return t, nil
}

// disabled reports whether OTEL_SDK_DISABLED is true.
func disabled() bool {
	return strings.EqualFold(strings.TrimSpace(os.Getenv("OTEL_SDK_DISABLED")), "true")
}

// number returns the value of a variable, which must be at least least, or the usual one if it is not set.
func number(variable string, least, usual int) (int, error) {
	text := strings.TrimSpace(os.Getenv(variable))
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseInt(text, 10, 31)
	if err != nil || int(n) < least {
		return 0, fmt.Errorf("%s: want a whole number of at least %d, got %q", variable, least, text)
	}
	return int(n), nil
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
