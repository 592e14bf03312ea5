package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// brief writes the steps of a plan in one line, for comparison.
func brief(p plan.Plan) string {
	var steps []string
	for _, s := range p.Steps {
		text := s.ID + "=" + s.Tool + string(s.Arguments)
		if s.Server != "" {
			text = s.ID + "=" + s.Server + "/" + s.Tool + string(s.Arguments)
		}
		if len(s.After) > 0 {
			text += "<" + strings.Join(s.After, ",")
		}
		if s.Invalid != nil {
			text += "!" + s.Invalid.Reason
		}
		steps = append(steps, text)
	}
	text := strings.Join(steps, " ")
	if p.More {
		text = strings.TrimRight(text+" more "+p.MoreIf, " ")
	}
	return text
}

const one = `[{"tool":"a","arguments":{"x":1}}]`

var parseTests = []struct {
	name, text, want string
}{
	{"array", one, `s1=a{"x":1}`},
	{"tools", `{"tools":` + one + `}`, `s1=a{"x":1}`},
	{"steps", `{"steps":[{"id":"p","tool":"a"},{"id":"q","tool":"b","arguments":{"v":"$p"},"after":["p"]}],"more":true}`, `p=a{} q=b{"v":"$p"}<p more`},
	{"more before steps", `{"more":true,"steps":[{"tool":"a"}]}`, `s1=a{} more`},
	{"more by a condition", `{"steps":[{"id":"p","tool":"a"}],"more":" len($p.items) > 2 "}`, `p=a{} more len($p.items) > 2`},
	{"more by an empty condition", `{"steps":[{"tool":"a"}],"more":""}`, `s1=a{}`},
	{"more by a word for no", `{"steps":[{"tool":"a"}],"more":"None"}`, `s1=a{}`},
	{"more by an expression over a list", `{"steps":[{"id":"p","tool":"a"},{"tool":"b","each":"map($p.items | filter(.n > 1), .n)","when":"index < 2","pick":"value.x"}],"more":"any(p, # == nil)"}`, `p=a{} s2=b{} more any(p, # == nil)`},
	{"a value without a tool", `{"steps":[{"id":"c","pick":"1 + 1"}]}`, `c={}`},
	{"a value of a bare array", `[{"pick":"1 + 1"}]`, `s1={}`},
	{"returned plan", `{"source":"model","rounds":1,"steps":[{"id":"s1","tool":"a","server":"x","arguments":{},"after":[]}]}`, `s1=x/a{}`},
	{"name and arguments", `[{"name":"a","arguments":{"x":1}}]`, `s1=a{"x":1}`},
	{"name and args", `{"steps":[{"args":{"x":1},"name":"a"}]}`, `s1=a{"x":1}`},
	{"name and parameters", `{"steps":[{"name":"a","parameters":"{\"x\":1}"}]}`, `s1=a{"x":1}`},
	{"own names first", `[{"args":{"x":2},"name":"b","tool":"a","arguments":{"x":1},"parameters":{"x":3}}]`, `s1=a{"x":1}`},
	{"name alone is no tool", one + ` for [{"name":"Ada"}]`, `s1=a{"x":1}`},
	{"empty array", `[]`, ``},
	{"empty steps", `{"steps":[]}`, ``},
	{"null steps", `{"steps":null,"more":false}`, ``},
	{"empty at the end of a sentence", `No tool is needed: []`, ``},
	{"fence", "```json\n" + one + "\n```", `s1=a{"x":1}`},
	{"fence without newline", "```" + one + "```", `s1=a{"x":1}`},
	{"prose", "Sure! {I think} this [1] does it: " + one + " (one call)", `s1=a{"x":1}`},
	{"prose with quote", `an array ["a] and then ` + one, `s1=a{"x":1}`},
	{"last counts", `[{"tool":"b"}] or rather ` + one, `s1=a{"x":1}`},
	{"steps before aside", one + " with no filters [] at all", `s1=a{"x":1}`},
	{"empty plan on its own line last", "Perhaps " + one + "\nbut no:\n[]\n", ``},
	{"think", `<think>[{"tool":"b"}]</think>` + one, `s1=a{"x":1}`},
	{"think after", one + `<think>[{"tool":"b"}]</think>`, `s1=a{"x":1}`},
	{"think between", one + `<think>no</think> [{"role":"user"}]`, `s1=a{"x":1}`},
	{"broken, then corrected", `{"steps":[{"tool":"b",,}]} I mean ` + one, `s1=a{"x":1}`},
	{"think unopened", `maybe [{"tool":"b"}] no</think>` + one, `s1=a{"x":1}`},
	{"think unopened and nothing else", one + `</think>`, `s1=a{"x":1}`},
	{"think unterminated", `<think>so it is ` + one, `s1=a{"x":1}`},
	{"think in upper case", `<THINK>[{"tool":"b"}]</THINK>[]`, ``},
	{"think with a broken sketch", `<think>{"steps": [ ... ]}</think>` + one, `s1=a{"x":1}`},
	{"think within an argument", `[{"tool":"a","arguments":{"q":"</think>[{\"tool\":\"b\"}]"}}]`, `s1=a{"q":"</think>[{\"tool\":\"b\"}]"}`},
	{"list of something else, then a plan", `[{"role":"user"}] ` + one, `s1=a{"x":1}`},
	{"numbers and order kept", `[{"tool":"a","arguments":{"n": 9007199254740993, "a": [1.0, 1e3]}}]`, `s1=a{"n":9007199254740993,"a":[1.0,1e3]}`},
	{"null arguments", `[{"tool":"a","arguments":null,"after":null,"id":null}]`, `s1=a{}`},
	{"arguments as text", `[{"tool":"a","arguments":"{\"n\": 9007199254740993}"}]`, `s1=a{"n":9007199254740993}`},
	{"empty text as arguments", `[{"tool":"a","arguments":""}]`, `s1=a{}`},
	{"array as arguments", `[{"tool":"a","arguments":[1]},{"tool":"b"}]`, `s1=a{}!invalid_arguments s2=b{}`},
	{"text as arguments", `[{"tool":"a","arguments":"x"}]`, `s1=a{}!invalid_arguments`},
	{"broken text as arguments", `[{"tool":"a","arguments":"{\"x\":"}]`, `s1=a{}!invalid_arguments`},
	{"repeated names in text as arguments", `[{"tool":"a","arguments":"{\"x\":1,\"x\":2}"}]`, `s1=a{}!invalid_arguments`},
	{"more text after text as arguments", `[{"tool":"a","arguments":"{} {}"}]`, `s1=a{}!invalid_arguments`},
	{"ids are filled in", `[{"tool":"a"},{"id":"s1","tool":"b"},{"tool":"c"},{"id":"","tool":"d"}]`, `s2=a{} s1=b{} s3=c{} s4=d{}`},
	{"ids as numbers", `{"steps":[{"id":1,"tool":"a"},{"id":2,"tool":"b","after":[1]},{"tool":"c","after":2}]}`, `1=a{} 2=b{}<1 s3=c{}<2`},
	{"ids of other kinds", `[{"id":{},"tool":"a"}]`, `s1=a{}`},
	{"repeated id", `{"steps":[{"id":"x","tool":"a"},{"id":"x","tool":"b"},{"tool":"c"}]}`, `x=a{} s2=b{}!duplicate_id s3=c{}`},
	{"after as text", `{"steps":[{"tool":"a"},{"tool":"b","after":"s1"}]}`, `s1=a{} s2=b{}<s1`},
	{"after of other kinds", `{"steps":[{"tool":"b","after":[{}]},{"tool":"a","after":true}]}`, `s1=b{}!missing_reference s2=a{}!missing_reference`},
	{"step without tool", `[{"tool":"a"},{"arguments":{}},{"tool":7}]`, `s1=a{} s2={}!unknown_tool s3={}!unknown_tool`},
	{"unknown members", `[{"why":"because","tool":"a"}]`, `s1=a{}`},
	{"escaped names", `[{"\u0074ool":"a"}]`, `s1=a{}`},
}

