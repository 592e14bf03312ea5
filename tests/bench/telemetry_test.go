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
// with each and all of them, take turns. The ratios are those of the sums of all rounds. Turns are short, because equal
// turns a second apart differ by half. NEXUS_BEFORE may name the binary of another
// version, which runs with none and with all.
func BenchmarkTelemetry(b *testing.B) {
	const processes, rounds, callers, calls = 2, 180, 8, 400
	traces := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + collector(b, 0)
	const every = "OTEL_TRACES_SAMPLER=parentbased_always_on"
	bin := build(b)
	kinds := []struct {
		name, bin, settings string
		env                 []string
	}{
		{"off", bin, noMetrics + noHistory, nil},
		{"metrics", bin, noHistory, nil},
		{"history", bin, noMetrics, nil},
		{"tenth", bin, noMetrics + noHistory, []string{traces}},
		{"every-trace", bin, noMetrics + noHistory, []string{traces, every}},
		{"all", bin, "", []string{traces}}, // metrics, history and a tenth of the traces
	}
	if before := os.Getenv("NEXUS_BEFORE"); before != "" {
		for _, k := range []int{0, 5} {
			kinds = append(kinds, kinds[k])
			last := &kinds[len(kinds)-1]
			last.name, last.bin = "before-"+last.name, before
		}
	}
	var rivals []*rival
	for range processes {
		for _, k := range kinds {
			rivals = append(rivals, &rival{name: k.name, program: run(b, k.bin, "shared", k.settings, answer, k.env...)})
		}
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
	for _, k := range kinds {
		spent := spentBy(rivals, k.name)
		b.ReportMetric(float64(sum(spent)/time.Nanosecond)/1000/float64(len(spent)*calls), k.name+"-µs/call")
		b.ReportMetric(ratio(spent, spentBy(rivals, "off")), k.name+"/off")
	}
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
