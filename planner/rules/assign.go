package rules

import (
	"cmp"
	"slices"
)

// Bounds of the search for the best assignment.
const (
	maxChoices = 12    // of one parameter, the best
	maxVisits  = 20000 // beyond, the best found so far stands
)

// inOrder is what it adds that two parameters of one type take their values in the order of mention: it decides where the
// words around them do not, as for a and b of "36 and 48".
const inOrder = 0.35

// assignment searches what to give each parameter so that the sum is highest and nothing is used twice.
type assignment struct {
	params  []param
	rows    [][]choice // sorted, best first
	rest    []float64  // the most that the parameters from each on can add
	current []*choice
	best    []*choice
	highest float64
	visits  int
}

func assign(params []param, rows [][]choice) []*choice {
	s := assignment{params: params, rows: rows, rest: make([]float64, len(rows)+1), current: make([]*choice, len(rows)),
		highest: -1}
	for i := len(rows) - 1; i >= 0; i-- {
		rows[i] = slices.DeleteFunc(rows[i], func(c choice) bool { return c.score < least(params[i]) })
		slices.SortStableFunc(rows[i], func(a, b choice) int { return cmp.Compare(b.score, a.score) })
		rows[i] = rows[i][:min(len(rows[i]), maxChoices)]
		s.rest[i] = s.rest[i+1]
		if len(rows[i]) > 0 {
			s.rest[i] += worth(params[i], rows[i][0]) + inOrder
		}
	}
	s.from(0, 0)
	return s.best
}

// worth is what a choice adds; required parameters come first.
func worth(q param, c choice) float64 {
	if q.Required {
		return c.score - takeRequired + 1.5
	}
	return c.score - takeOptional + 0.01
}

// least is the least score that a parameter takes.
func least(q param) float64 {
	if q.Required {
		return takeRequired
	}
	return takeOptional
}

// from tries all that the parameters from i on may be given.
func (s *assignment) from(i int, sum float64) {
	if s.visits++; s.visits > maxVisits || sum+s.rest[i] <= s.highest {
		return
	}
	if i == len(s.rows) {
		s.highest, s.best = sum, slices.Clone(s.current)
		return
	}
	for k := range s.rows[i] {
		c := &s.rows[i][k]
		if !slices.ContainsFunc(s.current[:i], func(o *choice) bool { return o != nil && o.clashes(*c) }) {
			s.current[i] = c
			s.from(i+1, sum+worth(s.params[i], *c)+s.order(i, c))
		}
	}
	s.current[i] = nil
	s.from(i+1, sum)
}

// order is inOrder if the last parameter of the same type has an earlier part of the question.
func (s *assignment) order(i int, c *choice) float64 {
	for j := i - 1; j >= 0; j-- {
		if o := s.current[j]; o != nil && len(s.params[i].Enum) == 0 &&
			kindOf(s.params[j].Schema) == kindOf(s.params[i].Schema) {
			if o.start < c.start {
				return inOrder
			}
			return 0
		}
	}
	return 0
}
