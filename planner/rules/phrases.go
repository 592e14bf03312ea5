package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// phrase returns what ordinary words could give a string parameter: the words that the tool itself
// does not explain.
func (f *filler) phrase(q param, c class, m mention) []candidate {
	if c == classCurrency {
		for i := m.start; i < m.end; i++ {
			if code := currencyCode(f.r.tokens[i].lower); code != "" {
				t := mention{kind: kindPhrase, start: i, end: i + 1, text: f.r.tokens[i].text, prep: f.r.cue(i)}
				return []candidate{{code, 2.4 + f.cue(q, t) + roleScore(q, t), t}}
			}
		}
		return nil
	}
	m = f.unexplained(q, m)
	start, end := m.start, m.end
	for start < end && deictic[f.r.tokens[start].lower] {
		start++
	}
	for end > start && deictic[f.r.tokens[end-1].lower] {
		end--
	}
	if start == end {
		return nil
	}
	t := mention{kind: kindPhrase, start: start, end: end, text: f.r.between(start, end), prep: f.r.cue(start)}
	score := f.cue(q, t) + roleScore(q, t) + 0.4
	switch c {
	case classEmail, classURL:
		return nil
	case classDate, classTime, classID, classPath:
		if score < 2.5 {
			return nil
		}
		score--
	case classPlace:
		score -= 0.3
	case classQuery:
		score += 0.6 + topicScore(q, t)
	}
	if t.prep != "" && t.prep != "and" && t.prep != "or" {
		score += 0.4
	}
	if t.prep != "" && q.required && f.frame.required == 1 {
		score += 0.3
	}
	if f.generic(t) {
		score -= 0.8
	}
	if q.exemplifies(t.text) {
		score += 2
	}
	return []candidate{{t.text, score, t}}
}

// topicScore is what a mention gains as the topic of a search: "articles about climate change".
func topicScore(q param, m mention) float64 {
	return match(q.required && topicPreps[m.prep], 0.8, 0)
}

// topicPreps stand before what something is about.
var topicPreps = set("about on regarding concerning")

// unexplained cuts words off both ends of a mention that only say which tool or parameter is meant.
func (f *filler) unexplained(q param, m mention) mention {
	for m.start < m.end && f.explains(q, f.r.tokens[m.start]) {
		m.start++
	}
	for m.end > m.start && f.explains(q, f.r.tokens[m.end-1]) && !(m.end-m.start > 1 && f.verbAsNoun(f.r.tokens[m.end-1])) {
		m.end--
	}
	m.text = f.r.between(m.start, m.end)
	return m
}

// deictic words point at something instead of naming it.
var deictic = set("previous returned obtained resulting retrieved mentioned specified given received response call api step called named titled located using including related based saying reading stating")

// generic reports whether words say nothing in particular.
func (f *filler) generic(m mention) bool {
	for _, s := range f.r.stemsOf(m) {
		if !genericWords[s] {
			return false
		}
	}
	return true
}

// explains reports whether a word says which tool or parameter is meant rather than what to give it.
func (f *filler) explains(q param, t token) bool {
	if slices.ContainsFunc(q.examples, func(e string) bool { return strings.Contains(strings.ToLower(e), t.lower) }) {
		return false
	}
	if search.RequestVerb(t.lower) {
		return true
	}
	for _, s := range t.stems {
		if f.frame.words[s] || f.frame.labelStems[s] {
			return true
		}
		for _, n := range f.frame.name {
			if f.p.thesaurus.Related(s, n) {
				return true
			}
		}
	}
	return false
}

// verbAsNoun reports whether a request verb at the end of a phrase is a noun that the tool says nothing of:
// "climate change".
func (f *filler) verbAsNoun(t token) bool {
	return search.RequestVerb(t.lower) && !slices.ContainsFunc(t.stems, func(s string) bool { return f.frame.words[s] || f.frame.labelStems[s] })
}
