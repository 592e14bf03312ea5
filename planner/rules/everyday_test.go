package rules_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

var half = flag.String("half", "dev", "which half of the everyday requests TestEveryday asks: dev or held")

// today is a Tuesday.
func today() time.Time { return time.Date(2026, 3, 10, 9, 0, 0, 0, time.UTC) }

// request is a line of the everyday requests.
type request struct {
	ID       string `json:"id"`
	Lang     string `json:"lang"`
	Query    string `json:"query"`
	Catalog  string `json:"catalog"`
	Expected []struct {
		Name      string                       `json:"name"`
		Arguments map[string][]json.RawMessage `json:"arguments"`
	} `json:"expected"`
	Unmet []string `json:"unmet"` // words of parts that nothing serves
}

func readLines[T any](t testing.TB, name string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "everyday", name))
	if err != nil {
		t.Fatalf("reading requests: %v", err)
	}
	var out []T
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, v)
	}
	return out
}

// everyday reads a catalog and its tools.
func everyday(t testing.TB, name string) ([]plan.Tool, rules.Catalog) {
	t.Helper()
	var tools []plan.Tool
	for _, l := range readLines[struct {
		Server, Name, Description string
		InputSchema, OutputSchema json.RawMessage
		Annotations               plan.Annotations
	}](t, name) {
		tools = append(tools, plan.Tool{
			Name: l.Name, Server: l.Server, Tool: l.Name, Description: l.Description,
			InputSchema: l.InputSchema, OutputSchema: l.OutputSchema, Annotations: l.Annotations,
		})
	}
	return tools, rules.NewCatalog(tools)
}

// TestEveryday holds a half of the everyday requests, and those of a town, against the floors of docs/evaluation.md.
func TestEveryday(t *testing.T) {
	for _, file := range []string{*half, "town"} {
		t.Run(file, func(t *testing.T) { testEveryday(t, file+".jsonl") })
	}
}

func testEveryday(t *testing.T, file string) {
	planner := rules.New(rules.Options{Now: today})
	tools, catalogs := map[string][]plan.Tool{}, map[string]rules.Catalog{}
	expecting, chosen, full, needless, parts, named := 0, 0, 0, 0, 0, 0
	for _, r := range readLines[request](t, file) {
		if catalogs[r.Catalog] == nil {
			tools[r.Catalog], catalogs[r.Catalog] = everyday(t, r.Catalog)
		}
		p, err := planner.Plan(t.Context(), r.Query, catalogs[r.Catalog])
		if err != nil {
			t.Fatalf("%s: %v", r.Query, err)
		}
		var want, got []string
		for _, e := range r.Expected {
			want = append(want, e.Name)
		}
		for _, s := range p.Steps {
			got = append(got, s.Tool)
			i := slices.IndexFunc(tools[r.Catalog], func(t plan.Tool) bool { return t.Name == s.Tool })
			if !tools[r.Catalog][i].Reads() && !slices.Contains(want, s.Tool) {
				t.Errorf("%s: got the write %s, want none", r.Query, s.Tool)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if len(want) > 0 {
			expecting++
			switch {
			case !slices.Equal(want, got):
				t.Logf("%s %s: got %q, want %q", r.ID, r.Query, got, want)
			case !arguments(r, p):
				chosen++
				t.Logf("%s %s: got the arguments %s", r.ID, r.Query, written(p))
			default:
				chosen++
				full++
			}
		} else if len(got) > 0 {
			needless++
			t.Logf("%s %s: got %q, want no call", r.ID, r.Query, got)
		}
		for _, part := range r.Unmet {
			parts++
			if slices.ContainsFunc(p.Unmet, func(u plan.Unmet) bool { return strings.Contains(u.Text, part) }) {
				named++
			} else {
				t.Errorf("%s: got the unmet parts %+v, want one with %q", r.Query, p.Unmet, part)
			}
		}
	}
	t.Logf("tool choice %d of %d, full calls %d, needless reads %d, unmet parts named %d of %d", chosen, expecting, full, needless, named, parts)
	if choice := float64(chosen) / float64(expecting); choice < 0.8 {
		t.Errorf("tool choice: got %.3f, want at least 0.8", choice)
	}
}

// arguments reports whether every step has the arguments that are expected, and no others.
func arguments(r request, p plan.Plan) bool {
	for i, e := range r.Expected {
		var given map[string]json.RawMessage
		at := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.Tool == e.Name })
		if json.Unmarshal(p.Steps[at].Arguments, &given) != nil || len(given) != len(r.Expected[i].Arguments) {
			return false
		}
		for name, accepted := range e.Arguments {
			if !slices.ContainsFunc(accepted, func(a json.RawMessage) bool {
				var x, y any
				_ = json.Unmarshal(a, &x)
				_ = json.Unmarshal(given[name], &y)
				u, _ := json.Marshal(x)
				v, _ := json.Marshal(y)
				return bytes.Equal(u, v)
			}) {
				return false
			}
		}
	}
	return true
}

func written(p plan.Plan) string {
	var b strings.Builder
	for _, s := range p.Steps {
		b.WriteString(s.ID + " " + s.Tool + string(s.Arguments) + " ")
	}
	return b.String()
}
