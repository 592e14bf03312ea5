package telemetry

import (
	"fmt"
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
	places := make(chan struct{}, maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
		default:
			http.Error(w, fmt.Sprintf("%d requests for metrics are under way; try again later", maxScrapes),
				http.StatusServiceUnavailable)
			return
		}
		defer func() { <-places }()
		gatherer := prometheus.Gatherer(t.registry)
		if see := sees(r); see != nil {
			gatherer = only{gatherer, see}
		}
		promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	})
}

// maxScrapes is how many requests are served at once, whoever makes them; more are answered with 503.
const maxScrapes = 8

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
