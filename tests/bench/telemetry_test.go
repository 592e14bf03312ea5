package bench

import (
	"io"
	"net/http"
	"net/http/httptest"
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
	spent []time.Duration // CPU by round
}

// BenchmarkTelemetry reports what telemetry and the history add to the CPU of a forwarded call: programs with none, and
// with each and all of them, take turns. The ratios are those of the sums of all rounds. Turns are short, because equal
// turns a second apart differ by half.
func BenchmarkTelemetry(b *testing.B) {
	const processes, rounds, callers, calls = 2, 180, 8, 400
	traces := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + collector(b)
	const every = "OTEL_TRACES_SAMPLER=parentbased_always_on"
	bin := build(b)
	kinds := []struct {
		name, settings string
		env            []string
	}{
		{"off", noMetrics + noHistory, nil},
		{"metrics", noHistory, nil},
		{"history", noMetrics, nil},
		{"tenth", noMetrics + noHistory, []string{traces}},
		{"every-trace", noMetrics + noHistory, []string{traces, every}},
		{"all", "", []string{traces}}, // metrics, history and a tenth of the traces
	}
	var rivals []*rival
	for range processes {
		for _, k := range kinds {
			rivals = append(rivals, &rival{name: k.name, program: run(b, bin, "shared", k.settings, answer, k.env...)})
		}
	}
	for b.Loop() {
		takeTurns(rivals, rounds, func(p *program) { p.callBy(callers, calls/callers) })
	}
	for _, k := range kinds {
		spent := spentBy(rivals, k.name)
		b.ReportMetric(float64(sum(spent)/time.Nanosecond)/1000/float64(len(spent)*calls), k.name+"-µs/call")
		b.ReportMetric(ratio(spent, spentBy(rivals, "off")), k.name+"/off")
	}
}

// callBy has a number of callers make some calls each, at the same time.
func (p *program) callBy(callers, calls int) {
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for n := range calls {
				if resp := p.post("", call(n, 0)); resp != nil {
					drain(resp)
				}
			}
		})
	}
	all.Wait()
}

// spentBy returns the CPU times of the rivals of a name.
func spentBy(rivals []*rival, name string) (all []time.Duration) {
	for _, r := range rivals {
		if r.name == name {
			all = append(all, r.spent...)
		}
	}
	return all
}

// takeTurns has each rival work in each round. The first round warms up.
func takeTurns(rivals []*rival, rounds int, work func(*program)) {
	for round := range rounds + 1 {
		for i := range rivals {
			r := rivals[(i+round)%len(rivals)]
			before := r.cpu()
			work(r.program)
			if round > 0 {
				r.spent = append(r.spent, r.cpu()-before)
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

// collector returns the URL of a collector that takes everything.
func collector(b *testing.B) string {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	b.Cleanup(s.Close)
	return s.URL
}
