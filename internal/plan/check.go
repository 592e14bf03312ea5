package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/schema"
)

// Problem is a reason why a step cannot run.
type Problem struct {
	Step    string // id; empty if the plan itself is wrong
	Error   Error
	Missing []string // required arguments that the step lacks, if nothing else is wrong with its arguments
}

// String returns the problem as a line for people and models.
func (p Problem) String() string {
	line := p.Error.Reason + ": " + p.Error.Message
	if p.Step != "" {
		line = "step " + p.Step + ": " + line
	}
	return line
}

// A Lookup finds a tool by any name that a plan may use for it. The error has a reason such as reason.UnknownTool or
// reason.AmbiguousTool. The model is shown its message.
type Lookup func(name string) (Tool, *Error)

// Check reports the problems of a plan's steps, in plan order. A step may have several. Call Check before any step
// runs. It sets the tool and the server of every step to the catalog's names, and gives a step a new id if its id
// belongs to another call in done. A second call changes nothing.
//
// Problems are: an invalid MoreIf; Step.Invalid; unknown tools; an After that names no step; cycles of references and
// After; an id of another call in done that a second step refers to, because either call may be meant; and arguments
// that the tool's schema refuses for any value of their references. The remaining arguments must be validated once the
// values are known. done are the outcomes of earlier rounds, which steps may refer to. A step that only depends on a
// faulty step has no problem.
//
// A string such as "$x" is plain text if no step has the id x. In a planner's plan two more cases are problems,
// because they are mistakes: a reference such as "$s9.name" if ids look like s1 but there is no step s9, and a
// reference that does not match the outputSchema of the step's tool: to a field that it does not declare, to a list
// that is not one, or to a value of another type than the argument.
func Check(p *Plan, v *Validator, lookup Lookup, done []Outcome) []Problem {
	earlier := make(map[string]Step, len(done))
	for _, o := range done {
		earlier[o.Step.ID] = o.Step
	}
	tools, unresolved := make([]Tool, len(p.Steps)), make([]*Error, len(p.Steps))
	for i, s := range p.Steps {
		if s.Tool != "" {
			tools[i], unresolved[i] = resolve(s, lookup)
		}
	}
	renumber(p, tools, earlier)
	index := make(map[string]int, len(p.Steps))
	for i, s := range p.Steps {
		if _, ok := index[s.ID]; !ok {
			index[s.ID] = i
		}
	}
	isStep := func(id string) bool {
		_, here := index[id]
		_, before := earlier[id]
		return here || before
	}
	cycles := findCycles(p.Steps, index, isStep)
	declared := declarations{steps: p.Steps, index: index, isStep: isStep, tools: tools}
	stray := strays(p.Steps, earlier)

	var problems []Problem
	for i := range p.Steps {
		s := &p.Steps[i]
		report := func(err *Error) {
			if err != nil {
				problems = append(problems, Problem{Step: s.ID, Error: *err})
			}
		}
		report(s.Invalid)
		report(cycles[i])
		if s.Invalid == nil {
			report(s.checkLoop(isStep))
		}
		for _, id := range s.After {
			if !isStep(id) {
				report(&Error{reason.MissingReference, fmt.Sprintf("after names %s, which is not a step", quoteShort(id))})
			}
		}
		if s.Tool == "" && !s.Computes() {
			if s.Invalid == nil {
				report(&Error{reason.UnknownTool, noTool})
			}
			continue
		}
		tool := tools[i] // empty if the step computes
		if unresolved[i] != nil {
			report(unresolved[i])
			continue
		}
		s.Tool, s.Server = tool.Name, tool.Server
		if before, ok := earlier[s.ID]; ok && !sameCall(before, *s) {
			report(&Error{reason.DuplicateID, fmt.Sprintf(
				"id %s is used by a step that has run with another tool or other arguments", quoteShort(s.ID))})
		}
		if !s.Computes() && (s.Invalid == nil || s.Invalid.Reason != reason.InvalidArguments) {
			if p.Source != SourceGiven {
				if err := stray(s); err != nil {
					report(err)
					continue
				}
			}
			unknown := pointersTo(s.Arguments, s.inside(isStep))
			if err := v.validate(tool.InputSchema, s.Arguments, unknown); err != nil {
				problems = append(problems, Problem{s.ID, *err, v.missing(tool.InputSchema, s.Arguments, unknown)})
				continue
			}
			if p.Source != SourceGiven {
				report(declared.check(s, tool))
			}
		}
	}
	if p.MoreIf != "" && p.Source != SourceGiven {
		if err := p.condition().check(isStep); err != nil {
			problems = append(problems, Problem{Error: *err})
		}
	}
	return problems
}

// renumber gives a new id to each step of a later round whose id belongs to another call of an earlier round: models
// often count from s1 again. What the step itself refers to by that id is the earlier step. If other steps of the plan
// or MoreIf refer to it, the id stays, because they may mean either.
func renumber(p *Plan, tools []Tool, earlier map[string]Step) {
	if len(earlier) == 0 {
		return
	}
	steps, condition := p.Steps, p.condition().names()
	fresh := newIDs(slices.Collect(maps.Keys(earlier)))
	for _, s := range steps {
		fresh.used[s.ID] = true
	}
	for i := range steps {
		s := &steps[i]
		before, taken := earlier[s.ID]
		resolved := *s
		resolved.Tool, resolved.Server = tools[i].Name, tools[i].Server
		if !taken || sameCall(before, resolved) || referredTo(s.ID, steps, i) || slices.Contains(condition, s.ID) {
			continue
		}
		s.ID = ""
		fresh.fill(s, 1)
	}
}

