package router

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/texts"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

// unmetParts lists the parts of the question that no successful step serves: parts without a step, and parts whose
// steps failed and were not made good later.
func (r *Record) unmetParts(question string) []plan.Unmet {
	out := slices.Clone(r.unserved)
	for _, o := range r.failed {
		if o.Step.Computes() && o.Err.Reason == reason.DependencyFailed {
			continue // what it needs is in the list
		}
		u := plan.Unmet{Text: cmp.Or(o.Step.Serves, r.part(o.Step, question)), Tool: o.Step.Tool,
			Missing: r.missing[o.Step.ID], Step: o.Step.ID}
		u.Reason = unmetReason(r.cause(o).Err.Reason, len(u.Missing) > 0)
		out = append(out, u)
	}
	return out
}

// maxShownPart limits, in bytes, the arguments that stand for a part of the question.
const maxShownPart = 100

// part returns the part of the question that a step serves. If the planner names none, it is the whole question for a
// single step, else the call.
func (r *Record) part(s plan.Step, question string) string {
	switch {
	case len(r.Plan.Steps) == 1:
		return question
	case s.Computes():
		return printable(s.Pick, maxShownPart)
	case string(s.Arguments) == "{}":
		return s.Tool
	}
	return s.Tool + " " + printable(string(s.Arguments), maxShownPart)
}

func unmetReason(why string, lacks bool) string {
	switch {
	case why == reason.NeedsApproval:
		return plan.UnmetNeedsApproval
	case why == reason.Declined:
		return plan.UnmetDeclined
	case why == reason.InvalidArguments && lacks:
		return plan.UnmetMissingArgument
	}
	return plan.UnmetFailed
}

// cause returns the original failure behind a failed outcome: its own, or that of the step it depends on.
func (r *Record) cause(o plan.Outcome) plan.Outcome {
	isStep := func(id string) bool {
		return slices.ContainsFunc(r.failed, func(f plan.Outcome) bool { return f.Step.ID == id })
	}
	for range r.failed { // bounds the walk along the chain of failures
		if o.Err.Reason != reason.DependencyFailed {
			break
		}
		needs := o.Step.Needs(isStep)
		i := slices.IndexFunc(r.failed, func(f plan.Outcome) bool { return slices.Contains(needs, f.Step.ID) })
		if i < 0 {
			break
		}
		o = r.failed[i]
	}
	return o
}

// addUnserved records what a round does not serve: missing arguments of steps and, unless its plan has asked for
// another round, parts without a step.
func (r *Record) addUnserved(n *round) {
	for _, u := range n.plan.Unmet {
		if !n.more && !slices.ContainsFunc(r.unserved, func(o plan.Unmet) bool { return o.Text == u.Text }) {
			r.unserved = append(r.unserved, u)
		}
	}
	for _, p := range n.problems {
		if len(p.Missing) > 0 {
			r.missing[p.Step] = p.Missing
		}
	}
}

// Limits of the search for commands that a plan leaves out.
const (
	maxCommands   = 20 // of a question
	nearestWrites = 5  // tools checked for each command
)

// omittedCommands returns the commands of the question that a model's plan silently leaves out. It prefers a missed
// command to a false alarm. A command counts if it asks in English for an act such as sending or deleting; if some
// writing tool has its verb in the name and shares another word with it; and if no writing step and no unmet part
// shares a word with it.
func (s *queryState) omittedCommands() (out []plan.Unmet) {
	if s.record.Plan.Source != plan.SourceModel {
		return nil
	}
	tools := s.usable()
	catalog := s.router.opts.Ranking.Catalog(tools)
	var served wordSet
	for _, step := range s.record.Plan.Steps {
		tool, unknown := tools.Lookup(step.Tool)
		if unknown != nil || !tool.Reads() {
			served.add(step.Tool, string(step.Arguments), tool.Title, tool.Description, string(tool.InputSchema))
		}
	}
	for _, u := range s.record.Unmet {
		served.add(u.Text)
	}
	commands := slices.DeleteFunc(rules.Commands(s.q.Text), func(c rules.Command) bool { return !plan.Acts(c.Verb) })
	for _, c := range commands[:min(len(commands), maxCommands)] {
		var words wordSet
		words.add(c.Text)
		if !words.meets(served) && slices.ContainsFunc(catalog.Look(c.Text, nearestWrites), func(t plan.Tool) bool {
			return !t.Reads() && words.fits(t, search.Stem(c.Verb))
		}) {
			out = append(out, plan.Unmet{Text: strings.TrimRight(c.Text, ".! "), Reason: plan.UnmetFailed})
		}
	}
	return out
}

// wordSet is a set of word stems without stop words.
type wordSet map[string]bool

func (w *wordSet) add(parts ...string) {
	if *w == nil {
		*w = wordSet{}
	}
	for _, text := range parts {
		for _, word := range texts.Words(text) {
			if !search.IsStopWord(word) {
				(*w)[search.Stem(word)] = true
			}
		}
	}
}

// meets reports whether two sets share a word.
func (w wordSet) meets(other wordSet) bool {
	for word := range w {
		if other[word] {
			return true
		}
	}
	return false
}

// fits reports whether a tool's name has the verb of a command, and the tool also shares another word with it.
func (w wordSet) fits(t plan.Tool, verb string) bool {
	var name, about wordSet
	name.add(t.Tool)
	about.add(t.Tool, t.Description)
	delete(about, verb)
	return name[verb] && w.meets(about)
}
