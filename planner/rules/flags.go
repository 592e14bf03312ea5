package rules

import (
	"slices"
	"strings"
)

// flagWords say in a boolean's name that it is one; they need not be in the question.
var flagWords = set("is ha includ with enabl us onli return show get should allow need want requir do can flag option a the of in for be are mode")

// boolean decides a flag by the words of its name: named in the question it is true, under a
// negation false.
func (f *filler) boolean(q param) (candidate, bool) {
	var content []string
	for _, s := range q.nameStems {
		if !flagWords[s] {
			content = append(content, s)
		}
	}
	if len(content) == 0 {
		return candidate{}, false
	}
	hits, at := 0, -1
	for _, s := range content {
		for i, t := range f.r.tokens {
			if !t.punct() && slices.ContainsFunc(t.stems, func(w string) bool { return w == s || abbreviates(s, w) || abbreviates(w, s) }) {
				hits++
				at = max(at, i)
				break
			}
		}
	}
	if at < 0 || float64(hits) < 0.6*float64(len(content)) {
		return candidate{}, false
	}
	value := true
	for j := at - 1; j >= 0 && j > at-5; j-- {
		t := f.r.tokens[j]
		if t.text == "." || t.text == "," || t.is("but", "and") {
			break
		}
		if negations[t.lower] || strings.HasSuffix(t.lower, "n't") {
			value = false
		}
	}
	return candidate{value, 1.5 + float64(hits)*0.5, mention{kind: kindPhrase, start: at, end: at + 1, text: f.r.tokens[at].text}}, true
}

var negations = set("without no not don't dont exclude excluding except never neither nor isn't disable skip ignore")

// flagEnum reports whether an enumeration is a boolean spelled as strings.
func (p param) flagEnum() bool {
	return p.spellFlag(true) != nil && p.spellFlag(false) != nil
}

func (p param) spellFlag(v bool) any {
	for _, e := range p.enum {
		if s, ok := e.(string); ok && (strings.EqualFold(s, "true") && v || strings.EqualFold(s, "false") && !v) {
			return s
		}
	}
	return nil
}
