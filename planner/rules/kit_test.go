package rules_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

// today is a Tuesday.
func today() time.Time { return time.Date(2026, 3, 10, 9, 30, 0, 0, time.UTC) }

// toolset is the tools that a sentence of testdata may use.
type toolset struct {
	tools   []plan.Tool
	catalog rules.Catalog
}

// writes reports whether a tool of the set writes.
func (s toolset) writes(name string) bool {
	for _, t := range s.tools {
		if t.Name == name {
			return !t.Reads()
		}
	}
	return true
}

// lines calls f with every line of a file of testdata that is no comment.
func lines(t *testing.T, file string, f func(line string)) {
	t.Helper()
	in, err := os.Open("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	s := bufio.NewScanner(in)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if line := s.Text(); line != "" && !strings.HasPrefix(line, "#") {
			f(line)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

// toolsets reads testdata/tools.jsonl.
func toolsets(t *testing.T) map[string]toolset {
	t.Helper()
	tools := map[string][]plan.Tool{}
	lines(t, "tools.jsonl", func(line string) {
		var x struct {
			Set, Server, Name, Description string
			InputSchema, OutputSchema      json.RawMessage
			Annotations                    plan.Annotations
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		tools[x.Set] = append(tools[x.Set], plan.Tool{Name: x.Name, Tool: x.Name, Server: x.Server, Description: x.Description,
			InputSchema: x.InputSchema, OutputSchema: x.OutputSchema, Annotations: x.Annotations})
	})
	sets := map[string]toolset{}
	for name, ts := range tools {
		sets[name] = toolset{ts, rules.NewCatalog(ts)}
	}
	return sets
}

var byRules = rules.New(rules.Options{Now: today})

func planned(t *testing.T, question string, catalog rules.Catalog) plan.Plan {
	t.Helper()
	p, err := byRules.Plan(t.Context(), strings.ReplaceAll(question, `\n`, "\n"), catalog)
	if err != nil {
		t.Fatalf("%s: %v", question, err)
	}
	return p
}

// calls writes the steps of a plan as tool{arguments}; …
func calls(steps []plan.Step) string {
	var out []string
	for _, s := range steps {
		out = append(out, s.Tool+string(s.Arguments))
	}
	return strings.Join(out, "; ")
}

// tool makes a tool; fields are its parameters, each as "name:type:description" with a "*" in front if it is required. A type
// is a JSON type, "list of" one, or "one of" some words.
func tool(name, description string, fields ...string) plan.Tool {
	properties, required := map[string]any{}, []string{}
	for _, f := range fields {
		parts := append(strings.SplitN(strings.TrimPrefix(f, "*"), ":", 3), "", "")
		if strings.HasPrefix(f, "*") {
			required = append(required, parts[0])
		}
		p := map[string]any{"type": parts[1], "description": parts[2]}
		if item, ok := strings.CutPrefix(parts[1], "list of "); ok {
			p["type"], p["items"] = "array", map[string]any{"type": item}
		}
		if words, ok := strings.CutPrefix(parts[1], "one of "); ok {
			p["type"], p["enum"] = "string", strings.Fields(words)
		}
		properties[parts[0]] = p
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
	if err != nil {
		panic(fmt.Sprint("schema of ", name, ": ", err))
	}
	return plan.Tool{Name: name, Tool: name, Server: "peer", Description: description, InputSchema: schema}
}
