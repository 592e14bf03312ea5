package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

func step(id, tool, arguments string, after ...string) plan.Step {
	return plan.Step{ID: id, Tool: tool, Server: "s", Arguments: json.RawMessage(arguments), After: after}
}

func TestWithoutRepeats(t *testing.T) {
	done := []plan.Outcome{
		{Step: step("a", "find", `{"q":"x"}`), Sent: json.RawMessage(`{"q":"x"}`), Value: json.RawMessage(`{"id":7}`)},
		{Step: step("b", "get", `{"id":"$a.id"}`), Sent: json.RawMessage(`{"id":7}`), Value: json.RawMessage(`"text"`)},
		{Step: step("c", "send", `{"to":"y"}`), Sent: json.RawMessage(`{"to":"y"}`), Attempts: 1, Err: &plan.Error{Reason: reason.OutcomeUnknown}},
		{Step: step("e", "note", `{"at":{"a":"A","b":2},"n":1.0}`), Sent: json.RawMessage(`{"at":{"a":"A","b":2},"n":1.0}`), Value: json.RawMessage(`""`)},
		{Step: step("d", "get", `{"id":"$c.id"}`), Err: &plan.Error{Reason: reason.DependencyFailed}},
		{Step: step("s", "list", `{}`), Skipped: true},
		{Step: plan.Step{ID: "v", Pick: "a.id", Arguments: json.RawMessage(`{}`)}, Value: json.RawMessage(`7`)},
	}
	for name, row := range map[string]struct{ steps, want []plan.Step }{
		"nothing":                   {nil, nil},
		"another call":              {[]plan.Step{step("x", "find", `{"q":"y"}`)}, []plan.Step{step("x", "find", `{"q":"y"}`)}},
		"the same id and call":      {[]plan.Step{step("a", "find", `{ "q": "x" }`), step("x", "get", `{"id":"$a.no"}`)}, []plan.Step{step("x", "get", `{"id":"$a.no"}`)}},
		"the same id, another call": {[]plan.Step{step("a", "find", `{"q":"y"}`)}, []plan.Step{step("a", "find", `{"q":"y"}`)}},
		"another id": {[]plan.Step{step("x", "find", `{"q":"x"}`), step("y", "put", `{"whole":"$x.id","text":"<${x.id}> ${a.id} ${x}","price":"$2500","$x":1}`, "x")},
			[]plan.Step{step("y", "put", `{"whole":"$a.id","text":"<${a.id}> ${a.id} ${a}","price":"$2500","$x":1}`, "a")}},
		"a chain, by references":  {[]plan.Step{step("y", "get", `{"id":"$x.id"}`), step("x", "find", `{"q":"x"}`), step("z", "put", `{"v":"$y"}`)}, []plan.Step{step("z", "put", `{"v":"$b"}`)}},
		"a chain, by values":      {[]plan.Step{step("y", "get", `{"id":7}`)}, nil},
		"what may have been done": {[]plan.Step{step("x", "send", `{"to":"y"}`)}, nil},
		"members in another order, other escapes and numbers": {[]plan.Step{step("x", "note", `{"n":1.0,"at":{"b":2,"a":"\u0041"}}`), step("y", "note", `{"at":{"a":"A","b":2e0},"n":1}`),
			step("z", "note", `{"at":{"a":"A","b":2},"n":1.01}`)}, []plan.Step{step("z", "note", `{"at":{"a":"A","b":2},"n":1.01}`)}},
		"skipped before":              {[]plan.Step{step("s", "list", `{}`)}, nil},
		"skipped before, another id":  {[]plan.Step{step("x", "list", `{}`)}, []plan.Step{step("x", "list", `{}`)}},
		"skipped before, another one": {[]plan.Step{step("s", "list", `{"n":1}`)}, []plan.Step{step("s", "list", `{"n":1}`)}},
		"a value":                     {[]plan.Step{{ID: "x", Pick: "a.id", Arguments: json.RawMessage(`{}`)}, step("y", "put", `{"v":"$x"}`)}, []plan.Step{step("y", "put", `{"v":"$v"}`)}},
		"another value":               {[]plan.Step{{ID: "x", Pick: "b", Arguments: json.RawMessage(`{}`), After: []string{}}}, []plan.Step{{ID: "x", Pick: "b", Arguments: json.RawMessage(`{}`), After: []string{}}}},
		"another tool":                {[]plan.Step{step("x", "fetch", `{"id":7}`)}, []plan.Step{step("x", "fetch", `{"id":7}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan.Plan{Steps: row.steps}
			plan.WithoutRepeats(&p, done, func(plan.Step) bool { return false })
			if len(p.Steps) == 0 && len(row.want) == 0 {
				return
			}
			got, _ := json.Marshal(p.Steps)
			want, _ := json.Marshal(row.want)
			if string(got) != string(want) {
				t.Errorf("got %s\nwant %s", got, want)
			}
		})
	}
}

func TestEmpty(t *testing.T) {
	for value, want := range map[string]bool{
		`null`: true, `""`: true, `" \n"`: true, `[]`: true, `{}`: true, `[ ]`: true, `{"results":[]}`: true, `{"query":"x","count":0,"results":[],"more":false}`: true,
		`0`: false, `false`: false, `"none"`: false, `[[]]`: false, `{"a":1}`: false, `{"temperature":5,"alerts":[]}`: false, `{"count":0}`: false,
	} {
		if got := (plan.Outcome{Value: json.RawMessage(value), Sent: json.RawMessage(`{"q":"x"}`)}).Empty(); got != want {
			t.Errorf("%s: got %t, want %t", value, got, want)
		}
	}
	if (plan.Outcome{Value: json.RawMessage(`""`), Blocks: []json.RawMessage{json.RawMessage(`{}`)}}).Empty() || (plan.Outcome{Err: &plan.Error{}}).Empty() {
		t.Error("got an image or a failure taken for nothing")
	}
}

func TestUnsettled(t *testing.T) {
	for _, row := range []struct {
		o    plan.Outcome
		want bool
	}{
		{plan.Outcome{Attempts: 1}, false},
		{plan.Outcome{Attempts: 1, Err: &plan.Error{Reason: reason.ToolError}}, false},
		{plan.Outcome{Attempts: 1, Err: &plan.Error{Reason: reason.Unavailable}}, false},
		{plan.Outcome{Attempts: 1, Err: &plan.Error{Reason: reason.Timeout}}, true},
		{plan.Outcome{Attempts: 2, Err: &plan.Error{Reason: reason.OutcomeUnknown}}, true},
		{plan.Outcome{Err: &plan.Error{Reason: reason.Timeout}}, false},
	} {
		if got := row.o.MayHaveActed(); got != row.want {
			t.Errorf("%+v: got %t, want %t", row.o, got, row.want)
		}
	}
}

// TestMissing: only what would be in order with the required arguments counts as lacking them.
func TestMissing(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"string"},"b/c":{"type":"integer"},"d":{"type":"number"}},"required":["a","b/c"],"additionalProperties":false}`
	for _, row := range []struct {
		schema, arguments, want string
	}{
		{schema, `{"a":"x","b/c":1}`, `null`},
		{schema, `{}`, `["a","b/c"]`},
		{schema, `{"d":1.5,"a":"x"}`, `["b/c"]`},
		{schema, `{"a":null,"b/c":1}`, `["a"]`},
		{schema, `{"d":"x"}`, `null`},
		{schema, `{"e":1}`, `null`},
		{schema, `{"a":"$s1.x"}`, `["b/c"]`},
		{`{"required":7}`, `{}`, `null`},
		{`{"required":["1","2","3","4","5","6","7","8","9","10","11"]}`, `{}`, `null`},
		{`{"required":["a"],"anyOf":[{"required":["z"]},{"required":["y"]}]}`, `{}`, `null`},
		{`{"required":["a"],"anyOf":[{"required":["z"]}]}`, `{}`, `["a","z"]`},
		{`{"required":["a"],"oneOf":[{"required":["z","y"]},{"required":["x","z"],"properties":{"x":{"const":1}}}]}`, `{"x":1}`, `["a","z"]`},
		{`{"$ref":"#/$defs/t","$defs":{"t":{"allOf":[{"$ref":"#/$defs/base"},{"required":["b"]}]},"base":{"required":["a"]}}}`, `{"b":1}`, `["a"]`},
	} {
		tool := plan.Tool{Name: "t", Server: "s", Tool: "t", InputSchema: json.RawMessage(row.schema)}
		p := plan.Plan{Steps: []plan.Step{step("s1", "t", `{}`), step("s2", "t", row.arguments)}}
		p.Steps[0].Arguments = json.RawMessage(`{"a":"x","b/c":1}`)
		var got []string
		for _, problem := range plan.Check(&p, plan.NewValidator(), func(string) (plan.Tool, *plan.Error) { return tool, nil }, nil) {
			if problem.Step == "s2" {
				got = problem.Missing
			}
		}
		if text, _ := json.Marshal(got); string(text) != row.want {
			t.Errorf("%s for %s: got %s, want %s", row.arguments, row.schema, text, row.want)
		}
	}
}

// A number is the same however it is written, and another one however close it is.
func TestRepeatsByNumber(t *testing.T) {
	for _, row := range []struct {
		a, b string
		same bool
	}{
		{"1", "1.0", true}, {"1", "1.00e0", true}, {"100", "1e2", true}, {"100", "1E+2", true}, {"0.01", "1e-2", true}, {"-1.50", "-15e-1", true},
		{"0", "-0.0", true}, {"0", "0e99", true}, {"1e999999999", "1e999999999", true}, {"9007199254740993", "9007199254740993.0", true},
		{"1e99999999999999999999", "1e99999999999999999999", true},
		{"9007199254740993", "9007199254740992", false}, {"1", "-1", false}, {"1", "10", false}, {"1e999999999", "1e999999998", false}, {"1", `"1"`, false},
		{"1", "true", false}, {"[1]", "[1,0]", false}, {"0", "null", false},
	} {
		done := []plan.Outcome{{Step: step("a", "t", `{"n":`+row.a+`}`), Value: json.RawMessage(`1`)}}
		p := plan.Plan{Steps: []plan.Step{step("b", "t", `{"n":`+row.b+`}`)}}
		if plan.WithoutRepeats(&p, done, func(plan.Step) bool { return false }); len(p.Steps) == 0 != row.same {
			t.Errorf("%s and %s: got them the same %v, want %v", row.a, row.b, len(p.Steps) == 0, row.same)
		}
	}
}

// Under a new id a call that reads is made again, and one that never reached its server.
func TestWithoutRepeats_MayBeRepeated(t *testing.T) {
	done := []plan.Outcome{
		{Step: plan.Step{ID: "a", Tool: "get", Arguments: json.RawMessage(`{}`)}, Value: json.RawMessage(`1`)},
		{Step: plan.Step{ID: "b", Tool: "set", Arguments: json.RawMessage(`{}`)}, Value: json.RawMessage(`1`)},
		{Step: plan.Step{ID: "c", Tool: "put", Arguments: json.RawMessage(`{}`)}, Err: &plan.Error{Reason: reason.Unavailable}},
	}
	p, err := plan.ParseJSON(json.RawMessage(`{"steps":[{"id":"a","tool":"get"},{"id":"d","tool":"get"},{"id":"e","tool":"set"},{"id":"f","tool":"put"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	plan.WithoutRepeats(&p, done, func(s plan.Step) bool { return s.Tool == "get" })
	got := ""
	for _, s := range p.Steps {
		got += s.ID
	}
	if got != "df" {
		t.Errorf("got the steps %q, want d and f", got)
	}
}

func TestCallKey(t *testing.T) {
	for _, row := range []struct {
		a, b string
		same bool
	}{
		{`{"a":5,"b":"x"}`, ` {"b":"\u0078","a":5.0}`, true},
		{`{"a":1e2}`, `{"a":100}`, true},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{"a":5}`, `{"a":"5"}`, false},
		{`[1,23]`, `[12,3]`, false},
		{`{"a":["b"]}`, `{"a":"b"}`, false},
		{`{"a":`, `{"a":`, true},
		{`{"a":`, `{"a"`, false},
	} {
		same := plan.CallKey("s", "t", json.RawMessage(row.a)) == plan.CallKey("s", "t", json.RawMessage(row.b))
		if same != row.same {
			t.Errorf("%s and %s: got the same key %v, want %v", row.a, row.b, same, row.same)
		}
	}
}

// TestRepeatedWrites: the second of two equal calls is reported where the tool surely writes.
func TestRepeatedWrites(t *testing.T) {
	yes, no := true, false
	tools := map[string]plan.Tool{
		"send_mail": {Tool: "send_mail"}, "get_mail": {Tool: "get_mail"}, "frob": {Tool: "frob"}, "notes": {Tool: "notes", Description: "Creates a note"},
		"put": {Tool: "set_x", Annotations: plan.Annotations{IdempotentHint: &yes}}, "says": {Tool: "frob", Annotations: plan.Annotations{ReadOnlyHint: &no}},
	}
	lookup := func(name string) (plan.Tool, *plan.Error) {
		if tool, ok := tools[name]; ok {
			return tool, nil
		}
		return plan.Tool{}, &plan.Error{Reason: reason.UnknownTool}
	}
	for _, row := range []struct{ steps, want string }{
		{`{"id":"a","tool":"send_mail","arguments":{"to":"x","n":1}},{"id":"b","tool":"send_mail","arguments":{"n":1.0,"to":"\u0078"},"after":["a"]}`, "b"},
		{`{"id":"a","tool":"send_mail","arguments":{"to":"x"}},{"id":"b","tool":"send_mail","arguments":{"to":"y"}}`, ""},
		{`{"id":"a","tool":"send_mail","arguments":{"to":"x"}},{"id":"b","tool":"notes","arguments":{"to":"x"}}`, ""},
		{`{"id":"a","tool":"notes"},{"id":"b","tool":"notes"},{"id":"c","tool":"notes"}`, "bc"},
		{`{"id":"a","tool":"says"},{"id":"b","tool":"says"}`, "b"},
		{`{"id":"a","tool":"get_mail"},{"id":"b","tool":"get_mail"}`, ""},
		{`{"id":"a","tool":"frob"},{"id":"b","tool":"frob"}`, ""},
		{`{"id":"a","tool":"put"},{"id":"b","tool":"put"}`, ""},
		{`{"id":"a","tool":"none"},{"id":"b","tool":"none"}`, ""},
		{`{"id":"a","tool":"send_mail","when":"true"},{"id":"b","tool":"send_mail"}`, ""},
	} {
		p, err := plan.Parse(`{"steps":[` + row.steps + `]}`)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, problem := range plan.RepeatedWrites(&p, lookup) {
			got += problem.Step
		}
		if got != row.want {
			t.Errorf("%s: got %q, want %q", row.steps, got, row.want)
		}
	}
}

// Of a plan that has run in part, the writes that may have been made are not repeated, and what they returned stands in
// what is left.
func TestPending(t *testing.T) {
	text := func(s plan.Step) string { return s.ID + string(s.Arguments) + strings.Join(s.After, ",") }
	for name, row := range map[string]struct{ steps, value, reason, want, left string }{
		"nothing refers to it": {`{"id":"x","tool":"send","arguments":{"v":1}}`, `{}`, "", `x{"v":1}`, ``},
		"a value":              {`{"id":"x","tool":"send","arguments":{"v":"$w.id","r":"$r.a"},"after":["w","r"]}`, `{"id":7}`, "", `x{"v":7,"r":"$r.a"}r`, ``},
		"a text":               {`{"id":"x","tool":"send","arguments":{"v":"is ${w.id}"}}`, `{"id":"a\"b"}`, "", `x{"v":"is a\"b"}`, ``},
		"a list":               {`{"id":"x","tool":"send","each":"$w.ids","arguments":{"v":"$item"}},{"id":"y","tool":"send","after":["x"]}`, `{"ids":[1]}`, "", ``, `x y`},
		"a condition":          {`{"id":"x","tool":"send","when":"w.id > 1"}`, `{"id":7}`, "", ``, `x`},
		"a missing part":       {`{"id":"x","tool":"send","arguments":{"v":"$w.no"}}`, `{"id":7}`, "", ``, `x`},
		"a new reference":      {`{"id":"x","tool":"send","arguments":{"v":"$w.id","r":"$r.a"}}`, `{"id":"$r.secret"}`, "", ``, `x`},
		"a reference in text":  {`{"id":"x","tool":"send","arguments":{"v":"${w.id}"}}`, `{"id":"$r"}`, "", ``, `x`},
		"an element":           {`{"id":"x","tool":"send","each":"$r.l","arguments":{"v":"$item.w","t":"${w.id}"}}`, `{"id":7}`, "", `x{"v":"$item.w","t":"7"}`, ``},
		"a computed value":     {`{"id":"c","pick":"w.id"},{"id":"d","pick":"c"},{"id":"x","tool":"send","arguments":{"v":"$c"},"after":["d"]}`, `{"id":7}`, "", `x{"v":7}`, ``},
		"computed from a read": {`{"id":"c","pick":"r.l"},{"id":"d","pick":"r.l"},{"id":"x","tool":"send","each":"$c"}`, `{}`, "", `c{} d{} x{}`, ``},
		"unavailable":          {`{"id":"x","tool":"send","arguments":{"v":"$w.id"}}`, ``, reason.Unavailable, `w{} x{"v":"$w.id"}`, ``},
		"an unknown outcome":   {`{"id":"x","tool":"send","arguments":{"v":"$w.id"}},{"id":"y","tool":"send","after":["w"]},{"id":"z","tool":"send"}`, ``, reason.OutcomeUnknown, `z{}`, `x y`},
	} {
		p, err := plan.Parse(`{"steps":[{"id":"r","tool":"get"},{"id":"w","tool":"send"},` + row.steps + `]}`)
		if err != nil {
			t.Fatal(err)
		}
		w := plan.Outcome{Step: p.Steps[1], Attempts: 1, Value: json.RawMessage(row.value)}
		if row.reason != "" {
			w.Value, w.Err = nil, &plan.Error{Reason: row.reason}
		}
		done := []plan.Outcome{{Step: p.Steps[0], Attempts: 1, Value: json.RawMessage(`{"a":1,"l":[{"w":1}]}`)}, w}
		for _, s := range p.Steps {
			if s.Computes() {
				done = append(done, plan.Outcome{Step: s, Value: json.RawMessage(`7`)})
			}
		}
		steps, left := p.Pending(done, func(s plan.Step) bool { return s.Tool == "get" })
		var got, gone []string
		for _, s := range steps {
			got = append(got, text(s))
		}
		for _, s := range left {
			gone = append(gone, s.ID)
		}
		if got, _ := strings.CutPrefix(strings.Join(got, " "), `r{}`); strings.TrimSpace(got) != row.want || strings.Join(gone, " ") != row.left {
			t.Errorf("%s: got %q without %q, want %q without %q", name, got, gone, row.want, row.left)
		}
	}
}
