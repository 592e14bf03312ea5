package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// anaphor is a stretch of a clause that takes up what an earlier call returned: "the ID from the previous response", "the
// translated text", "the artist mentioned earlier", "encrypt it".
type anaphor struct {
	span mention
	head []string // stems of the noun that says what of the result is meant; none where all of it is
	call *call
}

// anaphors finds where a clause takes up results of earlier calls.
func (r reading) anaphors(earlier []*call) []anaphor {
	if len(earlier) == 0 {
		return nil
	}
	var out []anaphor
	for i := range r.tokens {
		for _, find := range []func(int, []*call) (anaphor, bool){r.previous, r.attributed, r.relative, r.characterised, r.pronoun} {
			if a, ok := find(i, earlier); ok && (len(out) == 0 || a.span.start >= out[len(out)-1].span.end) {
				out = append(out, a)
				break
			}
		}
	}
	return out
}

var (
	// before are adjectives of what came before, if it is speech or work that they speak of: "the previous response", not "the
	// previous year".
	before    = set("previous prior preceding earlier last above former")
	discourse = stems("call response step result output request query reply answer task operation action search analysis lookup")

	// participles say that a thing came out of something earlier: "the returned ID".
	participles = set("obtained returned retrieved received resulting mentioned generated resulted computed produced fetched above")
	// adverbs say the same behind a participle: "the artist mentioned earlier".
	adverbs     = set("earlier above previously before")
	definite    = set("the that this these those its their")
	resultNouns = stems("result output response answer")
	sums        = stems("amount value sum figure")
)

// previous is an anaphor such as "the word obtained from the previous analysis" at its word "previous".
func (r reading) previous(i int, earlier []*call) (anaphor, bool) {
	if !before[r.tokens[i].lower] {
		return anaphor{}, false
	}
	for end := i + 1; end < len(r.tokens) && end <= i+3 && !r.tokens[end].stop(); end++ {
		if anyStem(r.tokens[end], discourse) {
			return r.headed(i, end+1, earlier[len(earlier)-1]), true
		}
	}
	return anaphor{}, false
}

// attributed is an anaphor such as "the case number from the judicial decisions", "the artist mentioned earlier" at its
// preposition or adverb. What a thing is from must be what an earlier call is about.
func (r reading) attributed(i int, earlier []*call) (anaphor, bool) {
	t := r.tokens[i]
	said := i > 0 && past(r.tokens[i-1])
	switch {
	case said && adverbs[t.lower]:
		a := r.headed(i, i+1, nil)
		a.call = returnedBy(a.head, earlier)
		return a, len(a.head) > 0
	case !t.is("from") && !(said && t.is("in", "by")):
		return anaphor{}, false
	}
	start := i + 1
	if said && start < len(r.tokens) && r.tokens[start].is("it", "them", "there") {
		a := r.headed(i, start+1, earlier[len(earlier)-1])
		return a, len(a.head) > 0
	}
	if start+1 >= len(r.tokens) || !definite[r.tokens[start].lower] {
		return anaphor{}, false
	}
	end := r.nounEnd(start + 1)
	source := slices.DeleteFunc(slices.Clone(r.tokens[start+1:end]), func(t token) bool { return participles[t.lower] })
	if len(source) == 0 || r.introduced(mention{start: start + 1, end: end}) {
		return anaphor{}, false
	}
	for _, c := range slices.Backward(earlier) {
		if !slices.ContainsFunc(source, func(t token) bool { return !c.about(t) }) {
			a := r.headed(i, end, c)
			return a, len(a.head) > 0
		}
	}
	return anaphor{}, false
}

// relative is an anaphor such as "the ID it returned", "the number that you get back" at the pronoun in front of the verb.
func (r reading) relative(i int, earlier []*call) (anaphor, bool) {
	if i+1 >= len(r.tokens) || !r.tokens[i].is("it", "you", "we", "i", "that", "which") || !r.tokens[i+1].is("return", "returns", "returned", "get", "got", "gives", "gave", "receive", "received", "obtained") {
		return anaphor{}, false
	}
	end := i + 2
	if end < len(r.tokens) && r.tokens[end].is("back") {
		end++
	}
	a := r.headed(i, end, nil)
	a.call = returnedBy(a.head, earlier)
	return a, len(a.head) > 0
}

