package bench

import (
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// BenchmarkTelemetry reports what telemetry adds to the CPU of a forwarded call: programs with none, with metrics alone
// (as by default), with the history alone, with traces to a collector too, and with a collector that never answers take
// turns. NEXUS_BEFORE may name the binary of another version, which has no telemetry switched on.
func BenchmarkTelemetry(b *testing.B) {
	const rounds, callers, calls = 5, 8, 8_000
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	b.Cleanup(collector.Close)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not seen
		<-r.Context().Done()
	}))
	b.Cleanup(hanging.Close)
	tool := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, _ := jsonrpc.Parse(body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(jsonrpc.Result(m.ID, []byte(`{"content":[{"type":"text","text":"seen"}]}`)))
	}
	const off, on = "telemetry: {metrics: false}\n", "history: {entries: 0}\n" // the history has costs of its own
	bin := build(b)
	programs := []struct {
		name string
		*program
		spent []float64 // µs a call, by round
	}{
		{"off", run(b, bin, "shared", off+on, tool), nil},
		{"metrics", run(b, bin, "shared", on, tool), nil},
		{"history", run(b, bin, "shared", "telemetry: {metrics: false}\n", tool), nil},
		{"full", run(b, bin, "shared", on, tool, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+collector.URL), nil},
		{"hanging", run(b, bin, "shared", on, tool, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+hanging.URL), nil},
	}
	if before := os.Getenv("NEXUS_BEFORE"); before != "" {
		programs = append(programs, programs[0])
		last := &programs[len(programs)-1]
		last.name, last.program, last.spent = "before", run(b, before, "shared", off, tool), nil
	}
	for b.Loop() {
		for round := range rounds + 1 { // the first warms up
			for i := range programs {
				p := &programs[(i+round)%len(programs)]
				began := p.cpu()
				var all sync.WaitGroup
				for range callers {
					all.Go(func() {
						for n := range calls / callers {
							if resp := p.post("", call(n, 0)); resp != nil {
								drain(resp)
							}
						}
					})
				}
				all.Wait()
				if round > 0 {
					p.spent = append(p.spent, float64((p.cpu()-began)/time.Microsecond)/calls)
				}
			}
		}
	}
	for _, p := range programs {
		var ratios []float64
		for i, spent := range p.spent {
			ratios = append(ratios, spent/programs[0].spent[i])
		}
		b.ReportMetric(median(p.spent), p.name+"-µs/call")
		b.ReportMetric(median(ratios), p.name+"/off")
	}
}

func median(all []float64) float64 {
	sorted := slices.SortedFunc(slices.Values(all), cmp.Compare)
	return sorted[len(sorted)/2]
}
