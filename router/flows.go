package router

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/internal/trust"
)

// provenance tells what a call of a step is decided on.
func (c *decider) provenance(source string, tool plan.Tool, carries []string) downstream.Provenance {
	origin := &c.s.q.Origin
	return downstream.Provenance{
		Step: true, Profile: origin.Profile, Surface: origin.Surface, Source: source, Round: c.r.number,
		Carries: carries, AfterResults: c.shown.answered, Reads: tool.Reads(), Destructive: tool.Annotations.Destructive(),
	}
}

// shown describes what the planner of a round is shown of earlier rounds.
type shown struct {
	answered bool     // tools had answered; the text of an error counts
	servers  []string // whose results it contains, in itself or in arguments
}

// shownBy returns what the planner is shown after the rounds of a record.
func shownBy(r *Record) (all shown) {
	flows := r.Plan.Flows()
	var servers []string
	for _, o := range r.Outcomes {
		servers = append(servers, flows[o.Step.ID]...)
		if o.Attempts > 0 {
			all.answered, servers = true, append(servers, o.Step.Server)
		}
	}
	all.servers = plan.Servers(servers)
	return all
}

// addSources sets what the steps of the plan carry besides their references. A given plan tells it itself.
func (c *decider) addSources() {
	known := c.s.router.servers.Servers()
	for i := range c.r.plan.Steps {
		step := &c.r.plan.Steps[i]
		if c.r.plan.Source == plan.SourceGiven {
			step.Carries = slices.DeleteFunc(step.Carries, func(name string) bool { return !slices.Contains(known, name) })
			continue
		}
		tool, _ := c.s.usable().Lookup(step.Tool)
		step.Carries = c.sources(*step, tool)
	}
}

// sources returns the servers whose results a planned step carries because its planner was shown them. What the user
// has said carries nothing.
func (c *decider) sources(step plan.Step, tool plan.Tool) []string {
	if len(c.shown.servers) == 0 || c.stated(step, tool) {
		return nil
	}
	return c.shown.servers
}

// stated reports whether a step sends only what the user has said: one argument that the tool declares, word for word.
// The choice of the words can still tell something. Therefore it is true of one step of a query for each server.
func (c *decider) stated(step plan.Step, tool plan.Tool) bool {
	arguments := map[string]json.RawMessage{}
	declared, err := schema.Read(tool.InputSchema)
	if step.Each != "" || step.When != "" || step.Pick != "" || err != nil ||
		!canonical(step.Arguments) || json.Unmarshal(step.Arguments, &arguments) != nil || len(arguments) != 1 {
		return false
	}
	for name, value := range arguments {
		words := string(value)
		if text := jsonrpc.Text(value); text != "" {
			words = text
		}
		said := func(text string) bool { return says(text, words) }
		if declared.Field(name) == nil || !said(c.s.q.Text) && !slices.ContainsFunc(c.s.user.entered, said) {
			return false
		}
	}
	call := step.ID + " " + tool.Tool + " " + string(step.Arguments)
	if first, some := c.s.user.stated[tool.Server]; some {
		return first == call
	}
	c.s.user.stated[tool.Server] = call
	return true
}

// canonical reports whether JSON has no spaces and no needless escapes, which could be a code.
func canonical(raw []byte) bool {
	plain := jsontext.Value(bytes.Clone(raw))
	return plain.Compact(jsontext.PreserveRawStrings(false)) == nil && bytes.Equal(plain, raw)
}

// says reports whether a text contains other words, as whole words.
func says(text, words string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], words)
		if at < 0 {
			return false
		}
		at += from
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(words):])
		if !inWord(before) && !inWord(after) {
			return true
		}
		from = at + 1
	}
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// private returns the private servers that the query may use, if there are others, too.
func (c *decider) private() (names []string) {
	private, others := c.s.router.servers.Private(), false
	for _, server := range c.s.usable().Servers() {
		if slices.Contains(private, server.Name) {
			names = append(names, server.Name)
		} else {
			others = true
		}
	}
	if !others {
		return nil
	}
	return names
}

