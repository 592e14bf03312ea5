package otlp

import (
	"context"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/sdk/resource"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
)

const cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE

// ExportMetrics sends metrics of Prometheus under the same names. It omits summaries. began is when counting began.
func (c *Client) ExportMetrics(
	ctx context.Context, about *resource.Resource, scope string, began time.Time, families []*dto.MetricFamily,
) error {
	out := &metricspb.ScopeMetrics{Scope: &commonpb.InstrumentationScope{Name: scope}}
	e := metricEncoder{began: nanos(began), now: nanos(time.Now())}
	for _, f := range families {
		m := &metricspb.Metric{Name: f.GetName(), Description: f.GetHelp()}
		switch f.GetType() {
		case dto.MetricType_COUNTER:
			m.Data = &metricspb.Metric_Sum{Sum: &metricspb.Sum{AggregationTemporality: cumulative, IsMonotonic: true,
				DataPoints: e.numbers(f.Metric, e.began)}}
		case dto.MetricType_GAUGE:
			m.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: e.numbers(f.Metric, 0)}}
		case dto.MetricType_HISTOGRAM:
			m.Data = &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{AggregationTemporality: cumulative,
				DataPoints: e.histograms(f.Metric)}}
		default:
			continue
		}
		out.Metrics = append(out.Metrics, m)
	}
	return c.send(ctx, &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{
		Resource: encodeResource(about), SchemaUrl: about.SchemaURL(), ScopeMetrics: []*metricspb.ScopeMetrics{out}}}})
}

type metricEncoder struct{ began, now uint64 }

func (e metricEncoder) numbers(metrics []*dto.Metric, began uint64) (out []*metricspb.NumberDataPoint) {
	for _, m := range metrics {
		value := m.GetCounter().GetValue() + m.GetGauge().GetValue() // only one is set
		out = append(out, &metricspb.NumberDataPoint{Attributes: encodeLabels(m), StartTimeUnixNano: began,
			TimeUnixNano: e.now, Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: value}})
	}
	return out
}

func (e metricEncoder) histograms(metrics []*dto.Metric) (out []*metricspb.HistogramDataPoint) {
	for _, m := range metrics {
		h := m.GetHistogram()
		sum := h.GetSampleSum()
		point := &metricspb.HistogramDataPoint{Attributes: encodeLabels(m), StartTimeUnixNano: e.began,
			TimeUnixNano: e.now, Count: h.GetSampleCount(), Sum: &sum}
		below := uint64(0)
		for _, b := range h.Bucket { // without that of +Inf
			point.ExplicitBounds = append(point.ExplicitBounds, b.GetUpperBound())
			point.BucketCounts = append(point.BucketCounts, b.GetCumulativeCount()-below)
			below = b.GetCumulativeCount()
		}
		point.BucketCounts = append(point.BucketCounts, h.GetSampleCount()-below)
		out = append(out, point)
	}
	return out
}

func encodeLabels(m *dto.Metric) []*commonpb.KeyValue {
	out := make([]*commonpb.KeyValue, len(m.Label))
	for i, l := range m.Label {
		out[i] = &commonpb.KeyValue{Key: l.GetName(),
			Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: l.GetValue()}}}
	}
	return out
}