// referredTo reports whether a step other than the one at index own refers to an id.
func referredTo(id string, steps []Step, own int) bool {
	is := func(other string) bool { return other == id }
	for i, s := range steps {
		if i != own && slices.Contains(s.Needs(is), id) {
			return true
		}
	}
	return false
}

// strays returns a function that finds references to missing steps: their id has the letters of an existing id and
// another number.
func strays(steps []Step, earlier map[string]Step) func(*Step) *Error {
	ids, letters := make(map[string]bool), make(map[string]bool)
	note := func(id string) {
		ids[id] = true
		if prefix := strings.TrimRight(id, "0123456789"); prefix != id {
			letters[prefix] = true
		}
	}
	for _, s := range steps {
		note(s.ID)
	}
	for id := range earlier {
		note(id)
	}
	resembles := func(id string) bool {
		prefix := strings.TrimRight(id, "0123456789")
		return prefix != "" && prefix != id && letters[prefix] && !ids[id]
	}
	return func(s *Step) *Error {
		for _, value := range referring(s.Arguments, s.outside(resembles)) {
			return &Error{reason.MissingReference, fmt.Sprintf("reference %s: there is no step %s",
				quoteShort(value.refs[0].written), quoteShort(value.refs[0].step))}
		}
		return nil
	}
}

// resolve finds the tool of a step. If the step names its server, as in a replayed plan, it is that server's tool,
// even if the bare name means another tool or none.
func resolve(s Step, lookup Lookup) (Tool, *Error) {
	tool, err := lookup(s.Tool)
	if s.Server == "" || err == nil && tool.Server == s.Server {
		return tool, err
	}
	other, unknown := lookup(s.Server + "." + s.Tool)
	if unknown != nil && err != nil && s.namesServer() {
		return Tool{}, err // the message shows the name as written
	}
	tool, err = other, unknown
	if err == nil && tool.Server != s.Server {
		err = &Error{reason.UnknownTool, fmt.Sprintf("server %s has no tool %s", quoteShort(s.Server), quoteShort(s.Tool))}
	}
	return tool, err
}

// namesServer reports whether the tool's name in the plan begins with the step's server.
func (s *Step) namesServer() bool {
	rest, ok := strings.CutPrefix(s.Tool, s.Server)
	return ok && (strings.HasPrefix(rest, "__") || strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "."))
}

// sameCall reports whether two steps call the same tool with the same arguments.
func sameCall(a, b Step) bool {
	return a.Tool == b.Tool && a.Server == b.Server && a.Each == b.Each && a.When == b.When && a.Pick == b.Pick &&
		sameJSON(a.Arguments, b.Arguments)
}

// pointersTo returns JSON pointers to the values that references will change.
func pointersTo(arguments json.RawMessage, isStep func(string) bool) []string {
	var pointers []string
	for _, s := range referring(arguments, isStep) {
		pointers = append(pointers, string(s.pointer))
	}
	return pointers
}

// findCycles returns an error for each step that waits for itself, by its index in the plan.
func findCycles(steps []Step, index map[string]int, isStep func(string) bool) map[int]*Error {
	needs := make([][]int, len(steps))
	for i, s := range steps {
		for _, id := range s.Needs(isStep) {
			if j, ok := index[id]; ok {
				needs[i] = append(needs[i], j)
			}
		}
	}
	errs := make(map[int]*Error)
	for i := range steps {
		if path := cycleOf(i, needs); len(path) == 1 {
			errs[i] = &Error{reason.Cycle, "the step waits for itself"}
		} else if path != nil {
			errs[i] = &Error{reason.Cycle, "steps wait for each other: " + first(10, path, func(i int) string { return quoteShort(steps[i].ID) })}
		}
	}
	return errs
}

// cycleOf returns the steps of a shortest way from a step along its needs back to itself; nil if there is none.
func cycleOf(start int, needs [][]int) (path []int) {
	from := map[int]int{} // how a step was reached
	for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
		for _, next := range needs[queue[0]] {
			if _, seen := from[next]; seen {
				continue
			}
			from[next] = queue[0]
			if next != start {
				queue = append(queue, next)
				continue
			}
			for i := from[start]; i != start; i = from[i] {
				path = append(path, i)
			}
			path = append(path, start)
			slices.Sort(path)
			return path
		}
	}
	return nil
}

// maxMissing limits the missing arguments that the user can be asked for.
const maxMissing = 10

// missing returns the required arguments that are absent or null, if the arguments are valid once these are given.
func (v *Validator) missing(input, arguments json.RawMessage, unknown []string) []string {
	s, err := schema.Read(input)
	if err != nil {
		return nil
	}
	given := make(map[string]bool)
	for name, value := range memberSeq(jsontext.Value(arguments)) {
		given[name] = value.Kind() != 'n'
	}
	var names []string
	for _, name := range s.Required {
		if !given[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 || len(names) > maxMissing {
		return nil
	}
	filled := arguments
	for _, name := range names {
		if _, null := given[name]; !null {
			filled = withNull(filled, name)
		}
		unknown = append(unknown, pointer([]string{name}))
	}
	if v.validate(input, filled, unknown) != nil {
		return nil
	}
	return names
}

// withNull adds a null member to an object.
func withNull(object json.RawMessage, name string) json.RawMessage {
	rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(string(object)), "{"))
	if rest != "}" {
		rest = "," + rest
	}
	return append(append([]byte{'{'}, appendQuoted(nil, name)...), ":null"+rest...)
}
