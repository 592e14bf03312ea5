package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
)

// other stands for the values of a label beyond its bound.
const other = "_other"

// maxSeries bounds the series of one instrument. Beyond it one series has the rest, as in the SDK.
const maxSeries = 2000

// values are those of the labels of one series, in the order of their names. Empty ones are left out.
type values [4]string

// rest stands for the values of the series that has the rest.
var rest = values{"otel.metric.overflow"}

// series has what one instrument needs for each of its series. It is made once each. Reading takes no lock.
type series[T any] struct {
	create func(attribute.Set) T
	names  []attribute.Key
	known  atomic.Pointer[map[values]T]
	mu     sync.Mutex // held while known is replaced
}

func newSeries[T any](create func(attribute.Set) T, names ...attribute.Key) *series[T] {
	s := &series[T]{create: create, names: names}
	s.known.Store(&map[values]T{})
	return s
}

// of returns what the series with these values needs.
func (s *series[T]) of(v values) T {
	if found, ok := (*s.known.Load())[v]; ok {
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
