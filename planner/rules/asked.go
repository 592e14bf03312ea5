package rules

import (
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// defined reports whether a sentence says what a mention is, rather than speaking of what is known: "the title should
// be …", "the budget is …".
func (r reading) defined(m mention) bool {
	for i := m.end; i < len(r.tokens) && i < m.end+2; i++ {
		if r.tokens[i].is("is", "are", "was", "were", "be", "should", "will", "must") || r.tokens[i].text == ":" || r.tokens[i].text == "=" {
			return true
		}
	}
	return false
}

// introduced reports whether a clause says which thing a mention is, so that it is none that is known: "the patient with
// the ID 7", "the lyrics of a song".
func (r reading) introduced(m mention) bool {
	if m.end >= len(r.tokens) {
		return false
	}
	t := r.tokens[m.end]
	if t.is("with", "whose") {
		for i := m.end + 1; i < len(r.tokens) && i <= m.end+4; i++ {
			if anyStem(r.tokens[i], identifying) || r.tokens[i].is("name", "title") {
				return true
			}
		}
	}
	return t.is("of", "named", "called", "titled") || slices.ContainsFunc(r.mentions, func(o mention) bool {
		return (o.kind == kindQuoted || o.kind == kindCode && !anyStem(r.tokens[o.start], identifying)) && (o.start == m.end || o.start == m.end+1 && quoteMarks[t.text] != "")
	})
}

// asked reports whether a clause asks for a mention rather than saying what to do with it: "the price" is asked for in
// "provide the color and the price", "including the price", "information about the price", but not in "encrypt the price"
// and "a tip on the price".
func (r reading) asked(m mention) bool {
	for i := m.start - 1; i >= 0; i-- {
		t := r.tokens[i]
		switch {
		case t.is("including", "include", "includes", "such", "like", "me", "us", "need", "want", "know", "is", "are", "what"):
			return true
		case i > 0 && cueWords[t.lower] && (r.tokens[i-1].is("me", "us") || anyStem(r.tokens[i-1], genericWords)):
			return true
		case asking[t.lower]:
			return true
		case search.RequestVerb(t.lower), cueWords[t.lower] && !t.is("and", "or"):
			return false
		}
	}
	return true
}

// asking are the verbs whose object is what is asked for.
var asking = set(`calculate check collect compose compute create describe design detect determine discover display draft draw estimate evaluate examine explain explore extract fetch
find forecast gather generate get give identify inspect know learn list locate look make measure monitor obtain offer perform pick predict prepare present produce provide pull
query rank read receive recommend record report request retrieve return review run schedule search see select show simulate specify suggest supply tell track view watch`)