// needsApproval reports whether a model's call of a tool needs the user's consent whatever its arguments, in the first
// round or in one after tools have answered.
func (c *decider) needsApproval(tool plan.Tool, afterResults bool) bool {
	from := c.provenance(plan.SourceModel, tool, nil)
	if from.Round, from.AfterResults = 1, afterResults; afterResults {
		from.Round = 2
	}
	d, err := c.decision(tool, []byte(`{}`), from)
	return err == nil && d.Action == trust.Ask
}

// startEarly starts a step of a plan that the model is still writing, if the decision on its call is to allow it.
func (c *decider) startEarly(step plan.Step) {
	tool, unknown := c.s.usable().Lookup(step.Tool)
	if unknown != nil {
		return
	}
	from := c.provenance(plan.SourceModel, tool, c.sources(step, tool))
	if d, err := c.decision(tool, step.Arguments, from); err == nil && d.Action == trust.Allow {
		c.r.execution.Start(step, tool, from)
	}
}

// describeFlow says which private data a call to a server carries there; it is empty if that needs no consent.
func (r *Router) describeFlow(carries []string, server string) string {
	private := r.servers.Private()
	sources := slices.DeleteFunc(slices.Clone(carries), func(name string) bool { return !slices.Contains(private, name) })
	if len(sources) == 0 || slices.Contains(private, server) {
		return ""
	}
	return "Data of " + enumerate(sources) + " goes to " + server
}

// flow is a flow of private data to one tool, which the user is asked about once for all steps of a plan.
type flow struct {
	steps   []plan.Step
	once    sync.Once
	refused *plan.Error
}

// ask asks about the flow once and returns the answer. The question lists the other steps with their arguments as
// planned.
func (f *flow) ask(ask func(others []plan.Step) *plan.Error, id string) *plan.Error {
	f.once.Do(func() {
		f.refused = &plan.Error{Reason: reason.Internal, Message: "internal error while asking"} // if ask panics
		f.refused = ask(slices.DeleteFunc(slices.Clone(f.steps), func(s plan.Step) bool { return s.ID == id }))
	})
	return f.refused
}

// flowKey identifies the flow of private data to a tool that a decision is about.
func flowKey(tool plan.Tool, d trust.Decision) string {
	return tool.Server + "\x00" + tool.Tool + "\x00" + d.Reason
}

// declinedFlows are the flows that the user has declined, with the round, by flowKey. It is safe for concurrent use.
type declinedFlows struct{ rounds sync.Map }

// note records that the user has declined the flows of calls.
func (f *declinedFlows) note(a *asking) {
	for _, d := range a.decisions {
		if d.Rule == trust.RuleFlow {
			f.rounds.LoadOrStore(flowKey(a.tool, d), a.from.Round)
		}
	}
}

// before reports whether the user has declined a flow of calls in an earlier round.
func (f *declinedFlows) before(a *asking) bool {
	return slices.ContainsFunc(a.decisions, func(d trust.Decision) bool {
		round, declined := f.rounds.Load(flowKey(a.tool, d))
		return declined && round.(int) < a.from.Round
	})
}

// flowOf returns the flow of calls that need consent for it alone; nil if they need it for other reasons, too, or if
// nobody can be asked.
func (c *decider) flowOf(a *asking) *flow {
	if c.s.q.Elicit == nil || a.twice || len(a.decisions) != 1 || a.decisions[0].Rule != trust.RuleFlow {
		return nil
	}
	bare := a.from
	bare.Carries = nil
	for _, arguments := range a.calls {
		if d, err := c.decision(a.tool, arguments, bare); err != nil || d.Action != trust.Allow {
			return nil
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := flowKey(a.tool, a.decisions[0])
	f := c.flows[key]
	if f == nil {
		f = &flow{}
		for _, step := range c.r.plan.Steps {
			from := a.from
			from.Carries = c.carried[step.ID]
			same := step.Server == a.tool.Server && step.Tool == a.tool.Name && !c.r.refused(step.ID)
			if d, err := c.decision(a.tool, step.Arguments, from); same && err == nil && d == a.decisions[0] {
				f.steps = append(f.steps, step)
			}
		}
		c.flows[key] = f
	}
	if !slices.ContainsFunc(f.steps, func(s plan.Step) bool { return s.ID == a.step.ID }) {
		return nil
	}
	return f
}
