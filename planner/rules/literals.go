package rules

import (
	"encoding/json"
	"strings"
)

// maxLiteral bounds the length of a literal in the question.
const maxLiteral = 4000

// literals returns the JSON-like values written out in the question ({'math': 90}, [[1, 2], [3, 4]])
// that have a parameter's type.
func (f *filler) literals(q param) []candidate {
	open, closing := "[", "]"
	switch {
	case q.kind == "object":
		open, closing = "{", "}"
	case q.kind != "array" || q.items == nil || q.items.kind != "array" && q.items.kind != "object":
		return nil
	}
	var out []candidate
	for i := 0; i < len(f.r.tokens); i++ {
		if f.r.tokens[i].text != open {
			continue
		}
		depth := 0
		for j := i; j < len(f.r.tokens); j++ {
			switch f.r.tokens[j].text {
			case open:
				depth++
			case closing:
				depth--
			}
			if depth > 0 {
				continue
			}
			m := mention{kind: kindList, start: i, end: j + 1, text: f.r.between(i, j+1), bracketed: true}
			if v, ok := parseLiteral(m.text); ok && q.accepts(v) {
				out = append(out, candidate{v, 3 + f.cue(q, m), m})
			}
			i = j
			break
		}
		if depth > 0 {
			break
		}
	}
	return out
}

func parseLiteral(s string) (any, bool) {
	if len(s) > maxLiteral {
		return nil, false
	}
	var v any
	if json.Unmarshal([]byte(s), &v) == nil {
		return v, true
	}
	if json.Unmarshal([]byte(strings.ReplaceAll(s, "'", "\"")), &v) == nil {
		return v, true
	}
	return nil, false
}
