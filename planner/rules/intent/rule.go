package intent

import "strings"

// rule recognises an act by the words a clause begins with. Fillers between the words do not count.
type rule struct {
	act   Act
	items []item
}

type item struct {
	words  map[string]bool
	suffix string // of any word
	verb   bool   // any word, which becomes the verb
	final  bool   // the last word of the clause, which becomes the verb
	gap    bool   // any words of the same phrase
	any    bool   // any word
	end    bool   // the end of the clause
	maybe  bool   // may be left out
}

// maxGap bounds the words that a gap stands for, and the fillers in a row.
const maxGap = 12

// maxMain bounds the words of a clause that are searched for its end.
const maxMain = 200

// retract is the act of rules for clauses that take back what was asked for: "never mind".
const retract = Statement + 1

// rules compiles lines such as "Negated: do|does not; never". An item is a word, alternatives, $class, "V" (the verb),
// "F" (the verb at the end), "~ing" (a suffix), ".." (a gap) or "END"; "?" behind it makes it optional.
func rules(classes map[string]string, lines string) []rule {
	acts := map[string]Act{"Retract": retract}
	for a := Unknown; a <= Statement; a++ {
		acts[a.String()] = a
	}
	var out []rule
	for line := range strings.Lines(lines) {
		name, patterns, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		for pattern := range strings.SplitSeq(patterns, ";") {
			r := rule{act: acts[name]}
			for text := range strings.FieldsSeq(pattern) {
				r.items = append(r.items, compile(classes, text))
			}
			if len(r.items) > 0 {
				out = append(out, r)
			}
		}
	}
	return out
}

func compile(classes map[string]string, text string) (i item) {
	text, i.maybe = strings.CutSuffix(text, "?")
	switch suffix, ok := strings.CutPrefix(text, "~"); {
	case ok:
		i.suffix = suffix
		i.verb = true
	case text == "V":
		i.verb = true
	case text == "$any":
		i.any = true
	case text == "F":
		i.final = true
	case text == "..":
		i.gap = true
	case text == "END":
		i.end = true
	default:
		i.words = map[string]bool{}
		for w := range strings.SplitSeq(text, "|") {
			if class, ok := strings.CutPrefix(w, "$"); ok {
				for member := range strings.FieldsSeq(classes[class]) {
					i.words[member] = true
				}
				continue
			}
			i.words[w] = true
		}
	}
	return i
}

// match reports whether the tokens [at,end) begin with the items, and returns the index of the verb, or -1, and the index
// after the match.
func (s *line) match(items []item, at, end int) (verb, next int, ok bool) {
	verb = -1
	for k, i := range items {
		if i.gap {
			for skip := at; skip < min(end, at+maxGap) && (s.t[skip].kind < pause || s.lex.language == german); skip++ {
				if v, n, ok := s.match(items[k+1:], skip, end); ok {
					return v, n, true
				}
			}
			return -1, at, false
		}
		if i.final {
			v := s.finalVerb(at, end)
			return v, at, v >= 0
		}
		for skipped := 0; skipped < maxGap && k > 0 && at < end && s.skips(i, s.t[at]); skipped++ {
			at++
		}
		for skipped := 0; i.verb && skipped < maxGap && at < end && s.t[at].is(clitics); skipped++ {
			at++
		}
		switch {
		case i.end && (at == end || s.t[at].kind >= pause):
		case at < end && s.fits(i, s.t[at]):
			if i.verb {
				verb = at
			}
			at++
		case !i.maybe:
			return -1, at, false
		}
	}
	return verb, at, true
}

// skips reports whether a token may stand in front of an item: an adverb, or a comma before a word that must be there.
func (s *line) skips(i item, t token) bool {
	if t.is(fillers) {
		return i.verb || !s.fits(i, t)
	}
	return t.kind == pause && !i.end && !i.maybe && !i.verb
}

func (s *line) fits(i item, t token) bool {
	switch {
	case t.kind != word:
		return false
	case i.verb:
		return strings.HasSuffix(t.lower, i.suffix) && !t.is(dets|subjects|preps|negation|wh)
	case i.any:
		return true
	}
	return i.words[t.lower]
}
