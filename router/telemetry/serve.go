package telemetry

import (
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// labelServer is the label of series that belong to one server.
const labelServer = "server"

// Handler serves /metrics in the format of Prometheus, or 404 if metrics are off. sees returns which servers who
// asks may see, nil for all; the series of the others are left out.
func (t *Telemetry) Handler(sees func(r *http.Request) func(server string) bool) http.Handler {
	if t.registry == nil {
		return http.NotFoundHandler()
	}
	opts := promhttp.HandlerOpts{MaxRequestsInFlight: 8}
	whole := promhttp.HandlerFor(t.registry, opts)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		see := sees(r)
		if see == nil {
			whole.ServeHTTP(w, r)
			return
		}
		promhttp.HandlerFor(only{t.registry, see}, opts).ServeHTTP(w, r)
	})
}

// only gathers what concerns no server, or one that may be seen.
type only struct {
	prometheus.Gatherer
	see func(server string) bool
}

// Gather implements prometheus.Gatherer.
func (o only) Gather() ([]*dto.MetricFamily, error) {
	families, err := o.Gatherer.Gather()
	for _, f := range families {
		f.Metric = slices.DeleteFunc(f.Metric, o.hides)
	}
	return slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return len(f.Metric) == 0 }), err
}

func (o only) hides(m *dto.Metric) bool {
	return slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool {
		return l.GetName() == labelServer && !o.see(l.GetValue())
	})
}
