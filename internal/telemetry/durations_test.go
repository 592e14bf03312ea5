package telemetry

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
)

// What readers get of durations equals what the SDK makes of the same ones.
func TestDurationsEqualThoseOfTheSDK(t *testing.T) {
	own := &durations{}
	mine := own.create("nexus.queue.wait", "Time.", mcpBuckets, labelServer, labelOutcome)
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	theirs, err := provider.Meter(scope).Float64Histogram("nexus.queue.wait", metric.WithDescription("Time."), metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(mcpBuckets...))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	record := func(took time.Duration, v values) {
		mine.record(took, v)
		theirs.Record(t.Context(), took.Seconds(), metric.WithAttributeSet(mine.attributes(v)))
	}
	for i, bound := range mcpBuckets {
		record(time.Duration(bound*float64(time.Second)), values{fmt.Sprint(i)})
	}
	for range 1000 {
		took := time.Duration(random.IntN(20_000)) * 15_625 * time.Microsecond // sums are exact in any order
		record(took, values{"7", fmt.Sprint(random.IntN(3))})
	}
	var want metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &want); err != nil {
		t.Fatal(err)
	}
	got, err := own.Produce(t.Context())
	if err != nil || len(got) != 1 || len(want.ScopeMetrics) != 1 {
		t.Fatalf("got %d scopes and %v, want one", len(got), err)
	}
	metricdatatest.AssertEqual(t, want.ScopeMetrics[0], got[0], metricdatatest.IgnoreTimestamp())
}
