package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/stats"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Figures are what report --json prints. Rates are between 0 and 1, times in seconds unless their names say otherwise.
type Figures struct {
	Counts
	PassRate stats.Interval      `json:"pass_rate"` // at 95 %, clustered by case
	Repeated *Repeated           `json:"repeated,omitempty"`
	Latency  Latency             `json:"latency"`
	Time     Time                `json:"time"`
	Tokens   results.Tokens      `json:"tokens"`
	Cost     *float64            `json:"cost,omitempty"`
	Groups   map[string][]*Group `json:"groups"`

	Slowest  []Detail `json:"slowest"`
	Failures []Detail `json:"failures"` // and errors
	Unmet    []Detail `json:"unmet"`

	Fingerprints []string `json:"fingerprints"`
}

// Counts are numbers of lines.
type Counts struct {
	Lines int `json:"lines"`
	Cases int `json:"cases"`
	results.Outcomes
}

// Repeated has figures over the repeats of cases.
type Repeated struct {
	PassAll    []PassAll `json:"pass_all"`
	Flaky      []string  `json:"flaky"` // cases that passed and failed, at most maxNamed
	FlakyCases int       `json:"flaky_cases"`
}

// PassAll is the probability that K repeats all pass.
type PassAll struct {
	K    int     `json:"k"`
	Rate float64 `json:"rate"`
}

// Latency of questions that were answered.
type Latency struct {
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
}

// Time is the average time of each phase.
type Time struct {
	Plan       float64 `json:"plan_ms"`
	Execute    float64 `json:"execute_ms"`
	Synthesize float64 `json:"synthesize_ms"`
}

// Group counts the lines with a common tag, tool, server or reason. Reasons have no rate.
type Group struct {
	Name     string          `json:"name"`
	Lines    int             `json:"lines"`
	Passed   int             `json:"passed"`
	PassRate *stats.Interval `json:"pass_rate,omitempty"`
}

// How many lines and names a report shows.
const (
	maxSlowest  = 20
	maxFailures = 200
	maxUnmet    = 50
	maxNamed    = 100
	maxGroups   = 500
)

