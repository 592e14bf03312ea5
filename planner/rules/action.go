package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// changes are verbs that ask for something to be changed. Who asks for one of them is not served by a tool for another,
// nor by one that only looks: "delete all text files" is not answered by listing them.
var changes = stems(`add append archive assign cancel clear close create delete deploy disable edit enable erase install insert modify move
register remove rename replace reschedule reset restart schedule stop terminate uninstall unlock update upgrade upload`)

// conflicts reports whether a question opens with the request for a change of which the tool says nothing and that is
// no part of an argument ("add 17 and 25").
func (p *Planner) conflicts(r reading, f *frame, fill filling) bool {
	for i, t := range r.tokens {
		if t.stop() || i > 12 {
			continue
		}
		if len(t.stems) != 1 || !changes[t.stems[0]] || fill.uses(i) > 0 {
			return false // what comes first is no such request
		}
		return !slices.ContainsFunc([]map[string]bool{f.words, f.labels}, func(words map[string]bool) bool { return p.spoken(words, t.stems[0]) })
	}
	return false
}

// spoken reports whether words have a stem, one related to it, or one that contains it ("uploader").
func (p *Planner) spoken(words map[string]bool, stem string) bool {
	if words[stem] {
		return true
	}
	for w := range words {
		if p.related(w, stem) || len(stem) >= 4 && strings.HasPrefix(w, stem) || !search.IsStopWord(w) && len(w) >= 5 && strings.HasPrefix(stem, w) {
			return true
		}
	}
	return false
}
