package synth_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/synth"
)

// BenchmarkCompose composes an answer with 200 quotes from 100 results of 1 MiB each.
func BenchmarkCompose(b *testing.B) {
	content := filler(1, 1<<20)
	lines := strings.Split(content, "\n")
	for form, value := range map[string]string{"text": content, "json": `{"lines":["` + strings.Join(lines, `","`) + `"]}`} {
		var outcomes []plan.Outcome
		var answer strings.Builder
		for i := range 100 {
			o := text(fmt.Sprintf("s%d", i), content)
			if form == "json" {
				o.Value = []byte(value)
			}
			outcomes = append(outcomes, o)
			fmt.Fprintf(&answer, "So it is [s%d: \"%s\"], and so [s%d: \"%s\"].\n", i, lines[i], i, lines[len(lines)/2+i])
		}
		s := synth.New(synth.Options{Model: says(answer.String())})
		b.Run(form, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Compose(b.Context(), synth.Request{Query: "Why did the Berlin office open late?", Outcomes: outcomes, OnText: func(string) {}})
			}
		})
	}
}
