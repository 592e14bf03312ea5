package router

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/segment"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

// Limits of the search for commands that a plan leaves out.
const (
	maxCommands   = 20 // of a question
	nearestWrites = 5  // tools checked for each command
)

// omitted returns the commands of the question that a model's plan silently leaves out. It prefers a missed command
// to a false alarm. A command counts if it asks in English for an act such as sending or deleting; if some writing
// tool has its verb in the name and shares another word with it; and if no writing step and no unmet part shares a
// word with it.
func (s *rounds) omitted() (out []plan.Unmet) {
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

func (w *wordSet) add(texts ...string) {
	if *w == nil {
		*w = wordSet{}
	}
	for _, text := range texts {
		for _, word := range segment.Words(text) {
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