// Figures computes the figures and reads the lines that are shown.
func (b *Batch) Figures() (*Figures, error) {
	f := &Figures{Counts: b.Counts(), Groups: map[string][]*Group{}, Fingerprints: b.Fingerprints}
	clusters := b.Clusters()
	f.PassRate = stats.Clustered(clusters)
	f.Repeated = b.repeated(clusters)
	f.Latency = b.Latency()
	answered := float64(max(f.Passed+f.Failed, 1))
	f.Time = Time{b.timings.Plan / answered, b.timings.Execute / answered, b.timings.Synthesize / answered}
	f.Tokens = results.Tokens{Input: b.Input, Output: b.Output}
	if b.Priced {
		cost := b.Cost()
		f.Cost = &cost
	}
	for kind, groups := range b.groups {
		f.Groups[kind] = list(kind, groups)
	}
	for _, shown := range []struct {
		rows []*Row
		into *[]Detail
	}{
		{b.slowest(), &f.Slowest},
		{b.some(maxFailures, func(r *Row) bool { return !r.Passed() && r.Judged() }), &f.Failures},
		{b.some(maxUnmet, func(r *Row) bool { return r.Unmet }), &f.Unmet},
	} {
		var err error
		if *shown.into, err = b.Details(shown.rows); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Counts counts the lines.
func (b *Batch) Counts() Counts {
	c := Counts{Lines: len(b.Rows), Cases: len(b.Cases)}
	for _, r := range b.Rows {
		c.Count(r.Outcome)
	}
	return c
}

// Cost is the sum of all costs that are known.
func (b *Batch) Cost() float64 {
	sum := 0.0
	for _, r := range b.Rows {
		sum += r.Cost
	}
	return sum
}

// Latency returns the latency of the lines with an answer.
func (b *Batch) Latency() Latency {
	seconds := b.answered(func(r *Row) float64 { return r.Seconds })
	return Latency{
		P50: stats.Percentile(seconds, 0.50), P95: stats.Percentile(seconds, 0.95), P99: stats.Percentile(seconds, 0.99),
		Max: stats.Percentile(seconds, 1), Mean: stats.Mean(seconds),
	}
}

// answered returns a number of each line with an answer, sorted.
func (b *Batch) answered(number func(*Row) float64) (all []float64) {
	for _, r := range b.Rows {
		if r.Outcome == results.Passed || r.Outcome == results.Failed {
			all = append(all, number(r))
		}
	}
	slices.Sort(all)
	return all
}

// repeated returns figures over repeats, or nil if no case was repeated.
func (b *Batch) repeated(clusters []stats.Cluster) *Repeated {
	most := 0
	for _, c := range clusters {
		most = max(most, c.Trials)
	}
	if most < 2 {
		return nil
	}
	r := &Repeated{PassAll: []PassAll{}, Flaky: []string{}}
	for k := 1; k <= most; k *= 2 {
		if rate, ok := stats.PassAll(clusters, k); ok {
			r.PassAll = append(r.PassAll, PassAll{k, rate})
		}
	}
	if most&(most-1) != 0 {
		if rate, ok := stats.PassAll(clusters, most); ok {
			r.PassAll = append(r.PassAll, PassAll{most, rate})
		}
	}
	for i, c := range clusters {
		if c.Successes > 0 && c.Successes < c.Trials {
			if r.FlakyCases++; len(r.Flaky) < maxNamed {
				r.Flaky = append(r.Flaky, b.Cases[i])
			}
		}
	}
	slices.Sort(r.Flaky)
	return r
}

// list returns groups in the order of their names, reasons by their number.
func list(kind string, groups map[string]*group) []*Group {
	all := []*Group{}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		out := &Group{Name: name, Lines: g.lines, Passed: g.passed}
		if kind != byReason {
			clusters := make([]stats.Cluster, 0, len(g.clusters))
			for _, i := range slices.Sorted(maps.Keys(g.clusters)) {
				clusters = append(clusters, g.clusters[i])
			}
			rate := stats.Clustered(clusters)
			out.PassRate = &rate
		}
		all = append(all, out)
	}
	if kind == byReason || len(all) > maxGroups {
		slices.SortStableFunc(all, func(a, b *Group) int { return b.Lines - a.Lines })
	}
	return all[:min(len(all), maxGroups)]
}

// slowest returns the slowest rows, the slowest first.
func (b *Batch) slowest() []*Row {
	rows := slices.Clone(b.Rows)
	slices.SortStableFunc(rows, func(x, y *Row) int { return cmp.Compare(y.Seconds, x.Seconds) })
	return rows[:min(len(rows), maxSlowest)]
}

// some returns the first matching rows, by case and repeat.
func (b *Batch) some(most int, fits func(*Row) bool) []*Row {
	var rows []*Row
	for _, r := range b.Rows {
		if fits(r) {
			rows = append(rows, r)
		}
	}
	b.sort(rows)
	return rows[:min(len(rows), most)]
}

// sort orders rows by case and repeat, so that the order in which questions were answered does not matter.
func (b *Batch) sort(rows []*Row) {
	slices.SortFunc(rows, func(x, y *Row) int {
		return cmp.Or(cmp.Compare(b.Cases[x.Case], b.Cases[y.Case]), cmp.Compare(x.Repeat, y.Repeat))
	})
}

// Detail is one line in a report.
type Detail struct {
	Case    string          `json:"case"`
	Repeat  int             `json:"repeat"`
	Outcome string          `json:"outcome"` // one of those of package results
	Query   string          `json:"query"`
	Answer  string          `json:"answer,omitempty"`
	Reasons []string        `json:"reasons"` // failed checks and the error
	Unmet   []results.Unmet `json:"unmet,omitempty"`
	Steps   []DetailStep    `json:"steps"`
	Seconds float64         `json:"seconds"`
	TraceID string          `json:"trace_id,omitempty"`
}

// DetailStep is a step of a plan with its outcome.
type DetailStep struct {
	ID        string   `json:"id"`
	Tool      string   `json:"tool"`
	Arguments string   `json:"arguments"`
	After     []string `json:"after"`
	Each      string   `json:"each,omitempty"`
	When      string   `json:"when,omitempty"`
	Pick      string   `json:"pick,omitempty"`
	Status    string   `json:"status"` // ok, failed, skipped or not run
	Reason    string   `json:"reason,omitempty"`
	Millis    float64  `json:"duration_ms"`
}

// States of a step.
const (
	statusOK      = "ok"
	statusFailed  = "failed"
	statusSkipped = "skipped"
	statusNone    = "not run"
)

// Bounds of texts in a report, in bytes.
const (
	maxQuery     = 500
	maxAnswer    = 1000
	maxArguments = 200
	maxReason    = 300
	maxShape     = 100
	maxSteps     = 60 // of a plan
	maxName      = 24 // of a case in an error
)

// full is the part of a line that Detail needs.
type full struct {
	Case    string           `json:"case"`
	Repeat  int              `json:"repeat"`
	Outcome string           `json:"outcome"`
	Query   string           `json:"query"`
	Checks  []results.Check  `json:"checks"`
	Error   *results.Failure `json:"error"`
	Result  results.Content  `json:"result"`
	Seconds float64          `json:"seconds"`
	TraceID string           `json:"trace_id"`
}

// Details reads lines again.
func (b *Batch) Details(rows []*Row) ([]Detail, error) {
	places := make([]results.Place, len(rows))
	for i, r := range rows {
		places[i] = r.Place
	}
	lines, err := results.At[full](b.Path, places)
	details := make([]Detail, len(lines))
	for i := range lines {
		details[i] = lines[i].detail()
	}
	return details, err
}

func (l *full) detail() Detail {
	d := Detail{
		Case: l.Case, Repeat: l.Repeat, Outcome: l.Outcome, Query: texts.Cut(l.Query, maxQuery),
		Answer: texts.Cut(l.Result.Answer, maxAnswer), Reasons: l.reasons(), Unmet: l.Result.Unmet, Steps: []DetailStep{},
		Seconds: l.Seconds, TraceID: l.TraceID,
	}
	for _, s := range l.Result.Plan.Steps[:min(len(l.Result.Plan.Steps), maxSteps)] {
		d.Steps = append(d.Steps, l.step(s))
	}
	return d
}

// reasons returns why the line did not pass.
func (l *full) reasons() []string {
	reasons := []string{}
	if l.Error != nil {
		reasons = append(reasons, texts.Cut(l.Error.Reason+": "+l.Error.Message, maxReason))
	}
	for _, c := range l.Checks {
		if !c.Passed {
			reasons = append(reasons, texts.Cut(c.Name+": "+c.Reason, maxReason))
		}
	}
	return reasons
}

// step sums up all calls of a step.
func (l *full) step(s results.PlanStep) DetailStep {
	d := DetailStep{
		ID: s.ID, Tool: s.Tool, Arguments: texts.Cut(string(s.Arguments), maxArguments), Status: statusNone,
		After: after(s, l.Result.Plan.Steps),
		Each:  texts.Cut(s.Each, maxShape), When: texts.Cut(s.When, maxShape), Pick: texts.Cut(s.Pick, maxShape),
	}
	for _, r := range l.Result.Steps {
		if r.ID != s.ID {
			continue
		}
		d.Millis += r.Duration
		switch {
		case r.Skipped:
			d.Status = statusSkipped
		case r.Success && d.Status != statusFailed:
			d.Status = statusOK
		case !r.Success:
			d.Status = statusFailed
			if r.Error != nil && d.Reason == "" {
				d.Reason = texts.Cut(r.Error.Reason+": "+r.Error.Message, maxReason)
			}
		}
	}
	return d
}

// after returns the steps that a step waits for, in the order of the plan.
func after(s results.PlanStep, all []results.PlanStep) []string {
	step := plan.Step{Tool: s.Tool, Arguments: s.Arguments, After: s.After, Each: s.Each, When: s.When, Pick: s.Pick}
	needs := step.Needs(func(id string) bool {
		return slices.ContainsFunc(all, func(o results.PlanStep) bool { return o.ID == id })
	})
	found := []string{}
	for _, other := range all {
		if other.ID != s.ID && slices.Contains(needs, other.ID) {
			found = append(found, other.ID)
		}
	}
	return found
}

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

var gateForm = pattern.New(`^\s*([a-z0-9_]+)\s*(<=|>=|==|!=|<|>)\s*([0-9.eE+-]+)\s*(x?)\s*$`)

// ParseGate reads a gate. If compared is false, relative gates and gates on flipped cases are errors.
func ParseGate(text string, compared bool) (Gate, error) {
	parts := gateForm().FindStringSubmatch(text)
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