func TestParse(t *testing.T) {
	for _, tt := range parseTests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := plan.Parse(tt.text)
			if err != nil {
				t.Fatalf("Parse(%q): %v", tt.text, err)
			}
			if got := brief(p); got != tt.want {
				t.Errorf("Parse(%q)\n got %s\nwant %s", tt.text, got, tt.want)
			}
		})
	}
}

func deep(levels int) string {
	return `[{"tool":"a","arguments":{"x":` + strings.Repeat("[", levels-3) + strings.Repeat("]", levels-3) + `}}]`
}

func TestParseBounds(t *testing.T) {
	many := func(n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(`{"tool":"a"},`, n), ",") + "]"
	}
	tests := []struct {
		name, text string
		want       error
		says       string
	}{
		{"nothing", "", plan.ErrNoPlan, ""},
		{"prose", "I cannot help with that.", plan.ErrNoPlan, ""},
		{"object", `{"answer":42}`, plan.ErrNoPlan, ""},
		{"list of numbers", `[1,2]`, plan.ErrNoPlan, ""},
		{"a tool list", `{"tools":[{"name":"a","inputSchema":{}}]}`, plan.ErrNoPlan, ""},
		{"mixed list", `[{"tool":"a"},1]`, plan.ErrNoPlan, ""},
		{"truncated", `{"steps":[{"id":"s1","tool":"a","after":[]},{"id":"s2"`, plan.ErrNoPlan, "ends inside"},
		{"truncated after steps", `{"steps":[{"id":"s1","tool":"a"}]`, plan.ErrNoPlan, "ends inside"},
		{"truncated, with a plan before", one + ` or {"steps":[{"to`, plan.ErrNoPlan, "ends inside"},
		{"repeated keys", `[{"tool":"a","tool":"b"}]`, plan.ErrBroken, "duplicate"},
		{"repeated long keys", `[{"tool":"a","` + strings.Repeat("k", 5000) + `":1,"` + strings.Repeat("k", 5000) + `":1}]`, plan.ErrBroken, "duplicate"},
		{"repeated keys in arguments", `{"steps":[{"tool":"a","arguments":{"x":1,"x":[]}}]}`, plan.ErrBroken, "duplicate"},
		{"trailing comma", `[{"tool":"a","arguments":{"list":[]}},]`, plan.ErrBroken, ""},
		{"trailing comma after steps", `{"steps":[{"tool":"a"}],}`, plan.ErrBroken, ""},
		{"what a broken plan holds", "{\"steps\":[{\"tool\":\"a\", // \"search\n\"arguments\":\n[]\n,\"x\":[{\"tool\":\"b\"}]}]}", plan.ErrBroken, ""},
		{"comment", "[{\"tool\":\"a\", // search\n\"arguments\":{}}]", plan.ErrBroken, ""},
		{"invalid UTF-8", "[{\"tool\":\"\xff\"}]", plan.ErrBroken, ""},
		{"most steps", many(plan.MaxSteps), nil, ""},
		{"too many steps", many(plan.MaxSteps + 1), plan.ErrBroken, "1001 steps"},
		{"deepest", deep(plan.MaxDepth), nil, ""},
		{"too deep", deep(plan.MaxDepth + 1), plan.ErrBroken, "64"},
		{"behind broken values", strings.Repeat(`{"a":`, 20) + "x " + one, nil, ""},
		{"behind more than are looked at", strings.Repeat(strings.Repeat(`{"a":`, 60)+"x ", 100) + one, plan.ErrNoPlan, ""},
		{"longest", one + strings.Repeat(" ", plan.MaxText-len(one)), nil, ""},
		{"too long", one + strings.Repeat(" ", plan.MaxText), plan.ErrTooLong, "1 MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := plan.Parse(tt.text)
			if !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %v saying %q", err, tt.want, tt.says)
			}
			if err != nil && (strings.Contains(err.Error(), "\n") || len(err.Error()) > 500) {
				t.Errorf("got %q, want one short line", err)
			}
		})
	}
}

