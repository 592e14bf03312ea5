package plan

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
)

// Flows returns the servers whose results the steps of a plan carry, sorted, by step id. Steps that carry none are
// left out.
//
// A step carries the results of the steps that its arguments, its list and its expressions refer to, what these steps
// carry, and its own Carries. It also carries what decides whether a step that it waits for succeeds: what the
// arguments and expressions of that step refer to, its own result if Pick computes with it. Otherwise After carries
// nothing.
func (p *Plan) Flows() map[string][]string {
	f := flows{steps: make(map[string]*Step, len(p.Steps)), carried: map[string][]string{}, ruled: map[string][]string{}}
	for i := range p.Steps {
		if s := &p.Steps[i]; f.steps[s.ID] == nil {
			f.steps[s.ID] = s
		}
	}
	for _, s := range f.steps {
		f.visit(s)
	}
	for id, servers := range f.carried {
		if len(servers) == 0 {
			delete(f.carried, id)
		}
	}
	return f.carried
}

// flows is the state of Plan.Flows.
type flows struct {
	steps   map[string]*Step
	carried map[string][]string // by step id; also of steps being visited, which ends cycles: their steps never run
	ruled   map[string][]string // the servers whose results decide whether a step succeeds
}

func (f *flows) visit(s *Step) {
	if _, visited := f.carried[s.ID]; visited {
		return
	}
	f.carried[s.ID] = nil
	isStep := func(id string) bool { return f.steps[id] != nil }
	needs := slices.Concat(References(s.Arguments, s.outside(isStep)), s.loopNeeds(isStep))
	carried, ruled := slices.Clone(s.Carries), slices.Clone(s.Carries)
	for _, id := range needs {
		from := f.steps[id]
		f.visit(from)
		flow := append([]string{from.Server}, f.carried[id]...)
		carried, ruled = append(carried, flow...), append(append(ruled, f.ruled[id]...), flow...)
	}
	for _, id := range s.After {
		if from := f.steps[id]; from != nil {
			f.visit(from)
			ruled = append(ruled, f.ruled[id]...)
		}
	}
	f.carried[s.ID] = Servers(append(carried, ruled...))
	if s.picksValue() {
		ruled = append(ruled, s.Server)
	}
	f.ruled[s.ID] = Servers(ruled)
}

// Servers returns names of servers in order, each once and without empty ones.
func Servers(names []string) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// Others returns the servers without one.
func Others(servers []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(servers), func(name string) bool { return name == one })
}

// Digest returns a hash of all that the steps of a plan do. Plans that differ only in notation have the same.
func (p *Plan) Digest() [sha256.Size]byte {
	steps := make([]Step, len(p.Steps))
	for i, s := range p.Steps {
		arguments, ok := canonical(s.Arguments)
		if !ok {
			arguments = string(s.Arguments)
		}
		s.Arguments = appendQuoted(nil, arguments)
		s.After, s.Carries = append([]string{}, s.After...), Servers(s.Carries)
		steps[i] = s
	}
	text, _ := json.Marshal(Plan{Sequential: p.Sequential, Steps: steps}) // never fails: the raw values are strings
	return sha256.Sum256(text)
}
