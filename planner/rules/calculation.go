package rules

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner/rules/intent"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// joinAfter and joinBefore are a conjunction after and before a calculation.
var (
	joinAfter  = regexp.MustCompile(`^\s+(?i:and|und|et|y)\s+`)
	joinBefore = regexp.MustCompile(`\s+(?i:and|und|et|y)\s+$`)
)

// splitCalculations makes a clause of its own of a calculation that a conjunction joins to something else: "the latest
// news and 15% of $2500". Only the part with the verb of the clause may write.
func splitCalculations(text string, clauses []intent.Clause, all []values.Value) (out []intent.Clause) {
	for _, c := range clauses {
		parts := [][2]int{{c.Start, c.End}}
		i := slices.IndexFunc(all, func(v values.Value) bool {
			return v.Kind == values.Expression && c.Start <= v.Start && v.End <= c.End
		})
		if i >= 0 && c.Act.MayRead() {
			v := all[i]
			if m := joinAfter.FindStringIndex(text[v.End:c.End]); m != nil {
				parts = [][2]int{{c.Start, v.End}, {v.End + m[1], c.End}}
			} else if m := joinBefore.FindStringIndex(text[c.Start:v.Start]); m != nil {
				parts = [][2]int{{c.Start, c.Start + m[0]}, {v.Start, c.End}}
			}
		}
		for _, at := range parts {
			p := c
			p.Start, p.End, p.Text = at[0], at[1], text[at[0]:at[1]]
			if !strings.Contains(strings.ToLower(p.Text), strings.ToLower(c.Verb)) && len(parts) > 1 {
				p.Verb = ""
			}
			out = append(out, p)
		}
	}
	return out
}

// calculation reports whether the verb of a clause begins a calculation, as in "add 3 and 4": nothing is added anywhere.
func calculation(text string, c intent.Clause, all []values.Value) bool {
	return slices.ContainsFunc(all, func(v values.Value) bool {
		return v.Kind == values.Expression && c.Start <= v.Start && v.End <= c.End &&
			strings.HasPrefix(strings.ToLower(text[v.Start:v.End]), strings.ToLower(c.Verb))
	})
}

// operators are the words that name a calculation with one kind of operator.
var operators = map[rune]string{
	'+': "add sum plus addition", '-': "subtract minus difference subtraction",
	'*': "multiply times product multiplication", '/': "divide quotient division",
}

// operation returns the stems that name a tool for a calculation, and those that name one for another: "sum" for "10 - 4".
func operation(expression string) (this, other []string) {
	this = []string{search.Stem("calculate")}
	only := strings.Map(func(c rune) rune {
		if operators[c] == "" {
			return -1
		}
		return c
	}, expression)
	for c, words := range operators {
		for w := range strings.FieldsSeq(words) {
			if only == string(c) {
				this = append(this, search.Stem(w))
			} else {
				other = append(other, search.Stem(w))
			}
		}
	}
	slices.Sort(this[1:])
	return this, other
}
