package console

import (
	"fmt"
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/router"
)

// graph is the plan of a query as it ran. Its edges are the dependencies that the executor uses.
type graph struct {
	Nodes []node   `json:"nodes"`
	Path  []string `json:"path"` // the critical path: phases and ids of steps
}

// States of a node.
const (
	stateOK      = "ok"
	statePartly  = "partly" // some calls of a loop failed
	stateFailed  = "failed"
	stateSkipped = "skipped"
	stateNotRun  = "not_run"
)

// node is a step. Times are milliseconds.
type node struct {
	ID       string   `json:"id"`
	Tool     string   `json:"tool"` // "computed" if the step calls none
	Server   string   `json:"server"`
	Round    int      `json:"round"`
	Needs    []string `json:"needs"`
	Carries  []string `json:"carries,omitempty"` // other servers whose data goes to this one
	Loop     bool     `json:"loop,omitempty"`
	When     bool     `json:"conditional,omitempty"`
	Pick     bool     `json:"shaped,omitempty"`
	State    string   `json:"state"`
	Reason   string   `json:"reason,omitempty"`
	Started  float64  `json:"started_ms"`
	Duration float64  `json:"duration_ms"`
	counts
}

// counts are the calls of a node.
type counts struct {
	Calls   int `json:"calls"`
	Failed  int `json:"failed,omitempty"`
	Skipped int `json:"skipped,omitempty"`
	Retries int `json:"retries,omitempty"`
}

// newGraph makes the graph of a query.
func newGraph(d *queryDetail) graph {
	steps := d.content.Plan.Steps
	g := graph{Nodes: make([]node, 0, len(steps)), Path: []string{}}
	index := make(map[string]int, len(steps))
	round, flows := 0, d.content.Plan.Flows()
	for i, s := range steps {
		for round < len(d.rounds) && i >= d.rounds[round] {
			round++
		}
		if _, again := index[s.ID]; again {
			continue // one node has the calls of all steps of that id
		}
		index[s.ID] = len(g.Nodes)
		tool := s.Tool
		if s.Computes() {
			tool = "computed"
		}
		g.Nodes = append(g.Nodes, node{
			ID: s.ID, Tool: tool, Server: s.Server, Round: round + 1, State: stateNotRun,
			Loop: s.Each != "", When: s.When != "", Pick: s.Pick != "",
			Carries: plan.Others(flows[s.ID], s.Server),
		})
	}
	for _, s := range steps {
		n := &g.Nodes[index[s.ID]]
		if n.Needs != nil {
			continue // a step of that id came first
		}
		n.Needs = needs(s, func(id string) bool {
			at, known := index[id]
			return known && g.Nodes[at].Round <= n.Round // steps of later rounds did not exist yet
		})
	}
	for _, c := range d.content.Steps {
		if i, ok := index[c.ID]; ok {
			g.Nodes[i].add(c)
		}
	}
	g.analyze(d.phases, index)
	return g
}

// needs returns the steps that s waits for. Unknown names in After are not edges.
func needs(s plan.Step, isStep func(id string) bool) []string {
	return slices.DeleteFunc(append([]string{}, s.Needs(isStep)...), func(id string) bool { return !isStep(id) })
}

// add adds the outcome of a call.
func (n *node) add(c router.StepResult) {
	end := max(n.Started+n.Duration, c.Started+c.Duration)
	if n.Calls == 0 || c.Started < n.Started {
		n.Started = c.Started
	}
	n.Duration = end - n.Started
	n.Calls++
	n.Retries += max(0, c.Attempts-1)
	switch {
	case c.Skipped:
		n.Skipped++
	case !c.Success:
		n.Failed++
		if c.Error != nil && n.Reason == "" {
			n.Reason = c.Error.Reason
		}
	}
	switch {
	case n.Failed > 0 && n.Failed+n.Skipped == n.Calls:
		n.State = stateFailed
	case n.Failed > 0:
		n.State = statePartly
	case n.Skipped == n.Calls:
		n.State = stateSkipped
	default:
		n.State = stateOK
	}
}

// analyze finds the critical path through phases and steps. A step waits for the steps that it needs and, unless it is
// speculative, for the planning of its round. Planning waits for all steps of earlier rounds, synthesis for all steps
// so far, and both for the planning and synthesis before.
func (g *graph) analyze(phases []router.Phase, index map[string]int) {
	parts := make([]part, len(g.Nodes))
	names := make([]string, len(g.Nodes))
	for i, n := range g.Nodes {
		names[i] = n.ID
		parts[i].time = int64(n.Duration * 1000)
		for _, id := range n.Needs {
			parts[i].needs = append(parts[i].needs, index[id])
		}
	}
	round := 0
	for _, p := range phases {
		phase := part{time: p.Duration.Microseconds()}
		name := p.Name
		for i := len(g.Nodes); i < len(parts); i++ { // phases follow one another
			phase.needs = append(phase.needs, i)
		}
		switch p.Name {
		case router.PhasePlanning:
			round++
			name = fmt.Sprintf("%s %d", p.Name, round)
			for i, n := range g.Nodes {
				switch end := milliseconds(p.Started + p.Duration); {
				case n.Round < round:
					phase.needs = append(phase.needs, i)
				case n.Round == round && n.Started >= end:
					parts[i].needs = append(parts[i].needs, len(parts))
				}
			}
		case router.PhaseSynthesis:
			for i, n := range g.Nodes {
				if n.Round <= round {
					phase.needs = append(phase.needs, i)
				}
			}
		default:
			continue
		}
		parts, names = append(parts, phase), append(names, name)
	}
	for _, i := range longestChain(parts) {
		if parts[i].time > 0 {
			g.Path = append(g.Path, names[i])
		}
	}
}

// part is a part of work whose parts wait for one another. Its time has any unit.
type part struct {
	needs []int // indexes of the parts that must end first
	time  int64
}

// longestChain returns a longest chain of parts, in order. Parts in a cycle never run: they and what needs them are
// left out.
func longestChain(parts []part) (path []int) {
	ends := make([]int64, len(parts)) // at the earliest
	before := make([]int, len(parts))
	seen, runs := make([]bool, len(parts)), make([]bool, len(parts))
	var visit func(i int) bool // reports whether the part runs
	visit = func(i int) bool {
		if seen[i] {
			return runs[i]
		}
		seen[i], before[i] = true, -1
		for _, n := range parts[i].needs {
			if !visit(n) {
				return false
			}
			if before[i] < 0 || ends[n] > ends[before[i]] {
				before[i] = n
			}
		}
		if before[i] >= 0 {
			ends[i] = ends[before[i]]
		}
		ends[i] += parts[i].time
		runs[i] = true
		return true
	}
	last := -1
	for i := range parts {
		if visit(i) && (last < 0 || ends[i] > ends[last]) {
			last = i
		}
	}
	for i := last; i >= 0; i = before[i] {
		path = append(path, i)
	}
	slices.Reverse(path)
	return path
}
