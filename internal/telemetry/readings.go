package telemetry

import (
	"context"
	"runtime"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Readings are values read when metrics are collected.
type Readings struct {
	Sessions int              // client sessions
	Tracked  int              // client requests in flight
	Dropped  int64            // total notifications dropped because a client read too slowly
	Spans    int64            // total spans not exported
	Refusals map[string]int64 // total refused requests, by cause
	Servers  map[string]ServerReading
}

// ServerReading is the state of a server.
type ServerReading struct {
	Up          bool
	BreakerOpen bool // open or half-open
	InFlight    int
	Queued      int
	Sessions    int
	Tools       int
	Quarantined int // quarantined tools
}

// Watch adds the instruments that are read on collection, including one with the version.
func (m *Metrics) Watch(version string, read func() Readings) error {
	w := watcher{meter: m.meter, read: read}
	w.gauge("nexus.sessions", "Sessions of clients.", func(r Readings) int { return r.Sessions })
	w.gauge("nexus.tracked_requests", "Requests of clients whose answer is outstanding.",
		func(r Readings) int { return r.Tracked })
	w.gauge("nexus.build_info", "Version of the router.", func(Readings) int { return 1 },
		attribute.String("version", version), attribute.String("go_version", runtime.Version()))
	w.total("nexus.dropped_notifications", "Progress and other notifications that clients did not read in time.",
		"", func(r Readings) map[string]int64 { return map[string]int64{"": r.Dropped} })
	w.total("nexus.dropped_spans", "Spans that were not exported, because the collector was slow or did not take them.",
		"", func(r Readings) map[string]int64 { return map[string]int64{"": r.Spans} })
	w.total("nexus.refused_requests", "Requests of clients that were refused.", labelCause,
		func(r Readings) map[string]int64 { return r.Refusals })
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	w.server("nexus.server.up", "Whether the server is connected.", func(s ServerReading) int { return flag(s.Up) })
	w.server("nexus.server.breaker_open", "Whether the circuit breaker of the server is open or half-open.",
		func(s ServerReading) int { return flag(s.BreakerOpen) })
	w.server("nexus.server.in_flight", "Requests at the server.", func(s ServerReading) int { return s.InFlight })
	w.server("nexus.server.queued", "Requests that wait for a place at the server.",
		func(s ServerReading) int { return s.Queued })
	w.server("nexus.server.sessions", "Sessions with the server.", func(s ServerReading) int { return s.Sessions })
	w.server("nexus.server.tools", "Tools that the server listed last.", func(s ServerReading) int { return s.Tools })
	w.server("nexus.server.quarantined_tools", "Tools of the server that cannot be used.",
		func(s ServerReading) int { return s.Quarantined })
	return w.register()
}

// watcher adds observable instruments. One callback observes all of them from the same readings.
type watcher struct {
	meter       metric.Meter
	read        func() Readings
	instruments []metric.Observable
	observe     []func(metric.Observer, Readings)
	err         error // the first error
}

func (w *watcher) add(i metric.Observable, err error, observe func(metric.Observer, Readings)) {
	if err != nil && w.err == nil {
		w.err = err
	}
	w.instruments, w.observe = append(w.instruments, i), append(w.observe, observe)
}

func (w *watcher) gauge(name, about string, value func(Readings) int, labels ...attribute.KeyValue) {
	i, err := w.meter.Int64ObservableGauge(name, metric.WithDescription(about))
	w.add(i, err, func(o metric.Observer, r Readings) {
		o.ObserveInt64(i, int64(value(r)), metric.WithAttributes(labels...))
	})
}

func (w *watcher) total(name, about string, label attribute.Key, values func(Readings) map[string]int64) {
	i, err := w.meter.Int64ObservableCounter(name, metric.WithDescription(about))
	w.add(i, err, func(o metric.Observer, r Readings) {
		for value, n := range values(r) {
			if label == "" {
				o.ObserveInt64(i, n)
			} else {
				o.ObserveInt64(i, n, metric.WithAttributes(label.String(value)))
			}
		}
	})
}

func (w *watcher) server(name, about string, value func(ServerReading) int) {
	i, err := w.meter.Int64ObservableGauge(name, metric.WithDescription(about))
	w.add(i, err, func(o metric.Observer, r Readings) {
		for server, s := range r.Servers {
			o.ObserveInt64(i, int64(value(s)), metric.WithAttributes(labelServer.String(server)))
		}
	})
}

func (w *watcher) register() error {
	if w.err != nil {
		return w.err
	}
	_, err := w.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		r := w.read()
		for _, observe := range w.observe {
			observe(o, r)
		}
		return nil
	}, w.instruments...)
	return err
}