// characterised is an anaphor such as "the obtained author value", "the previously recommended book", "the translated text"
// at its participle.
func (r reading) characterised(i int, earlier []*call) (anaphor, bool) {
	start := i
	for start > 0 && r.tokens[start-1].is("previously", "just") {
		start--
	}
	if start == 0 || !definite[r.tokens[start-1].lower] && start == i {
		return anaphor{}, false
	}
	end := r.nounEnd(i + 1)
	if end == i+1 || !past(r.tokens[i]) {
		return anaphor{}, false
	}
	a := anaphor{span: r.phraseOf(start, end), head: r.stemsOf(mention{start: i + 1, end: end})}
	made := slices.DeleteFunc(slices.Clone(earlier), func(c *call) bool {
		return !slices.ContainsFunc(r.tokens[i].stems, func(s string) bool { return slices.Contains(c.frame.name, s) })
	})
	switch {
	case len(made) > 0:
		a.call = returnedBy(a.head, made)
	case participles[r.tokens[i].lower] || start < i:
		a.call = returnedBy(a.head, earlier)
	}
	return a, a.call != nil
}

// pronoun is an anaphor such as "it" in "translate it" or "the result" in "the square of the result".
func (r reading) pronoun(i int, earlier []*call) (anaphor, bool) {
	if !r.standsFor(i) {
		return anaphor{}, false
	}
	return anaphor{span: r.phraseOf(i, i+1), call: earlier[len(earlier)-1]}, true
}

// headed is the anaphor that begins with the noun in front of token i, over prepositions and participles, and ends before
// token end.
func (r reading) headed(i, end int, made *call) anaphor {
	at := i
	for at > 0 && !r.tokens[at-1].punct() && (r.tokens[at-1].stop() || past(r.tokens[at-1])) && i-at < 4 {
		at--
	}
	start := at
	for start > 0 && at-start < 3 && !r.tokens[start-1].stop() && !search.RequestVerb(r.tokens[start-1].lower) {
		start--
	}
	return anaphor{span: r.phraseOf(start, end), head: r.stemsOf(mention{start: start, end: at}), call: made}
}

func (r reading) phraseOf(start, end int) mention {
	return mention{kind: kindPhrase, start: start, end: end, text: r.between(start, end)}
}

// nounEnd returns the token after the run of content words that begins at token i.
func (r reading) nounEnd(i int) int {
	for i < len(r.tokens) && !r.tokens[i].stop() {
		i++
	}
	return i
}

// past reports whether a word may be a participle.
func past(t token) bool {
	return participles[t.lower] || t.is("found", "given", "named", "sent") || len(t.lower) > 4 && strings.HasSuffix(t.lower, "ed")
}

// returnedBy is the latest call that returns what a noun says, or else the latest.
func returnedBy(head []string, earlier []*call) *call {
	for _, c := range slices.Backward(earlier) {
		if slices.ContainsFunc(c.frame.outputs, func(o output) bool { return speaks(head, o.stems) }) {
			return c
		}
	}
	return earlier[len(earlier)-1]
}

// speaks reports whether two nouns have a word in common that says more than "number" or "value".
func speaks(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return !genericWords[s] && slices.Contains(b, s) })
}

// about reports whether a word says what a call does or returns, or nothing in particular.
func (c *call) about(t token) bool {
	return slices.ContainsFunc(t.stems, func(s string) bool {
		return genericWords[s] || discourse[s] || slices.ContainsFunc(c.frame.name, func(n string) bool { return kindred(s, n) }) ||
			slices.ContainsFunc(c.frame.outputs, func(o output) bool { return slices.Contains(o.stems, s) })
	})
}

// kindred reports whether two stems are one word or of one family: "registr" and "regist".
func kindred(a, b string) bool {
	return a == b || len(a) >= 5 && len(b) >= 5 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

func anyStem(t token, words map[string]bool) bool {
	return slices.ContainsFunc(t.stems, func(s string) bool { return words[s] })
}

// pronouns take up what was said before.
var pronouns = set("it them this that these those")

// standsFor reports whether token i takes up a result: "the square of the result", "its length", or a pronoun that is an
// object ("translate it", "of these") and not the companion of a noun ("this city"). Where something else is named before
// it in the clause, it takes up that.
func (r reading) standsFor(i int) bool {
	t := r.tokens[i]
	if i == 0 {
		return false
	}
	before := r.tokens[i-1]
	if anyStem(t, resultNouns) {
		return definite[before.lower] && !r.asked(mention{start: i, end: i + 1})
	}
	if anyStem(t, sums) && before.is("that", "this", "these", "those", "total") {
		return true
	}
	if slices.ContainsFunc(r.tokens[:i], func(t token) bool { return !t.stop() && !search.RequestVerb(t.lower) }) {
		return false
	}
	if t.is("its", "their") {
		return !r.asked(mention{start: i, end: i + 1})
	}
	if asking[before.lower] || !pronouns[t.lower] || i+1 < len(r.tokens) && !r.tokens[i+1].punct() && !r.tokens[i+1].stop() || before.is("after", "before", "since", "until", "than", "like") {
		return false
	}
	return cueWords[before.lower] && !before.is("is", "are", "was", "were", "and", "or") || search.RequestVerb(before.lower) || !before.stop() && !before.punct()
}
