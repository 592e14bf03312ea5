package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// process provides metrics of the Go runtime and the process, for Prometheus and under the same names for OTLP.
type process struct {
	*prometheus.Registry
	began time.Time
}

func newProcess() process {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return process{r, time.Now()}
}

// Produce implements metric.Producer. It omits summaries.
func (p process) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	families, err := p.Gather()
	if err != nil {
		return nil, err
	}
	out := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: scope}}
	now := time.Now()
	for _, f := range families {
		var points []metricdata.DataPoint[float64]
		for _, m := range f.Metric {
			point := metricdata.DataPoint[float64]{Attributes: labels(m), Time: now,
				Value: m.GetGauge().GetValue() + m.GetCounter().GetValue()} // only one is set
			if f.GetType() == dto.MetricType_COUNTER {
				point.StartTime = p.began
			}
			points = append(points, point)
		}
		m := metricdata.Metrics{Name: f.GetName(), Description: f.GetHelp()}
		switch f.GetType() {
		case dto.MetricType_COUNTER:
			m.Data = metricdata.Sum[float64]{DataPoints: points, IsMonotonic: true,
				Temporality: metricdata.CumulativeTemporality}
		case dto.MetricType_GAUGE:
			m.Data = metricdata.Gauge[float64]{DataPoints: points}
		default:
			continue
		}
		out.Metrics = append(out.Metrics, m)
	}
	return []metricdata.ScopeMetrics{out}, nil
}

func labels(m *dto.Metric) attribute.Set {
	var out []attribute.KeyValue
	for _, l := range m.Label {
		out = append(out, attribute.String(l.GetName(), l.GetValue()))
	}
	return attribute.NewSet(out...)
}
