package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
)

// other replaces the values of a label beyond its limit.
const other = "_other"

// maxSeries limits the series of one instrument. Further ones share one overflow series, as in the SDK.
const maxSeries = 2000

// values are the label values of one series, in the order of the labels. Empty ones are left out.
type values [4]string

// rest are the values of the overflow series.
var rest = values{"otel.metric.overflow"}

// series caches the data that one instrument needs per series. Reading takes no lock.
type series[T any] struct {
	create func(attribute.Set) T
	names  []attribute.Key
	known  atomic.Pointer[map[values]T]
	mu     sync.Mutex // guards replacement of known
}

func newSeries[T any](create func(attribute.Set) T, names ...attribute.Key) *series[T] {
	s := &series[T]{create: create, names: names}
	s.known.Store(&map[values]T{})
	return s
}

// find returns the data of the series with these values, if there is one.
func (s *series[T]) find(v values) (T, bool) {
	found, ok := (*s.known.Load())[v]
	return found, ok
}

// of returns the data of the series with these values.
func (s *series[T]) of(v values) T {
	if found, ok := s.find(v); ok {
		return found
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := *s.known.Load()
	if _, ok := now[v]; !ok && len(now) >= maxSeries-1 {
		v = rest
	}
	if found, ok := now[v]; ok {
		return found
	}
	next := maps.Clone(now)
	next[v] = s.create(s.attributes(v))
	s.known.Store(&next)
	return next[v]
}

func (s *series[T]) attributes(v values) attribute.Set {
	if v == rest {
		return attribute.NewSet(attribute.Bool(rest[0], true))
	}
	attributes := make([]attribute.KeyValue, 0, len(s.names))
	for i, name := range s.names {
		if v[i] != "" {
			attributes = append(attributes, name.String(v[i]))
		}
	}
	return attribute.NewSet(attributes...)
}

// bounded limits the values of a label: the first ones are kept, later ones become other.
type bounded struct {
	most  int
	known atomic.Pointer[map[[2]string]bool]
	mu    sync.Mutex
}

// maxLabel limits the bytes of a value.
const maxLabel = 200

// label returns the label value for name of server.
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
