package bench

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Settings of programs that are measured beside each other.
const (
	noMetrics = "telemetry: {metrics: false}\n"
	noHistory = "history: {entries: 0}\n"
)

// rival is a program that takes turns with others.
type rival struct {
	name string
	*program
	spent, took []time.Duration // by round: CPU, and time on the clock
}

// BenchmarkTelemetry reports what telemetry and the history add to the CPU of a forwarded call: programs with none, and
// with each and all of them, take turns. The ratios are those of the sums of all rounds. NEXUS_BEFORE may name the
// binary of another version, which runs with none and with all.
func BenchmarkTelemetry(b *testing.B) {
	const rounds, callers, calls = 40, 8, 2_000
	traces := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + collector(b, 0)
	bin := build(b)
	rivals := []*rival{
		{name: "off", program: run(b, bin, "shared", noMetrics+noHistory, answer)},
		{name: "metrics", program: run(b, bin, "shared", noHistory, answer)},
		{name: "history", program: run(b, bin, "shared", noMetrics, answer)},
		{name: "traces", program: run(b, bin, "shared", noMetrics+noHistory, answer, traces)},
		{name: "all", program: run(b, bin, "shared", "", answer, traces)},
	}
	if before := os.Getenv("NEXUS_BEFORE"); before != "" {
		rivals = append(rivals, &rival{name: "before-off", program: run(b, before, "shared", noMetrics+noHistory, answer)},
			&rival{name: "before-all", program: run(b, before, "shared", "", answer, traces)})
	}
	for b.Loop() {
		takeTurns(rivals, rounds, func(p *program) {
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
		})
	}
	for _, r := range rivals {
		b.ReportMetric(float64(sum(r.spent)/time.Nanosecond)/1000/float64(len(r.spent)*calls), r.name+"-µs/call")
		b.ReportMetric(ratio(r.spent, rivals[0].spent), r.name+"/off")
	}
}

// takeTurns has each rival work in each round. The first round warms up.
func takeTurns(rivals []*rival, rounds int, work func(*program)) {
	for round := range rounds + 1 {
		for i := range rivals {
			r := rivals[(i+round)%len(rivals)]
			cpu, began := r.cpu(), time.Now()
			work(r.program)
			if took := time.Since(began); round > 0 {
				r.spent, r.took = append(r.spent, r.cpu()-cpu), append(r.took, took)
			}
		}
	}
}

func ratio(these, those []time.Duration) float64 { return float64(sum(these)) / float64(sum(those)) }

func sum(all []time.Duration) (s time.Duration) {
	for _, d := range all {
		s += d
	}
	return s
}

// answer is a tool that answers at once.
func answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, _ := jsonrpc.Parse(body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(jsonrpc.Result(m.ID, []byte(`{"content":[{"type":"text","text":"seen"}]}`)))
}

// collector returns the URL of one that takes a while for each batch; less than 0 = forever.
func collector(b *testing.B, delay time.Duration) string {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not seen
		if delay < 0 {
			<-r.Context().Done()
		}
		time.Sleep(delay)
	}))
	b.Cleanup(s.Close)
	return s.URL
}
