package rules

import "strings"

// kind says what a stretch of the question looks like.
type kind int

const (
	kindPhrase kind = iota // content words without other marks
	kindProper             // capitalised words
	kindQuoted
	kindCode // an identifier: letters with digits, snake_case, …
	kindNumber
	kindDate
	kindTime
	kindEmail
	kindURL
	kindPath
	kindList    // several of one kind: items
	kindFormula // a calculation
)

// mention is a stretch of the question that may be an argument.
type mention struct {
	kind       kind
	start, end int    // tokens [start,end)
	text       string // as an argument would have it, without quotation marks
	number     number
	date       date
	items      []mention // of a list
	bracketed  bool      // a list written in brackets
	joined     bool      // a list with "and" or "or"
	prep       string    // the preposition or other cue word in front, or ""
}

func (m mention) overlaps(o mention) bool { return m.start < o.end && o.start < m.end }

// maxMentions bounds the mentions of one reading.
const maxMentions = 100

// reading is a question, read once.
type reading struct {
	text     string
	tokens   []token
	mentions []mention
	today    date // the day the question names as today; zero if it does not
}

// read finds everything in a question that may be an argument. Later kinds give way to earlier ones
// where they overlap: what is quoted is not read for numbers.
func read(text string) reading {
	r := reading{text: text, tokens: tokenize(text)}
	taken := make([]bool, len(r.tokens)+1)
	add := func(ms []mention) {
		for _, m := range ms {
			free := true
			for i := m.start; i < m.end; i++ {
				free = free && !taken[i]
			}
			if !free || len(r.mentions) == maxMentions {
				continue
			}
			for i := m.start; i < m.end; i++ {
				taken[i] = true
			}
			m.prep = r.cue(m.start)
			r.mentions = append(r.mentions, m)
		}
	}
	add(r.quoted())
	add(r.addresses())
	add(r.dates())
	add(r.numbers())
	add(r.propers(taken))
	add(r.uncapitalised(taken))
	add(r.codes())
	add(r.phrases(taken))
	r.lists()
	r.mentions = append(r.mentions, r.formulas()...)
	return r
}

// unwrap takes off quotation marks around the whole question.
func unwrap(text string) string {
	text = strings.TrimSpace(text)
	for _, mark := range []string{"\"", "'"} {
		if n := len(text); n > 20 && strings.HasPrefix(text, mark) && strings.HasSuffix(text, mark) && strings.Count(text, mark) == 2 {
			return text[1 : n-1]
		}
	}
	return text
}

// cue returns the preposition, or word like it, in front of token i, articles skipped.
func (r reading) cue(i int) string {
	for i--; i >= 0; i-- {
		t := r.tokens[i]
		switch {
		case t.is("the", "a", "an", "my", "our", "your", "his", "her", "their", "its", "this", "that", "some", "any") || t.is("\"", "'", "“", "‘", "(", ":"):
			continue
		case cueWords[t.lower]:
			return t.lower
		}
		return ""
	}
	return ""
}

// between returns the text of tokens [start,end) as written.
func (r reading) between(start, end int) string {
	if start >= end {
		return ""
	}
	return r.text[r.tokens[start].start:r.tokens[end-1].end]
}

func (r reading) stemsOf(m mention) []string {
	var out []string
	for _, t := range r.tokens[m.start:m.end] {
		out = append(out, t.stems...)
	}
	return out
}
