package plan

import (
	"fmt"
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/plan/expression"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// formula is an expression of a step or a plan.
type formula struct {
	member string // that holds it, such as "when"
	source string
	read   **expression.Expression // nil before it is read
	own    []string                // names that mean no step
}

// expressions returns the expressions of the step. Each is one if it is no reference.
func (s *Step) expressions(isStep func(string) bool) (all []formula) {
	var own []string
	if s.loops() {
		own = []string{itemName, indexName}
	}
	if _, ok := s.list(isStep); s.loops() && !ok {
		all = append(all, formula{"each", s.Each, &s.each, nil})
	}
	if s.When != "" {
		all = append(all, formula{"when", s.When, &s.when, own})
	}
	if s.Pick != "" {
		if !s.Computes() {
			own = append(own, valueName)
		}
		all = append(all, formula{"pick", s.Pick, &s.pick, own})
	}
	return all
}

// parse reads the expression.
func (f formula) parse() *Error {
	if *f.read != nil {
		return nil
	}
	read, err := expression.Parse(f.source)
	if err != nil {
		return &Error{reason.InvalidArguments, f.member + ": " + err.Error()}
	}
	*f.read = read
	return nil
}

// names returns the names in an expression that mean steps. It has none if the expression is invalid.
func (f formula) names() []string {
	if f.parse() != nil {
		return nil
	}
	isOwn := func(name string) bool { return slices.Contains(f.own, name) }
	return slices.DeleteFunc(slices.Clone((*f.read).Names()), isOwn)
}

// check finds errors that do not depend on values.
func (f formula) check(isStep func(string) bool) *Error {
	if err := f.parse(); err != nil {
		return err
	}
	for _, name := range (*f.read).Locals() {
		if isStep(name) || name == itemName || name == indexName || name == valueName {
			return &Error{reason.InvalidArguments, fmt.Sprintf("%s: the variable %s hides a value of that name; rename it",
				f.member, quoteShort(name))}
		}
	}
	for _, name := range f.names() {
		if !isStep(name) {
			return &Error{reason.MissingReference, fmt.Sprintf("%s names %s, which is not a step", f.member, quoteShort(name))}
		}
	}
	return nil
}

// picksValue reports whether Pick computes with what the step's own call returned.
func (s *Step) picksValue() bool {
	f := formula{"pick", s.Pick, &s.pick, nil}
	return s.Pick != "" && !s.Computes() && slices.Contains(f.names(), valueName)
}

// readExpressions reads the step's expressions.
func (s *Step) readExpressions(isStep func(string) bool) *Error {
	for _, f := range s.expressions(isStep) {
		if err := f.parse(); err != nil {
			return err
		}
	}
	return nil
}
