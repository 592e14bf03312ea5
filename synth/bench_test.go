package synth_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/synth"
)

// A large question: 100 results of 1 MiB each, and an answer with 200 quotes from all over them.
const (
	largeSteps  = 100
	largeResult = 1 << 20
	largeQuotes = 200

	largeQuestion = "Why did the Berlin office open late?"
)

// large returns such results, of which as many as distinct differ, and an answer whose quotes are in them if found is
// true. Form is text, json or escaped.
func large(form string, distinct int, found bool) (outcomes []plan.Outcome, answer string) {
	random := rand.New(rand.NewPCG(1, 2))
	var results [][]string
	for range distinct {
		results = append(results, logLines(random))
	}
	var all []string
	for i := range largeSteps {
		lines := results[i%distinct]
		var o plan.Outcome
		if i < distinct {
			o = outcomeOf(form, lines)
		} else {
			o = outcomes[i%distinct]
		}
		o.Step = plan.Step{ID: fmt.Sprintf("s%d", i+1), Server: "logs", Tool: "read_log"}
		outcomes = append(outcomes, o)
		for range largeQuotes / largeSteps {
			quote := lines[random.IntN(len(lines))][17:]
			if form == "escaped" {
				quote = quote[max(0, len(quote)-40):] + " café"
			}
			if !found {
				quote += " and nothing else"
			}
			all = append(all, fmt.Sprintf(`Something happened then, as the log says [%s: "%s"].`, o.Step.ID, quote))
		}
	}
	return outcomes, strings.Join(all, "\n")
}

// cpuTime is the CPU time that the process has used.
func cpuTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func logLines(random *rand.Rand) (lines []string) {
	words := strings.Fields("the office in Berlin has opened late on Monday because storm water damaged main power lines")
	for size := 0; size < largeResult; size += len(lines[len(lines)-1]) + 24 {
		line := fmt.Sprintf("2026-11-22T18:%02d record %d:", random.IntN(60), len(lines))
		for range 6 + random.IntN(8) {
			line += " " + words[random.IntN(len(words))]
		}
		lines = append(lines, line)
	}
	return lines
}

func outcomeOf(form string, lines []string) (o plan.Outcome) {
	switch form {
	case "text":
		o.Text = strings.Join(lines, "\n")
		o.Value, _ = json.Marshal(o.Text)
	case "json":
		o.Value = json.RawMessage(`[{"id":1,"line":"` + strings.Join(lines, `"},{"id":1,"line":"`) + `"}]`)
		o.Text = string(o.Value)
	case "escaped":
		o.Value = json.RawMessage(`{"content":"` + strings.Join(lines, ` caf\u00e9\n`) + ` caf\u00e9"}`)
	}
	return o
}

// BenchmarkCompose prints the CPU time of an answer over 100 MiB of results with 200 quotes as cpu-ms/op; it is to take
// 50 ms at most.
func BenchmarkCompose(b *testing.B) {
	for _, form := range []string{"text", "json", "escaped"} {
		for _, found := range []bool{true, false} {
			outcomes, answer := large(form, largeSteps, found)
			b.Run(fmt.Sprintf("%s/found=%v", form, found), func(b *testing.B) {
				b.ReportAllocs()
				s := synth.New(synth.Options{Model: says(answer)})
				runtime.GC()
				before := cpuTime()
				for b.Loop() {
					s.Compose(b.Context(), synth.Request{Query: largeQuestion, Outcomes: outcomes, OnText: func(string) {}})
				}
				b.ReportMetric(float64((cpuTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
			})
		}
		outcomes, _ := large(form, largeSteps, true)
		b.Run(form+"/digest", func(b *testing.B) {
			b.ReportAllocs()
			s := synth.New(synth.Options{})
			for b.Loop() {
				s.Compose(b.Context(), synth.Request{Query: largeQuestion, Outcomes: outcomes})
			}
		})
	}
}
