package telemetry

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// Handler serves /metrics in the Prometheus format, or 404 if metrics are off. sees returns a function that reports
// which servers and tools the sender of a request may see, nil for all; for a server itself the tool is empty. Other
// series are left out.
func (t *Telemetry) Handler(sees func(r *http.Request) func(server, tool string) bool) http.Handler {
	if t.registry == nil {
		return http.NotFoundHandler()
	}
	places := make(chan struct{}, maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
		default:
			http.Error(w, fmt.Sprintf("%d requests for metrics are being served; try again later", maxScrapes),
				http.StatusServiceUnavailable)
			return
		}
		defer func() { <-places }()
		gatherer := prometheus.Gatherer(prometheus.Gatherers{t.registry, t.process})
		if see := sees(r); see != nil {
			gatherer = only{gatherer, see}
		}
		promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	})
}

// labelTool is the Prometheus name of tracing.ToolName.
const labelTool = "gen_ai_tool_name"

// maxScrapes limits the concurrent requests of all callers. Further ones get status 503.
const maxScrapes = 8

// only gathers the series of visible servers and tools, and those without a server.
type only struct {
	prometheus.Gatherer
	see func(server, tool string) bool
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
	server, tool := "", ""
	for _, l := range m.Label {
		switch l.GetName() {
		case string(labelServer):
			server = l.GetValue()
		case labelTool:
			tool = l.GetValue()
		}
	}
	if tool == other {
		tool = ""
	}
	return server != "" && (!o.see(server, "") || tool != "" && !o.see(server, tool))
}
