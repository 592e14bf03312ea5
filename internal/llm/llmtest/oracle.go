package llmtest

import (
	"encoding/json"
	"strings"
)

// GoldStep is a step of a correct plan.
type GoldStep struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	After     []string        `json:"after,omitempty"`
	Each      string          `json:"each,omitempty"`
	When      string          `json:"when,omitempty"`
	Pick      string          `json:"pick,omitempty"`
}

// Form is a way to write a plan. Planners accept all of them.
type Form string

// The forms.
const (
	FormSteps      Form = "steps"      // {"steps":[…],"more":false,"unmet":[]}
	FormTools      Form = "tools"      // {"tools":[…]}
	FormArray      Form = "array"      // […]
	FormFenced     Form = "fenced"     // in a code fence
	FormProse      Form = "prose"      // amid sentences
	FormThink      Form = "think"      // after <think>, with a draft inside
	FormNameArgs   Form = "name_args"  // {"name","args"}
	FormParameters Form = "parameters" // {"name","parameters"}
	FormString     Form = "string"     // arguments as a JSON string
)

// Forms returns all forms.
func Forms() []Form {
	return []Form{FormSteps, FormTools, FormArray, FormFenced, FormProse, FormThink, FormNameArgs, FormParameters,
		FormString}
}

// Write writes a plan.
func (f Form) Write(steps []GoldStep) string {
	list := make([]object, len(steps))
	for i, s := range steps {
		list[i] = f.step(s)
	}
	if f == FormArray {
		return marshal(list)
	}
	if f == FormTools {
		return marshal(object{"tools": list})
	}
	plan := marshal(object{"steps": list, "more": false, "unmet": []string{}})
	switch f {
	case FormFenced:
		return "```json\n" + plan + "\n```\n"
	case FormProse:
		return "Here is the plan you asked for (see [1] and {braces}):\n\n" + plan + "\n\nTell me if anything is missing."
	case FormThink:
		return `<think>Perhaps {"steps":[{"id":"s1","tool":"other","arguments":{}}]}? No.</think>` + "\n" + plan
	}
	return plan
}

func (f Form) step(s GoldStep) object {
	tool, arguments := "tool", "arguments"
	switch f {
	case FormNameArgs:
		tool, arguments = "name", "args"
	case FormParameters:
		tool, arguments = "name", "parameters"
	}
	out := object{"id": s.ID, tool: s.Tool, arguments: s.Arguments}
	if f == FormString {
		out[arguments] = string(s.Arguments)
	}
	if len(s.After) > 0 {
		out["after"] = s.After
	}
	for name, text := range map[string]string{"each": s.Each, "when": s.When, "pick": s.Pick} {
		if text != "" {
			out[name] = text
		}
	}
	return out
}

func marshal(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // plans of tests always encode
	return strings.TrimSpace(b.String())
}

// Oracle has the correct plan of every question. Its Reply is a script for Server.Script.
type Oracle struct {
	Plans map[string][]GoldStep // by question
	Form  Form                  // FormSteps if empty

	// Seek describes in other words what a tool does. If the first prompt lacks tools of the plan, the Oracle
	// searches for them first; nil disables that.
	Seek func(tool string) string
}

// Reply returns the plan of the longest known question in the model's text, or the empty plan if there is none.
func (o Oracle) Reply(r Request) (Reply, bool) {
	var plan []GoldStep
	longest := -1
	for question, steps := range o.Plans {
		if len(question) > longest && strings.Contains(r.Text, strings.TrimSpace(question)) {
			longest, plan = len(question), steps
		}
	}
	if searches := o.searches(plan, r); len(searches) > 0 {
		plan = searches
	}
	return Reply{Text: o.Form.Write(plan), Chunk: 1 << 10}, true
}

// searches returns the steps that search for tools of a plan that the first prompt lacks.
func (o Oracle) searches(plan []GoldStep, r Request) (searches []GoldStep) {
	if o.Seek == nil || len(r.Users) > 1 {
		return nil
	}
	for _, s := range plan {
		if !strings.Contains(r.Text, s.Tool+"(") {
			arguments := json.RawMessage(marshal(object{"query": o.Seek(s.Tool)}))
			searches = append(searches, GoldStep{ID: s.ID, Tool: "find_tools", Arguments: arguments})
		}
	}
	return searches
}
