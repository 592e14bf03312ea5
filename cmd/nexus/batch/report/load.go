// Package report computes figures from a results file, and writes them as text, JSON, Markdown, JUnit XML and HTML.
// [Compare] compares two files, pairing lines by case and repeat.
//
// [Load] streams a file and keeps a few numbers per line. [Batch.Details] reads the lines that a report shows again.
// The same file gives the same bytes.
package report

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/results"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/stats"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Row is the part of a line that stays in memory.
type Row struct {
	Case    int32 // index in Batch.Cases
	Repeat  int32
	Outcome string // one of those of package results
	Seconds float64
	Tokens  results.Tokens
	Models  uint64 // hash of the names of the planner and the synthesizer, and of the tokens of each
	Unmet   bool
	Cost    float64
	Plan    uint64 // hash of the steps of the plan
	Place   results.Place
}

// Passed reports whether the line has passed.
func (r Row) Passed() bool { return r.Outcome == results.Passed }

// Judged reports whether the line counts for the pass rate.
func (r Row) Judged() bool { return r.Outcome != results.Skipped }

// Batch is a file of results in memory.
type Batch struct {
	Path  string
	Torn  bool // the last line is incomplete and was skipped
	Cases []string
	Rows  []*Row // in the order of the file

	Definitions  []string // of the cases
	Fingerprints []string
	First, Last  time.Time // when questions began
	Input        int       // tokens
	Output       int
	Priced       bool               // some line has a cost
	models       [2]map[string]bool // of planners and of synthesizers
	timings      results.Timings
	groups       map[string]map[string]*group // by kind and name
}

// group counts the lines that have something in common.
type group struct {
	lines    int
	passed   int
	clusters map[int]stats.Cluster
}

// The kinds of groups.
const (
	byTag    = "tag"
	byTool   = "tool"
	byServer = "server"
	byReason = "reason" // of lines without an answer, failed checks, failed steps and unmet parts
)

// line is the part of a line that figures need.
type line struct {
	Case        string           `json:"case"`
	Repeat      int32            `json:"repeat"`
	Outcome     string           `json:"outcome"`
	Tags        []string         `json:"tags"`
	Error       *results.Failure `json:"error"`
	Seconds     float64          `json:"seconds"`
	Tokens      results.Tokens   `json:"tokens"`
	Cost        *float64         `json:"cost"`
	Fingerprint string           `json:"fingerprint"`
	Definition  string           `json:"definition"`
	Started     time.Time        `json:"started"`
	Checks      []struct {
		Name   string `json:"name"`
		Passed bool   `json:"passed"`
	} `json:"checks"`
	Result struct {
		Unmet []struct {
			Reason string `json:"reason"`
		} `json:"unmet"`
		Steps []struct {
			Tool   string `json:"tool"`
			Server string `json:"server"`
			Error  *struct {
				Reason string `json:"reason"`
			} `json:"error"`
		} `json:"steps"`
		Plan struct {
			Steps []struct {
				Tool      string         `json:"tool"`
				Arguments jsontext.Value `json:"arguments"`
				Each      string         `json:"each"`
				When      string         `json:"when"`
				Pick      string         `json:"pick"`
			} `json:"steps"`
		} `json:"plan"`
		Usage struct {
			Planner     results.Usage `json:"planner"`
			Synthesizer results.Usage `json:"synthesizer"`
		} `json:"usage"`
		Timings results.Timings `json:"timings"`
	} `json:"result"`
}

// Load reads a results file. It refuses a second line of a case and repeat, which would count twice.
func Load(path string) (*Batch, error) {
	b := &Batch{
		Path: path, models: [2]map[string]bool{{}, {}},
		groups: map[string]map[string]*group{byTag: {}, byTool: {}, byServer: {}, byReason: {}},
	}
	indexes := map[string]int32{}
	fingerprints := map[string]bool{}
	lines := map[[2]int32]bool{}
	number := 0
	var err error
	b.Torn, err = results.Read(path, func(l *line, at results.Place) error {
		number++
		if l.Case == "" || l.Repeat < 1 || l.Outcome == "" {
			return &results.Error{Path: path, Line: number, Text: "not a result: it needs case, repeat and outcome"}
		}
		i, known := indexes[l.Case]
		if !known {
			i = int32(len(b.Cases))
			indexes[l.Case] = i
			b.Cases, b.Definitions = append(b.Cases, l.Case), append(b.Definitions, l.Definition)
		}
		if key := [2]int32{i, l.Repeat}; !lines[key] {
			lines[key] = true
		} else {
			text := fmt.Sprintf("case %s, repeat %d has a line already; remove one", texts.Line(l.Case, maxName), l.Repeat)
			return &results.Error{Path: path, Line: number, Text: text}
		}
		fingerprints[l.Fingerprint] = true
		b.add(i, l, at)
		return nil
	})
	b.Fingerprints = slices.Sorted(maps.Keys(fingerprints))
	if err == nil && len(b.Rows) == 0 {
		err = &results.Error{Path: path, Text: "has no results"}
	}
	return b, err
}

