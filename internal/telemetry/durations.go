package telemetry

import (
	"context"
	"slices"
	"sort"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// durations are histograms of durations and a metric.Producer of their data. Every call is recorded in three of them;
// the SDK's histograms take several times as long.
type durations struct {
	began time.Time
	mu    sync.Mutex
	all   []*duration
}

// duration is a histogram of seconds.
type duration struct {
	*series[*times]
	name, about string
	bounds      []float64 // bucket boundaries
}

// times is one series of a histogram.
type times struct {
	attributes       attribute.Set
	mu               sync.Mutex
	buckets          []uint64
	count            uint64
	sum, least, most float64
}

func (d *durations) create(name, about string, bounds []float64, labels ...attribute.Key) *duration {
	created := &duration{name: name, about: about, bounds: bounds, series: newSeries(func(a attribute.Set) *times {
		return &times{attributes: a, buckets: make([]uint64, len(bounds)+1)}
	}, labels...)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, created)
	return created
}

func (d *duration) record(took time.Duration, v values) { d.add(d.of(v), took) }

// add records a duration in one of the series.
func (d *duration) add(t *times, took time.Duration) {
	seconds := took.Seconds()
	bucket := sort.SearchFloat64s(d.bounds, seconds)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == 0 || seconds < t.least {
		t.least = seconds
	}
	t.most = max(t.most, seconds)
	t.sum += seconds
	t.count++
	t.buckets[bucket]++
}

// Produce implements metric.Producer.
func (d *durations) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: scope}}
	now := time.Now()
	for _, h := range d.all {
		var points []metricdata.HistogramDataPoint[float64]
		for _, t := range *h.known.Load() {
			point := t.point()
			point.Bounds, point.StartTime, point.Time = h.bounds, d.began, now
			points = append(points, point)
		}
		if points != nil {
			out.Metrics = append(out.Metrics, metricdata.Metrics{Name: h.name, Description: h.about, Unit: "s",
				Data: metricdata.Histogram[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality}})
		}
	}
	return []metricdata.ScopeMetrics{out}, nil
}

func (t *times) point() metricdata.HistogramDataPoint[float64] {
	t.mu.Lock()
	defer t.mu.Unlock()
	return metricdata.HistogramDataPoint[float64]{Attributes: t.attributes, Count: t.count, Sum: t.sum,
		BucketCounts: slices.Clone(t.buckets),
		Min:          metricdata.NewExtrema(t.least), Max: metricdata.NewExtrema(t.most)}
}