// Texts of timedText bytes are read within maxTime, also by the race detector on a busy machine. A quadratic algorithm
// takes far longer.
const (
	timedText = 64 << 10
	maxTime   = 5 * time.Second
)

// What models write when they fail, a lot of it.
func TestParseTime(t *testing.T) {
	for _, unit := range []string{
		"[", "{", `[{"a":`, `{"a":[`, `{"steps":[`, `[{"tool":`, `[{"tool":"a"},`, "[]", "[] ", "<think>", "<", "[{", `["`, `{"`, `[{"a":1}`,
		"[\n", "[" + strings.Repeat(" ", 70), `[",",[],",",[{"a":"`, `"\"`, "`[]`\n", "[[]", `{"a":{}} `, `[{}`, `[{"":{"":[{"":`, `[{"a":[]},`,
		"[] x\n", " []",
	} {
		t.Run(unit[:min(len(unit), 10)], func(t *testing.T) {
			text := strings.Repeat(unit, timedText/len(unit))
			start := time.Now()
			if _, err := plan.Parse(text); time.Since(start) > maxTime {
				t.Errorf("took %v (%v)", time.Since(start), err)
			}
		})
	}
}

func TestParseTaken(t *testing.T) {
	p, err := plan.Parse(`[{"tool":"a"},{"tool":"b"},{"id":"s1","tool":"c"}]`, "s1", "s2")
	if got, want := brief(p), "s3=a{} s4=b{} s1=c{}"; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestParseJSON(t *testing.T) {
	tests := []struct {
		text, want string
		err        error
	}{
		{one, `s1=a{"x":1}`, nil},
		{` {"steps":[{"id":"p","server":"x","tool":"a"}]} `, `p=x/a{}`, nil},
		{`{"steps":[{"id":"p","tool":"a","arguments":{"x":"$item"},"index":0}],"plan":{"steps":[{"id":"p","tool":"a"}]}}`, `p=a{}`, nil},
		{`{"plan":[]}`, ``, plan.ErrNoPlan},
		{`[]`, ``, nil},
		{`null`, ``, plan.ErrNoPlan},
		{`"[]"`, ``, nil},
		{`"{\"steps\":[{\"id\":\"p\",\"tool\":\"a\",\"arguments\":{\"x\":\"\\\"\"}}]}"`, `p=a{"x":"\""}`, nil},
		{`"the plan"`, ``, plan.ErrNoPlan},
		{`"<think>[]</think>The plan:\n` + "```json" + `\n[{\"tool\":\"a\"}]\n` + "```" + `"`, `s1=a{}`, nil},
		{`"\"[]\""`, ``, plan.ErrNoPlan},
		{`{}`, ``, plan.ErrNoPlan},
		{``, ``, plan.ErrBroken},
		{`[] []`, ``, plan.ErrBroken},
		{`[{"tool":"a"}`, ``, plan.ErrBroken},
		{`[{"tool":"a","tool":"b"}]`, ``, plan.ErrBroken},
		{"```" + one + "```", ``, plan.ErrBroken},
		{deep(plan.MaxDepth + 1), ``, plan.ErrBroken},
		{strings.Repeat(" ", plan.MaxText+1), ``, plan.ErrTooLong},
	}
	for _, tt := range tests {
		p, err := plan.ParseJSON(json.RawMessage(tt.text))
		if got := brief(p); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("ParseJSON(%.80q): got %q, %v, want %q, %v", tt.text, got, err, tt.want, tt.err)
		}
	}
}