func (b *Batch) add(i int32, l *line, at results.Place) {
	row := &Row{
		Case: i, Repeat: l.Repeat, Outcome: outcome(l.Outcome), Seconds: l.Seconds, Tokens: l.Tokens,
		Unmet: len(l.Result.Unmet) > 0, Plan: l.plan(), Place: at,
	}
	if l.Cost != nil {
		row.Cost, b.Priced = *l.Cost, true
	}
	if !l.Started.IsZero() && (b.First.IsZero() || l.Started.Before(b.First)) {
		b.First = l.Started
	}
	if l.Started.After(b.Last) {
		b.Last = l.Started
	}
	models := fnv.New64a()
	for i, u := range [...]results.Usage{l.Result.Usage.Planner, l.Result.Usage.Synthesizer} {
		fmt.Fprintf(models, "%q %d %d ", u.Model, u.Input, u.Output)
		if u.Model != "" {
			b.models[i][u.Model] = true
		}
	}
	row.Models = models.Sum64()
	b.Input += l.Tokens.Input
	b.Output += l.Tokens.Output
	t := &b.timings
	t.Plan += l.Result.Timings.Plan
	t.Execute += l.Result.Timings.Execute
	t.Synthesize += l.Result.Timings.Synthesize
	b.Rows = append(b.Rows, row)
	names := map[string]map[string]bool{byTag: {}, byTool: {}, byServer: {}, byReason: {}}
	for _, tag := range l.Tags {
		names[byTag][tag] = true
	}
	if l.Error != nil {
		names[byReason][l.Error.Reason] = true
	}
	for _, c := range l.Checks {
		if !c.Passed {
			names[byReason]["check "+c.Name] = true
		}
	}
	for _, u := range l.Result.Unmet {
		names[byReason]["unmet "+u.Reason] = true
	}
	for _, s := range l.Result.Steps {
		if s.Tool != "" {
			names[byTool][s.Tool] = true
		}
		if s.Server != "" {
			names[byServer][s.Server] = true
		}
		if s.Error != nil {
			names[byReason]["step "+s.Error.Reason] = true
		}
	}
	for kind, set := range names {
		for name := range set {
			b.count(kind, name, row)
		}
	}
}

// plan hashes the plan.
func (l *line) plan() uint64 {
	h := fnv.New64a()
	for _, s := range l.Result.Plan.Steps {
		fmt.Fprintf(h, "%q %s %q %q %q\n", s.Tool, s.Arguments, s.Each, s.When, s.Pick)
	}
	return h.Sum64()
}

// outcome interns the names of outcomes. Unknown outcomes count as errors.
func outcome(name string) string {
	switch name {
	case results.Passed:
		return results.Passed
	case results.Failed:
		return results.Failed
	case results.Skipped:
		return results.Skipped
	}
	return results.Errored
}

func (b *Batch) count(kind, name string, row *Row) {
	g := b.groups[kind][name]
	if g == nil {
		g = &group{clusters: map[int]stats.Cluster{}}
		b.groups[kind][name] = g
	}
	g.lines++
	if row.Passed() {
		g.passed++
	}
	if row.Judged() && kind != byReason {
		c := g.clusters[int(row.Case)]
		c.Trials++
		if row.Passed() {
			c.Successes++
		}
		g.clusters[int(row.Case)] = c
	}
}

// Clusters are the trials of each case, in the order of Cases.
func (b *Batch) Clusters() []stats.Cluster {
	all := make([]stats.Cluster, len(b.Cases))
	for _, r := range b.Rows {
		if !r.Judged() {
			continue
		}
		all[r.Case].Trials++
		if r.Passed() {
			all[r.Case].Successes++
		}
	}
	return all
}
