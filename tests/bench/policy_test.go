package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkPolicy reports what a policy of 20 rules adds to the CPU of a forwarded call: programs with and without it
// take turns. No rule holds, and none reads the arguments of the call.
func BenchmarkPolicy(b *testing.B) {
	const processes, rounds, callers, calls = 2, 180, 8, 400
	var rules strings.Builder
	rules.WriteString("policy:\n")
	for i := range 20 {
		fmt.Fprintf(&rules, "  - {when: 'tool == \"tool%d\" and caller != \"ops\" and arguments.amount > %d', then: deny}\n",
			i, i)
	}
	bin := build(b)
	kinds := map[string]string{"off": "", "policy": rules.String()}
	var rivals []*rival
	for range processes {
		for name, settings := range kinds {
			rivals = append(rivals, &rival{name: name, program: run(b, bin, "shared", settings+noHistory, answer)})
		}
	}
	for b.Loop() {
		takeTurns(rivals, rounds, func(p *program) { p.callBy(callers, calls/callers) })
	}
	for name := range kinds {
		spent := spentBy(rivals, name)
		b.ReportMetric(float64(sum(spent)/time.Nanosecond)/1000/float64(len(spent)*calls), name+"-µs/call")
	}
	b.ReportMetric(ratio(spentBy(rivals, "policy"), spentBy(rivals, "off")), "policy/off")
}
