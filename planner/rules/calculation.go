package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/planner/rules/intent"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// joinAfter and joinBefore are a conjunction after and before a calculation.
var (
	joinAfter  = lazy(`^\s+(?i:and|und|et|y)\s+`)
	joinBefore = lazy(`\s+(?i:and|und|et|y)\s+$`)
)

// splitCalculations makes a clause of its own of a calculation that a conjunction joins to something else: "the latest
// news and 15% of $2500". Only the part with the verb of the clause may write.
func splitCalculations(text string, clauses []intent.Clause, all []values.Value) (out []intent.Clause) {
	for _, c := range clauses {
		first, second := c, c
		if v, ok := calculated(c, all); ok && c.Act.MayRead() && c.Start <= v.Start && v.End <= c.End {
			if m := joinAfter().FindStringIndex(text[v.End:c.End]); m != nil {
				first.End, second.Start = v.End, v.End+m[1]
			} else if m := joinBefore().FindStringIndex(text[c.Start:v.Start]); m != nil {
				first.End, second.Start = c.Start+m[0], v.Start
			}
		}
		if second.Start == c.Start {
			out = append(out, c)
			continue
		}
		for _, p := range []intent.Clause{first, second} {
			if p.Text = text[p.Start:p.End]; !strings.Contains(strings.ToLower(p.Text), c.Verb) {
				p.Verb = ""
			}
			out = append(out, p)
		}
	}
	return out
}

// calculated returns the first calculation of a clause.
func calculated(c intent.Clause, all []values.Value) (v values.Value, ok bool) {
	i := slices.IndexFunc(all, func(v values.Value) bool {
		middle := (v.Start + v.End) / 2
		return v.Kind == values.Expression && c.Start <= middle && middle < c.End
	})
	if i < 0 {
		return v, false
	}
	return all[i], true
}

// operators returns the signs of a calculation; words.txt has a list for each.
func operators(expression string) string {
	return strings.Map(func(c rune) rune {
		if list(string(c)) == nil {
			return -1
		}
		return c
	}, expression)
}

// calculates reports whether a tool is named after the calculation of a question, or after calculating.
func (a ask) calculates(f *profile) bool {
	return a.calculation && (list(a.operators).any(f.name) || list("calculation").any(f.name))
}

// calculatesOther reports whether a tool is named after another calculation: "sum" for "10 - 4".
func (a ask) calculatesOther(f *profile) bool {
	return a.calculation && slices.ContainsFunc([]string{"+", "-", "*", "/"}, func(sign string) bool {
		return sign != a.operators && list(sign).any(f.name)
	})
}
