package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner/rules/intent"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// conjunctions join a calculation to something else.
var conjunctions = strings.Fields("and und et y")

// splitCalculations makes a clause of its own of a calculation that a conjunction joins to something else: "the latest
// news and 15% of $2500". Only the part with the verb of the clause may write.
func splitCalculations(text string, clauses []intent.Clause, all []values.Value) (out []intent.Clause) {
	for _, c := range clauses {
		i := slices.IndexFunc(all, func(v values.Value) bool {
			return v.Kind == values.Expression && c.Start <= v.Start && v.End <= c.End
		})
		if i < 0 || !c.Act.MayRead() {
			out = append(out, c)
			continue
		}
		part := func(start, end int) {
			p := c
			p.Text = strings.TrimSpace(text[start:end])
			p.Start = start + strings.Index(text[start:end], p.Text)
			p.End = p.Start + len(p.Text)
			if !strings.Contains(strings.ToLower(p.Text), strings.ToLower(c.Verb)) {
				p.Verb = ""
			}
			out = append(out, p)
		}
		v := all[i]
		before, after := strings.Fields(text[c.Start:v.Start]), strings.Fields(text[v.End:c.End])
		switch {
		case len(after) > 1 && slices.Contains(conjunctions, strings.ToLower(after[0])):
			part(c.Start, v.End)
			part(v.End+strings.Index(text[v.End:c.End], after[0])+len(after[0]), c.End)
		case len(before) > 1 && slices.Contains(conjunctions, strings.ToLower(before[len(before)-1])):
			part(c.Start, c.Start+strings.LastIndex(text[c.Start:v.Start], before[len(before)-1]))
			part(v.Start, c.End)
		default:
			out = append(out, c)
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
