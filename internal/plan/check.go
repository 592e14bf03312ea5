package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Problem is a reason why a step cannot run.
type Problem struct {
	Step    string // id
	Error   Error
	Missing []string // required arguments that the step lacks, if nothing else is wrong with its arguments
}

// A Lookup finds a tool by any name that a plan may use for it. The error says what is wrong with the
// name, such as ReasonUnknownTool or ReasonAmbiguousTool, in words that are shown to the model.
type Lookup func(name string) (Tool, *Error)

// Check reports what is wrong with the steps of a plan, in the plan's order and up to several problems
// per step. It is to be called before any step runs; it names every step's tool and server as the
// catalog does, which a second call leaves alone.
//
// It finds what reading the plan found (Step.Invalid), unknown tools, After that names no step, cycles
// of references and After, ids of done that stand for another call now, and arguments that the tool's
// schema refuses whatever the values they refer to turn out to be; the rest of the arguments has to be
// validated once those are known. A string such as "$x" is nothing special if no step is called x. done
// are the outcomes of earlier rounds, which steps may refer to. A step that depends on a faulty one has
// no problem of its own.
func Check(p *Plan, v *Validator, lookup Lookup, done []Outcome) []Problem {
	index := make(map[string]int, len(p.Steps))
	for i, s := range p.Steps {
		if _, ok := index[s.ID]; !ok {
			index[s.ID] = i
		}
	}
	earlier := make(map[string]Step, len(done))
	for _, o := range done {
		earlier[o.Step.ID] = o.Step
	}
	isStep := func(id string) bool {
		_, here := index[id]
		_, before := earlier[id]
		return here || before
	}
	cycles := findCycles(p.Steps, index, isStep)

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
				report(&Error{ReasonMissingReference, fmt.Sprintf("after names %s, which is no step", quoteShort(id))})
			}
		}
		if s.Tool == "" {
			if s.Invalid == nil {
				report(&Error{ReasonUnknownTool, "step names no tool"})
			}
			continue
		}
		tool, err := resolve(*s, lookup)
		if err != nil {
			report(err)
			continue
		}
		s.Tool, s.Server = tool.Name, tool.Server
		if before, ok := earlier[s.ID]; ok && !sameCall(before, *s) {
			report(&Error{ReasonDuplicateID, fmt.Sprintf("id %s is used by a step that has run with another tool or other arguments", quoteShort(s.ID))})
		}
		if s.Invalid == nil || s.Invalid.Reason != ReasonInvalidArguments {
			unknown := pointersTo(s.Arguments, s.inside(isStep))
			if err := v.validate(tool.InputSchema, s.Arguments, unknown); err != nil {
				problems = append(problems, Problem{s.ID, *err, v.missing(tool.InputSchema, s.Arguments, unknown)})
			}
		}
	}
	return problems
}

// resolve finds the tool of a step. A step that names its server, as in a plan that is replayed, means
// that server's tool even where the name alone is another's or nobody's.
func resolve(s Step, lookup Lookup) (Tool, *Error) {
	tool, err := lookup(s.Tool)
	if s.Server == "" || err == nil && tool.Server == s.Server {
		return tool, err
	}
	other, unknown := lookup(s.Server + "." + s.Tool)
	if unknown != nil && err != nil && s.namesServer() {
		return Tool{}, err // in the words for the name as it stands
	}
	tool, err = other, unknown
	if err == nil && tool.Server != s.Server {
		err = &Error{ReasonUnknownTool, fmt.Sprintf("server %s has no tool %s", quoteShort(s.Server), quoteShort(s.Tool))}
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
		pointers = append(pointers, s.pointer)
	}
	return pointers
}

// findCycles returns an error for each step, by its place in the plan, that waits for itself. It finds
// the strongly connected components of the graph (R. Tarjan, Depth-first search and linear graph
// algorithms, 1972).
func findCycles(steps []Step, index map[string]int, isStep func(string) bool) map[int]*Error {
	t := tarjan{needs: make([][]int, len(steps)), order: make([]int, len(steps)), low: make([]int, len(steps)),
		onStack: make([]bool, len(steps))}
	for i, s := range steps {
		for _, id := range s.Needs(isStep) {
			if j, ok := index[id]; ok {
				t.needs[i] = append(t.needs[i], j)
			}
		}
	}
	for i := range steps {
		if t.order[i] == 0 {
			t.visit(i)
		}
	}
	errs := make(map[int]*Error)
	for _, component := range t.components {
		if i := component[0]; len(component) == 1 && !slices.Contains(t.needs[i], i) {
			continue
		}
		slices.Sort(component)
		for _, i := range component {
			errs[i] = &Error{ReasonCycle, cycleMessage(steps, component)}
		}
	}
	return errs
}

func cycleMessage(steps []Step, component []int) string {
	if len(component) == 1 {
		return "the step waits for itself"
	}
	const most = 10
	var ids []string
	for _, i := range component[:min(len(component), most)] {
		ids = append(ids, quoteShort(steps[i].ID))
	}
	if n := len(component) - most; n > 0 {
		ids = append(ids, fmt.Sprintf("%d more", n))
	}
	return "steps wait for each other: " + strings.Join(ids, ", ")
}

type tarjan struct {
	needs      [][]int
	order, low []int // 0 before the visit
	count      int
	stack      []int
	onStack    []bool
	components [][]int
}

// visit recurses at most once per step.
func (t *tarjan) visit(i int) {
	t.count++
	t.order[i], t.low[i] = t.count, t.count
	t.stack = append(t.stack, i)
	t.onStack[i] = true
	for _, j := range t.needs[i] {
		if t.order[j] == 0 {
			t.visit(j)
			t.low[i] = min(t.low[i], t.low[j])
		} else if t.onStack[j] {
			t.low[i] = min(t.low[i], t.order[j])
		}
	}
	if t.low[i] != t.order[i] {
		return
	}
	at := slices.Index(t.stack, i)
	component := slices.Clone(t.stack[at:])
	t.stack = t.stack[:at]
	for _, j := range component {
		t.onStack[j] = false
	}
	t.components = append(t.components, component)
}
