package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// other stands for the values of a label beyond its bound.
const other = "_other"

// maxSeries bounds the series of one instrument that are kept for reuse; the SDK has a bound of its own, 2,000, beyond
// which it counts in one series.
const maxSeries = 2000

// values are those of the labels of one series, in the order of their names. Empty ones are left out.
type values [4]string

// series has the attributes of the series of one instrument. They are made once each. Reading takes no lock.
type series struct {
	names []attribute.Key
	known atomic.Pointer[map[values]metric.MeasurementOption]
	mu    sync.Mutex // held while known is replaced
}

func newSeries(names ...attribute.Key) *series {
	s := &series{names: names}
	s.known.Store(&map[values]metric.MeasurementOption{})
	return s
}

// of returns the attributes with these values.
func (s *series) of(v values) metric.MeasurementOption {
	if found, ok := (*s.known.Load())[v]; ok {
		return found
	}
	attributes := make([]attribute.KeyValue, 0, len(s.names))
	for i, name := range s.names {
		if v[i] != "" {
			attributes = append(attributes, name.String(v[i]))
		}
	}
	made := metric.WithAttributeSet(attribute.NewSet(attributes...))
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := *s.known.Load(); len(now) < maxSeries {
		next := maps.Clone(now)
		next[v] = made
		s.known.Store(&next)
	}
	return made
}

// bounded are the values of a label: those that came first count, others are other.
type bounded struct {
	most  int
	known atomic.Pointer[map[[2]string]bool]
	mu    sync.Mutex
}

// maxLabel bounds the length of a value in bytes.
const maxLabel = 200

// label returns the value to use for name of server.
func (b *bounded) label(server, name string) string {
	if len(name) > maxLabel {
		return other
	}
	key := [2]string{server, name}
	known := b.known.Load()
	if known != nil && (*known)[key] {
		return name
	}
	if known != nil && len(*known) >= b.most {
		return other
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	next := map[[2]string]bool{key: true}
	if known = b.known.Load(); known != nil {
		maps.Copy(next, *known)
	}
	if len(next) > b.most {
		return other
	}
	b.known.Store(&next)
	return name
}
