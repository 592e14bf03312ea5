package rules_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

// tool makes a tool of a server "s".
func tool(name, description, schema string, more ...func(*plan.Tool)) plan.Tool {
	t := plan.Tool{Name: name, Server: "s", Tool: name, Description: description, InputSchema: json.RawMessage(schema)}
	for _, m := range more {
		m(&t)
	}
	return t
}

// returning gives a tool an output schema with fields of a type each.
func returning(fields ...string) func(*plan.Tool) {
	return func(t *plan.Tool) {
		var list []string
		for _, f := range fields {
			name, kind, _ := strings.Cut(f, ":")
			list = append(list, `"`+name+`":{"type":"`+kind+`"}`)
		}
		t.OutputSchema = json.RawMessage(`{"type":"object","properties":{` + strings.Join(list, ",") + `}}`)
	}
}

// harmless marks a tool as one that only reads.
func harmless(t *plan.Tool) {
	yes := true
	t.Annotations.ReadOnlyHint = &yes
}

// of says which server has a tool.
func of(server string) func(*plan.Tool) { return func(t *plan.Tool) { t.Server = server } }

// destroying marks a tool as destructive.
func destroying(t *plan.Tool) {
	yes := true
	t.Annotations.DestructiveHint = &yes
}

// object is an input schema; parameters are "name:type" or "name:type:description", required ones begin with "*".
func object(params ...string) string {
	var list, required []string
	for _, p := range params {
		p, must := strings.CutPrefix(p, "*")
		parts := append(strings.SplitN(p, ":", 3), "", "")
		if must {
			required = append(required, `"`+parts[0]+`"`)
		}
		kind := `"type":"` + parts[1] + `"`
		if choices, ok := strings.CutPrefix(parts[1], "one of "); ok {
			kind = `"type":"string","enum":["` + strings.ReplaceAll(choices, " ", `","`) + `"]`
		}
		if item, ok := strings.CutPrefix(parts[1], "list of "); ok {
			kind = `"type":"array","items":{"type":"` + item + `"}`
		}
		list = append(list, `"`+parts[0]+`":{`+kind+`,"description":"`+parts[2]+`"}`)
	}
	return `{"type":"object","properties":{` + strings.Join(list, ",") + `},"required":[` + strings.Join(required, ",") + `]}`
}

// planned plans a question over tools.
func planned(t testing.TB, question string, tools ...plan.Tool) plan.Plan {
	t.Helper()
	p, err := rules.New(rules.Options{Now: today}).Plan(t.Context(), question, rules.NewCatalog(tools))
	if err != nil {
		t.Fatalf("%s: %v", question, err)
	}
	return p
}

// calls writes the steps of a plan: "tool{…}" each, joined by "; ".
func calls(p plan.Plan) string {
	var out []string
	for _, s := range p.Steps {
		out = append(out, s.Tool+string(s.Arguments))
	}
	return strings.Join(out, "; ")
}

// writes are the steps of a plan whose tools change something.
func writes(p plan.Plan, tools []plan.Tool) (out []string) {
	for _, s := range p.Steps {
		if i := slices.IndexFunc(tools, func(t plan.Tool) bool { return t.Name == s.Tool }); i < 0 || !tools[i].Reads() {
			out = append(out, s.Tool+string(s.Arguments))
		}
	}
	return out
}
