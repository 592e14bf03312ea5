package plan_test

import (
	"encoding/json"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

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
