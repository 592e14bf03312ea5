package otlp

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"
)

// NewMetrics returns an exporter of metrics with cumulative temporality. It fails if a variable is malformed; it does
// not connect.
func NewMetrics() (sdkmetric.Exporter, error) {
	p, err := newPoster("metrics")
	if err != nil {
		return nil, err
	}
	return metrics{p}, nil
}

// metrics implements sdkmetric.Exporter.
type metrics struct{ *poster }

func (metrics) Temporality(kind sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.DefaultTemporalitySelector(kind)
}

func (metrics) Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(kind)
}

func (metrics) ForceFlush(context.Context) error { return nil } // nothing is buffered

func (m metrics) Shutdown(context.Context) error {
	m.close()
	return nil
}

func (m metrics) Export(ctx context.Context, data *metricdata.ResourceMetrics) error {
	out := &metricspb.ResourceMetrics{SchemaUrl: data.Resource.SchemaURL(),
		Resource: &resourcepb.Resource{Attributes: attributes(data.Resource.Attributes())}}
	for _, scope := range data.ScopeMetrics {
		of := &metricspb.ScopeMetrics{SchemaUrl: scope.Scope.SchemaURL, Scope: &commonpb.InstrumentationScope{
			Name: scope.Scope.Name, Version: scope.Scope.Version, Attributes: attributes(scope.Scope.Attributes.ToSlice())}}
		for _, metric := range scope.Metrics {
			converted, err := convert(metric)
			if err != nil {
				return err
			}
			of.Metrics = append(of.Metrics, converted)
		}
		out.ScopeMetrics = append(out.ScopeMetrics, of)
	}
	body, err := proto.Marshal(&metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{out}})
	if err != nil {
		return err
	}
	_, err = m.post(ctx, plain(body))
	return err
}

// convert converts the aggregations of the default selector to their wire format.
func convert(m metricdata.Metrics) (*metricspb.Metric, error) {
	out := &metricspb.Metric{Name: m.Name, Description: m.Description, Unit: m.Unit}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		out.Data = sum(data)
	case metricdata.Sum[float64]:
		out.Data = sum(data)
	case metricdata.Gauge[int64]:
		out.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: points(data.DataPoints)}}
	case metricdata.Gauge[float64]:
		out.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: points(data.DataPoints)}}
	case metricdata.Histogram[int64]:
		out.Data = histogram(data)
	case metricdata.Histogram[float64]:
		out.Data = histogram(data)
	default:
		return nil, fmt.Errorf("exporting the metric %s: %T is not supported", m.Name, data)
	}
	return out, nil
}

func sum[N int64 | float64](s metricdata.Sum[N]) *metricspb.Metric_Sum {
	return &metricspb.Metric_Sum{Sum: &metricspb.Sum{
		AggregationTemporality: temporality(s.Temporality), IsMonotonic: s.IsMonotonic, DataPoints: points(s.DataPoints)}}
}

func points[N int64 | float64](in []metricdata.DataPoint[N]) (out []*metricspb.NumberDataPoint) {
	for _, p := range in {
		point := &metricspb.NumberDataPoint{
			Attributes: attributes(p.Attributes.ToSlice()), StartTimeUnixNano: nanos(p.StartTime), TimeUnixNano: nanos(p.Time)}
		switch v := any(p.Value).(type) {
		case int64:
			point.Value = &metricspb.NumberDataPoint_AsInt{AsInt: v}
		case float64:
			point.Value = &metricspb.NumberDataPoint_AsDouble{AsDouble: v}
		}
		out = append(out, point)
	}
	return out
}

func histogram[N int64 | float64](h metricdata.Histogram[N]) *metricspb.Metric_Histogram {
	out := &metricspb.Histogram{AggregationTemporality: temporality(h.Temporality)}
	for _, p := range h.DataPoints {
		total := float64(p.Sum)
		point := &metricspb.HistogramDataPoint{
			Attributes: attributes(p.Attributes.ToSlice()), StartTimeUnixNano: nanos(p.StartTime), TimeUnixNano: nanos(p.Time),
			Count: p.Count, Sum: &total, BucketCounts: p.BucketCounts, ExplicitBounds: p.Bounds}
		point.Min, point.Max = extreme(p.Min), extreme(p.Max)
		out.DataPoints = append(out.DataPoints, point)
	}
	return &metricspb.Metric_Histogram{Histogram: out}
}

func extreme[N int64 | float64](e metricdata.Extrema[N]) *float64 {
	v, ok := e.Value()
	if !ok {
		return nil
	}
	f := float64(v)
	return &f
}

func temporality(t metricdata.Temporality) metricspb.AggregationTemporality {
	if t == metricdata.DeltaTemporality {
		return metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	}
	return metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
}

func nanos(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(max(0, t.UnixNano()))
}

func attributes(in []attribute.KeyValue) (out []*commonpb.KeyValue) {
	for _, kv := range in {
		out = append(out, &commonpb.KeyValue{Key: string(kv.Key), Value: value(kv.Value)})
	}
	return out
}

// value converts an attribute to its wire format; lists, which the router's metrics do not have, become text.
func value(v attribute.Value) *commonpb.AnyValue {
	switch v.Type() {
	case attribute.BOOL:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v.AsBool()}}
	case attribute.INT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v.AsInt64()}}
	case attribute.FLOAT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v.AsFloat64()}}
	}
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v.String()}}
}
