package rules

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner/rules/intent"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

func TestDebug(t *testing.T) {
	q, cat := os.Getenv("Q"), os.Getenv("CAT")
	if q == "" {
		t.Skip()
	}
	type line struct {
		ID                        string
		Query                     string
		Server, Name, Description string
		InputSchema, OutputSchema json.RawMessage
		Annotations               plan.Annotations
		Tools                     []json.RawMessage
	}
	var tools []plan.Tool
	addTool := func(l line) {
		tools = append(tools, plan.Tool{Name: l.Name, Server: l.Server, Tool: l.Name, Description: l.Description, InputSchema: l.InputSchema, OutputSchema: l.OutputSchema, Annotations: l.Annotations})
	}
	f, err := os.Open(cat)
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		var l line
		json.Unmarshal(s.Bytes(), &l)
		if l.Tools != nil {
			if l.ID == q || l.Query == q {
				q = l.Query
				for _, raw := range l.Tools {
					var x line
					json.Unmarshal(raw, &x)
					addTool(x)
				}
			}
			continue
		}
		addTool(l)
	}
	p := New(Options{Now: func() time.Time { return time.Date(2026, 3, 10, 9, 0, 0, 0, time.UTC) }})
	debug = func(a ask, one *call, place int, ready bool) {
		x := p.features(a, one.f, one.fill, place)
		fmt.Printf("  %-28s place %d ready %v ev %.2f may %v", one.f.tool.Name, place, ready, one.evidence, a.mayCall(one.f))
		for i, n := range []string{"all", "name", "purp", "hits", "strange", "miss", "weak", "filled", "strong", "none", "run", "head", "verb", "vstr", "choice", "place"} {
			if x[i] != 0 {
				fmt.Printf(" %s=%.2f", n, x[i])
			}
		}
		fmt.Print("\n      ")
		for n, c := range one.fill.chosen {
			fmt.Printf(" %s=%v(%.2f)", n, c.value, c.score)
		}
		fmt.Printf(" missing %v unclear %v\n", names(one.fill.missing), one.fill.unclear)
	}
	defer func() { debug = nil }()
	fmt.Println("Q:", q)
	for _, c := range intent.Split(q) {
		fmt.Printf("clause %v %q %s verb=%q bare=%v\n", c.Act, c.Text, c.Language, c.Verb, c.Bare)
	}
	for _, v := range values.Extract(q, values.Options{Now: p.now()}) {
		fmt.Printf("value kind %d %q cue=%q label=%q num=%v unit=%q noun=%q alts=%d\n", v.Kind, v.Text, v.Cue, v.Label, v.Number, v.Unit, v.Noun, len(v.Alternatives))
	}
	out, err := p.Plan(context.Background(), q, NewCatalog(tools))
	fmt.Println(err)
	for _, s := range out.Steps {
		fmt.Println("STEP", s.ID, s.Tool, string(s.Arguments), s.After)
	}
	for _, u := range out.Unmet {
		fmt.Printf("UNMET %+v\n", u)
	}
}
