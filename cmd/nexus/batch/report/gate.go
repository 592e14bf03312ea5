package report

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Gate is a condition under which a batch fails: METRIC OP NUMBER[x].
type Gate struct {
	Text     string
	metric   string
	op       string
	number   float64
	relative bool // to the metric of A
}

// The metrics of gates. The last two need a comparison.
var metrics = []string{"pass_rate", "errors", "p50", "p95", "p99", "tokens", "cost", FlippedToFail, FlippedToPass}

// Metrics of comparisons.
const (
	FlippedToFail = "flipped_to_fail"
	FlippedToPass = "flipped_to_pass"
)

var gateForm = regexp.MustCompile(`^\s*([a-z0-9_]+)\s*(<=|>=|==|!=|<|>)\s*([0-9.eE+-]+)\s*(x?)\s*$`)

// ParseGate reads a gate. If compared is false, relative gates and gates on flipped cases are errors.
func ParseGate(text string, compared bool) (Gate, error) {
	parts := gateForm.FindStringSubmatch(text)
	if parts == nil {
		return Gate{}, fmt.Errorf("--fail-if %q: write METRIC OP NUMBER, such as pass_rate<0.9, or p95>1.2x to compare", text)
	}
	number, err := strconv.ParseFloat(parts[3], 64)
	g := Gate{Text: strings.TrimSpace(text), metric: parts[1], op: parts[2], number: number, relative: parts[4] != ""}
	flipped := g.metric == FlippedToFail || g.metric == FlippedToPass
	switch {
	case err != nil:
		return g, fmt.Errorf("--fail-if %q: %s is not a number", text, parts[3])
	case !slices.Contains(metrics, g.metric):
		return g, fmt.Errorf("--fail-if %q: unknown metric %s; known: %s", text, g.metric, strings.Join(metrics, ", "))
	case flipped && g.relative:
		return g, fmt.Errorf("--fail-if %q: %s cannot be relative to A", text, g.metric)
	case !compared && (flipped || g.relative):
		return g, fmt.Errorf("--fail-if %q needs two files: nexus batch compare A B", text)
	}
	return g, nil
}

// Metrics are the figures of a batch that gates judge.
func (b *Batch) Metrics() map[string]float64 {
	c, l := b.Counts(), b.Latency()
	rate := 0.0
	if judged := c.Lines - c.Skipped; judged > 0 {
		rate = float64(c.Passed) / float64(judged)
	}
	m := map[string]float64{
		"pass_rate": rate, "errors": float64(c.Errors), "p50": l.P50, "p95": l.P95, "p99": l.P99,
		"tokens": float64(b.Input + b.Output),
	}
	if b.Priced || m["tokens"] == 0 {
		m["cost"] = b.Cost()
	}
	return m
}

// Judge returns the failed gates, each with the actual value. a is nil without a comparison.
func Judge(gates []Gate, a, b map[string]float64) (failed []string) {
	for _, g := range gates {
		value, known := b[g.metric]
		bound, text := g.number, ""
		if g.relative {
			before, also := a[g.metric]
			known = known && also
			bound, text = g.number*before, fmt.Sprintf(" (A: %s)", number(before))
		}
		switch {
		case !known:
			failed = append(failed, fmt.Sprintf("%s: %s is not known", g.Text, g.metric))
		case g.holds(value, bound):
			failed = append(failed, fmt.Sprintf("%s: %s is %s%s", g.Text, g.metric, number(value), text))
		}
	}
	return failed
}

func (g Gate) holds(value, bound float64) bool {
	switch g.op {
	case "<":
		return value < bound
	case "<=":
		return value <= bound
	case ">":
		return value > bound
	case ">=":
		return value >= bound
	case "==":
		return value == bound
	}
	return value != bound
}

// number writes a metric in a few digits, whole numbers as they are.
func number(v float64) string {
	if v == float64(int64(v)) {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'g', 5, 64)
}