// A returned plan, given back, is the same plan.
func TestReplay(t *testing.T) {
	p, err := plan.Parse(`{"steps":[{"tool":"a","arguments":{"n":9007199254740993,"r":"${s2.x} \u00e9"},"after":["s2"]},{"tool":"b"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	first, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.ParseJSON(first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(again)
	if err != nil || string(first) != string(second) {
		t.Errorf("got %s, %v, want %s", second, err, first)
	}
}

func FuzzParse(f *testing.F) {
	for _, tt := range parseTests {
		f.Add(tt.text)
	}
	f.Add(deep(70))
	validator := plan.NewValidator()
	f.Fuzz(func(t *testing.T, text string) {
		p, err := plan.Parse(text)
		if err != nil {
			if !errors.Is(err, plan.ErrNoPlan) && !errors.Is(err, plan.ErrBroken) && !errors.Is(err, plan.ErrTooLong) {
				t.Errorf("got %v, want one of the package's errors", err)
			}
			return
		}
		ids := make(map[string]bool)
		for i, s := range p.Steps {
			if s.ID == "" || ids[s.ID] {
				t.Errorf("step %d: got id %q, want one of its own", i, s.ID)
			}
			ids[s.ID] = true
			var object map[string]json.RawMessage
			if err := json.Unmarshal(s.Arguments, &object); err != nil || object == nil {
				t.Errorf("step %d: got arguments %s, want an object", i, s.Arguments)
			}
		}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := plan.ParseJSON(raw); len(raw) <= plan.MaxText && (err != nil || len(again.Steps) != len(p.Steps)) {
			t.Errorf("got %v reading back %s", err, raw)
		}
		p.Flows()
		first := plan.Check(&p, validator, catalog, nil)
		if again := plan.Check(&p, validator, catalog, nil); len(again) != len(first) {
			t.Errorf("got the problems %v and then %v, want a second check to change nothing", first, again)
		}
	})
}

// Bare arrays, alone or as "tools", are sequential; a plan that is given back stays what it was.
func TestSequential(t *testing.T) {
	for text, want := range map[string]bool{
		`[{"tool":"a"},{"tool":"b"}]`:                             true,
		`{"tools":[{"tool":"a"},{"tool":"b"}]}`:                   true,
		`{"tools":[{"tool":"a"}],"sequential":false}`:             true,
		`{"steps":[{"tool":"a"},{"tool":"b"}]}`:                   false,
		`{"steps":[{"tool":"a"}],"tools":[{"tool":"b"}]}`:         false,
		`{"sequential":true,"steps":[{"tool":"a"},{"tool":"b"}]}`: true,
		`{"sequential":1,"steps":[{"tool":"a"}]}`:                 false,
		`[]`:           false,
		`{"tools":[]}`: false,
	} {
		p, err := plan.Parse("The plan:\n" + text)
		if err != nil || p.Sequential != want {
			t.Errorf("Parse(%s): got sequential %v, %v, want %v", text, p.Sequential, err, want)
		}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := plan.ParseJSON(raw); err != nil || again.Sequential != want {
			t.Errorf("ParseJSON(%s): got sequential %v, %v, want %v", raw, again.Sequential, err, want)
		}
	}
}

// A Reader knows before the first step whether the plan is sequential.
func TestReaderSequential(t *testing.T) {
	for text, want := range map[string]bool{
		`[{"tool":"a"},{"tool":"b"}]`:                   true,
		`{"tools":[{"tool":"a"}]}`:                      true,
		`{"sequential":true,"steps":[{"tool":"a"}]}`:    true,
		`{"more":true,"steps":[{"tool":"a"}]}`:          false,
		`{"steps":[{"tool":"a","tools":"sequential"}]}`: false,
	} {
		r := plan.NewReader()
		for i := range text {
			if steps := r.Feed(text[i : i+1]); len(steps) > 0 && r.Sequential() != want {
				t.Errorf("%s: got sequential %v at the first step, want %v", text, r.Sequential(), want)
			}
		}
	}
}

// feed gives text to a Reader in pieces of n bytes and returns the steps, and after how many bytes each
// came.
func feed(text string, n int, taken ...string) (steps []plan.Step, at []int) {
	r := plan.NewReader(taken...)
	for i := 0; i < len(text); i += n {
		end := min(i+n, len(text))
		for _, s := range r.Feed(text[i:end]) {
			steps = append(steps, s)
			at = append(at, end)
		}
	}
	return steps, at
}

// Where a text holds one plan, the Reader sees what Parse sees, however the text is cut.
func TestReaderAgreesWithParse(t *testing.T) {
	unlike := map[string]bool{ // rows whose plan only the whole text tells
		"last counts": true, "empty plan on its own line last": true, "think unterminated": true, "ids are filled in": true,
		"think after": true, "think unopened": true, "prose with quote": true, "step without tool": true,
		"list of something else, then a plan": true, "broken, then corrected": true,
	}
	for _, tt := range parseTests {
		if unlike[tt.name] {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			for _, n := range []int{1, 2, 3, 7, 64, 1 << 20} {
				steps, _ := feed(tt.text, n)
				want, _, _ := strings.Cut(tt.want, " more")
				if got := brief(plan.Plan{Steps: steps}); got != want {
					t.Errorf("pieces of %d: got %s, want %s", n, got, want)
				}
			}
		})
	}
}

func TestReaderYieldsEarly(t *testing.T) {
	text := `{"steps":[{"id":"s1","tool":"a","arguments":{"x":[{"y":"}]"}]}},{"id":"s2","tool":"b"}],"more":false}`
	_, at := feed(text, 1)
	first := strings.Index(text, `,{"id":"s2"`)
	second := strings.Index(text, `],"more"`)
	if len(at) != 2 || at[0] != first || at[1] != second {
		t.Errorf("got steps after %v bytes, want %d and %d", at, first, second)
	}
}

func TestReaderGivesUp(t *testing.T) {
	tests := []struct {
		name, text string
		want       int // steps before it gives up
	}{
		{"no steps", `[{"role":"user"}] ` + one, 0},
		{"repeated keys", `[{"tool":"a"},{"tool":"b","tool":"c"},{"tool":"d"}]`, 1},
		{"broken step", `[{"tool":"a"},{"tool":b},{"tool":"d"}]`, 1},
		{"mixed brackets", `[{"tool":"a"},{"tool":"b"],{"tool":"d"}]`, 1},
		{"too deep", deep(plan.MaxDepth + 1), 0},
		{"after the list", one + one, 1},
		{"too many", "[" + strings.Repeat(`{"tool":"a"},`, plan.MaxSteps+5), plan.MaxSteps},
		{"too long", `[{"tool":"a"},` + strings.Repeat(" ", plan.MaxText) + `{"tool":"b"}]`, 1},
	}
	for _, tt := range tests {
		for _, n := range []int{1, 1000} {
			if steps, _ := feed(tt.text, n); len(steps) != tt.want {
				t.Errorf("%s, pieces of %d: got %d steps, want %d", tt.name, n, len(steps), tt.want)
			}
		}
	}
}

func TestReaderTaken(t *testing.T) {
	steps, _ := feed(`[{"tool":"a"},{"tool":"b"}]`, 5, "s1", "s2")
	if got, want := brief(plan.Plan{Steps: steps}), "s3=a{} s4=b{}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestReaderTime(t *testing.T) {
	for _, unit := range []string{"[", "[ ", `[{"tool":"`, `[{"tool":"a","x":`, "<", "{", `{"a":1} `, `[{"tool":"a"},`} {
		text := strings.Repeat(unit, timedText/len(unit))
		start := time.Now()
		if feed(text, 4); time.Since(start) > maxTime {
			t.Errorf("much of %q took %v", unit, time.Since(start))
		}
	}
}

// canonical writes a plan the way the schema for models asks for it.
func canonical(r *rand.Rand) string {
	words := []string{"a", "b\"", "c\\", "}]", "ü", "{[", "<think>", "\n", "$s1", ""}
	value := func() any {
		return []any{r.IntN(100), words[r.IntN(len(words))], nil, []any{map[string]any{words[r.IntN(len(words))]: 1}}}[r.IntN(4)]
	}
	steps := []any{}
	bare := r.IntN(3)
	for i := range r.IntN(5) {
		step := map[string]any{"tool": fmt.Sprint("t", r.IntN(9)), "arguments": map[string]any{words[r.IntN(len(words))]: value(), "k": value()}}
		if bare == 0 {
			step["id"] = fmt.Sprint("id", i)
			if i > 0 {
				step["after"] = []string{fmt.Sprint("id", i-1)}
			}
		}
		steps = append(steps, step)
	}
	var whole any = steps
	switch bare {
	case 0:
		whole = map[string]any{"steps": steps, "more": r.IntN(2) == 0}
	case 1:
		whole = map[string]any{"tools": steps}
	}
	raw, err := json.Marshal(whole)
	if r.IntN(2) == 0 {
		raw, err = json.MarshalIndent(whole, "", "  ")
	}
	if err != nil {
		panic(err)
	}
	return []string{"", "<think>[{\"tool\":\"x\"}] </think>\n", "Here it is:\n```json\n"}[r.IntN(3)] + string(raw) + []string{"", "\n```"}[r.IntN(2)]
}

func FuzzReader(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint8(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, size uint8) {
		text := canonical(rand.New(rand.NewPCG(seed, 0)))
		p, err := plan.Parse(text)
		if err != nil {
			t.Fatalf("Parse(%q): %v", text, err)
		}
		steps, _ := feed(text, int(size)+1)
		if got, want := brief(plan.Plan{Steps: steps}), brief(plan.Plan{Steps: p.Steps}); got != want {
			t.Errorf("%q\n got %s\nwant %s", text, got, want)
		}
	})
}

// Whatever the text is, a Reader does not depend on how it is cut.
func FuzzReaderPieces(f *testing.F) {
	for _, tt := range parseTests {
		f.Add(tt.text, uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		whole, _ := feed(text, len(text)+1)
		pieces, _ := feed(text, int(size)+1)
		if got, want := brief(plan.Plan{Steps: pieces}), brief(plan.Plan{Steps: whole}); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
