package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// freeText are what parameters are called that take words as they are, whatever the words mean.
var freeText = stems(`content text message body note comment prompt command instruction sentence phrase description caption answer input statement
review summary transcript paragraph`)

// labelledText finds text that the question marks as a value by the name of a parameter, and that goes on to the end of
// its sentence: "with content go to sleep", "the text: to be or not", or, before the name, "using the echo command".
func (f *filler) labelledText(q param) []candidate {
	if len(q.nameStems) == 0 || !freeText[q.nameStems[len(q.nameStems)-1]] {
		return nil
	}
	label := q.nameStems[len(q.nameStems)-1]
	var out []candidate
	for i, t := range f.r.tokens {
		switch {
		case slices.Contains(t.stems, label):
			out = append(out, f.after(q, i)...)
			out = append(out, f.before(q, i)...)
		case t.text == ":" && f.r.announces(i):
			out = append(out, f.span(q, i+1, f.r.sentenceEnd(i+1))...)
		}
	}
	return out
}

// instruments introduce what is used or contained.
var instruments = set("with using through via by containing run execute")

// after is the text that follows the label at token i.
func (f *filler) after(q param, i int) []candidate {
	r := f.r
	start := i + 1
	if start < len(r.tokens) && (r.tokens[start].text == ":" || r.tokens[start].text == "-") {
		return f.span(q, start+1, r.sentenceEnd(start+1))
	}
	lead := i - 1
	for lead >= 0 && (r.tokens[lead].is("the", "a", "an", "this", "exact", "following") || f.labels(param{}, r.tokens[lead])) {
		lead--
	}
	if lead < 0 || !instruments[r.tokens[lead].lower] || start == len(r.tokens) || r.tokens[start].punct() || cueWords[r.tokens[start].lower] {
		return nil
	}
	return f.span(q, start, r.sentenceEnd(start))
}

// before is the text between a word such as "using" and the label at token i, where nothing follows the label.
func (f *filler) before(q param, i int) []candidate {
	r := f.r
	if i+1 < len(r.tokens) && !r.tokens[i+1].punct() && !cueWords[r.tokens[i+1].lower] {
		return nil
	}
	for lead := i - 1; lead >= 0 && i-lead < 12; lead-- {
		if instruments[r.tokens[lead].lower] && lead+1 < i && r.tokens[lead+1].is("the", "this") {
			return f.span(q, lead+2, i)
		}
	}
	return nil
}

// announces reports whether the colon at token i introduces what it is about: "the following words verbatim: …".
func (r reading) announces(i int) bool {
	for j := i - 1; j >= 0 && i-j <= 4; j-- {
		if r.tokens[j].is("following", "verbatim") {
			return true
		}
	}
	return false
}

// sentenceEnd returns the token that ends the sentence which token i is in.
func (r reading) sentenceEnd(i int) int {
	for ; i < len(r.tokens); i++ {
		if t := r.tokens[i]; (t.text == "." || t.text == "?" || t.text == "!") && (i+1 == len(r.tokens) || r.tokens[i+1].start > t.end) {
			break
		}
	}
	return i
}

// span makes the tokens [start,end) a candidate, unless they are a quotation, which is one already.
func (f *filler) span(q param, start, end int) []candidate {
	if start >= end || quoteMarks[f.r.tokens[start].text] != "" || end-start == 1 && search.IsStopWord(f.r.tokens[start].lower) {
		return nil
	}
	text := strings.TrimSpace(f.r.between(start, end))
	m := mention{kind: kindPhrase, start: start, end: end, text: text}
	return []candidate{{text, 2.4 + f.cue(q, m), m}}
}
