package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/cases"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
	"github.com/agenticnexus/agenticnexus/router"
)

const (
	batchCases   = 10_000
	batchWorkers = 8
)

// planner is a model that plans one step, and answers.
func planner(b *testing.B) *llmtest.Server {
	model := llmtest.New(b)
	model.Script(func(r llmtest.Request) (llmtest.Reply, bool) {
		if strings.Contains(r.System, "plan") {
			return llmtest.Reply{Text: `{"steps":[{"id":"s1","tool":"find","arguments":{"q":"x"}}]}`}, true
		}
		return llmtest.Reply{Text: "Done."}, true
	})
	return model
}

func finder(b *testing.B) *toolServer {
	return serveTools(b, []tool{newTool("find", "Find things", `{"type":"object","properties":{"q":{"type":"string"}}}`, 0)})
}

// BenchmarkBatch asks the same questions plainly and in a batch, in turns, and reports how many a second each answers.
func BenchmarkBatch(b *testing.B) {
	a := startRouter(b, finder(b), planner(b))
	content := func(ctx context.Context, question string) (json.RawMessage, error) {
		record, err := a.Router().Query(ctx, router.Query{Text: question})
		if err != nil {
			return nil, err
		}
		return json.Marshal(record.Content(true))
	}
	var all []cases.Case
	for i := range batchCases / 10 {
		all = append(all, cases.Case{ID: fmt.Sprint(i), Query: fmt.Sprintf("Find thing %d", i), Expect: &cases.Expect{AnswerContains: []string{"Done"}}})
	}
	for range 20 {
		_, _ = content(b.Context(), "warm up")
	}
	var plain, inBatch time.Duration
	n := 0
	for b.Loop() {
		for range 5 {
			plain += timed(func() { askPlainly(b, all, content) })
			inBatch += timed(func() { runBatch(b, all, content) })
			n += len(all)
		}
	}
	b.ReportMetric(float64(n)/plain.Seconds(), "plain/s")
	b.ReportMetric(float64(n)/inBatch.Seconds(), "batch/s")
	b.ReportMetric(100*plain.Seconds()/inBatch.Seconds(), "%")
}

func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

type asking = func(ctx context.Context, question string) (json.RawMessage, error)

func askPlainly(b *testing.B, all []cases.Case, content asking) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range batchWorkers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
				if _, err := content(b.Context(), all[i].Query); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func runBatch(b *testing.B, all []cases.Case, content asking) {
	out, err := results.Create(filepath.Join(b.TempDir(), "results.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	t, err := batch.Run(b.Context(), batch.Options{
		Cases: all, Repeat: 1, Concurrency: batchWorkers, Out: out, Fingerprint: "f",
		Ask: func(ctx context.Context, q batch.Question) (batch.Answer, error) {
			raw, err := content(ctx, q.Query)
			return batch.Answer{Content: raw}, err
		},
	})
	if err != nil || !t.Clean() {
		b.Fatalf("got %+v, %v", t, err)
	}
}

// BenchmarkBatchMemory runs many cases by the program and reports by how much its memory grows after the first 1,000.
func BenchmarkBatchMemory(b *testing.B) {
	dir := b.TempDir()
	bin := filepath.Join(dir, "nexus")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", bin, "../../cmd/nexus").CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	config := fmt.Sprintf("mcpServers: {tools: {url: %q}}\nllm: {planner: {base_url: %q, model: stub}}\n", finder(b).URL, planner(b).BaseURL)
	var text bytes.Buffer
	for i := range batchCases {
		fmt.Fprintf(&text, `{"id":"%d","query":"Find thing %d","expect":{"answer_contains":["Done"]}}`+"\n", i, i)
	}
	in, settings := filepath.Join(dir, "cases.jsonl"), filepath.Join(dir, "config.yaml")
	for path, content := range map[string][]byte{in: text.Bytes(), settings: []byte(config)} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		out := filepath.Join(dir, fmt.Sprintf("%d.jsonl", time.Now().UnixNano()))
		cmd := exec.Command(bin, "batch", "run", in, "--out", out, "--config", settings, "--concurrency", fmt.Sprint(batchWorkers))
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		var first, least, most float64
		for running := true; running; {
			select {
			case err := <-ended:
				if err != nil {
					b.Fatal(err)
				}
				running = false
			case <-time.After(50 * time.Millisecond):
				raw, _ := os.ReadFile(out) // none yet
				switch now := resident(cmd.Process.Pid); {
				case now == 0, bytes.Count(raw, []byte("\n")) < 1000:
				case first == 0:
					first, least, most = now, now, now
				default:
					least, most = min(least, now), max(most, now)
				}
			}
		}
		b.ReportMetric(first/mib, "MiB@1000")
		b.ReportMetric((least-first)/mib, "MiB-least")
		b.ReportMetric((most-first)/mib, "MiB-most")
	}
}

// resident is the memory of a process in bytes, 0 once it has ended.
func resident(pid int) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kib float64
	_, _ = fmt.Sscan(rest, &kib)
	return kib * 1024
}
