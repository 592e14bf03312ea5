package rules

import (
	"fmt"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/planner/rules/intent"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

func TestPhr(t *testing.T) {
	q := "Find the closest sushi restaurant with a patio in Boston."
	p := New(Options{})
	r := &profiler{lang: "en", made: map[string]*profile{}}
	f := r.profile(plan.Tool{Name: "x", Tool: "restaurant_search.find_closest", Description: "Locate the closest sushi restaurant based on certain criteria, such as the presence of a patio.", InputSchema: []byte(`{"type":"object","properties":{"location":{"type":"string","description":"The city, for instance Boston, MA"},"cuisine":{"type":"string","description":"Type of food like Sushi."}},"required":["location","cuisine"]}`)})
	a := askFor(q, intent.Split(q), values.Extract(q, values.Options{Now: time.Now()}), time.Now())
	l := filler{p: p, a: a, f: f}
	for _, v := range l.cut() {
		fmt.Printf("%q %s\n", v.Text, v.Label)
	}
	for _, w := range a.words {
		fmt.Println(w.lower, w.weight, l.explains(w))
	}
}
