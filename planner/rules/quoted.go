package rules

import (
	"strings"
	"unicode"
)

// quoted finds what stands in quotation marks.
func (r reading) quoted() []mention {
	var out []mention
	for i := 0; i < len(r.tokens); i++ {
		closing, ok := quoteMarks[r.tokens[i].text]
		if !ok {
			continue
		}
		closed := false
		for j := i + 1; j < len(r.tokens) && j-i < 120; j++ {
			if r.tokens[j].text != closing || closing == "'" && r.apostrophe(j) {
				continue
			}
			if j > i+1 {
				out = append(out, mention{kind: kindQuoted, start: i + 1, end: j, text: strings.TrimSpace(r.between(i+1, j))})
			}
			i = j
			closed = true
			break
		}
		if end := len(r.tokens); !closed && closing == "\"" && end-i > 2 && end-i < 60 && i > 0 {
			if last := r.tokens[end-1]; last.text == "." && end-1 > i+1 && r.text[last.end:] != "" {
				end--
			}
			out = append(out, mention{kind: kindQuoted, start: i + 1, end: end, text: strings.TrimSpace(r.between(i+1, end))})
			break
		}
	}
	return out
}

var quoteMarks = map[string]string{"\"": "\"", "'": "'", "“": "”", "‘": "’", "`": "`", "«": "»"}

// apostrophe reports whether the mark at token j belongs to a plural ("the players' names") rather
// than closing a quotation.
func (r reading) apostrophe(j int) bool {
	t := r.tokens[j]
	if j+1 >= len(r.tokens) || t.start == 0 || !unicode.IsLetter(rune(r.text[t.start-1])) {
		return false
	}
	next := r.tokens[j+1]
	return r.text[t.start-1] == 's' && next.start > t.end && !next.punct() && r.opensLater(j)
}

// opensLater reports whether another closing mark follows j with no opening one before it.
func (r reading) opensLater(j int) bool {
	for k := j + 1; k < len(r.tokens); k++ {
		if r.tokens[k].text == "'" {
			return r.tokens[k].start > 0 && !unicode.IsSpace(rune(r.text[r.tokens[k].start-1]))
		}
	}
	return false
}
