package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

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
				if got, want := brief(plan.Plan{Steps: steps}), strings.TrimSuffix(tt.want, " more"); got != want {
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
		text := strings.Repeat(unit, plan.MaxText/len(unit))
		start := time.Now()
		feed(text, 4)
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("1 MiB of %q took %v", unit, d)
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
