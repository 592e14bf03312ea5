package rules

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// Questions often want one tool several times in a row: "the tax on $30 in Ohio, $52 in Texas and $11 in Utah", "the first
// car … at 5 m/s, the second car … at 7 m/s". Each time something stands where the first time did: an anchor.

// recurring turns a call into one for each time that a text goes through what the tool requires.
func (c *chooser) recurring(one *call, r reading) []*call {
	best := []*call{one}
	filled, tried := 0, 0
	for _, q := range one.frame.shape.params {
		anchors := c.anchors(one, r, q)
		if len(anchors) < 2 || len(anchors) > maxCalls {
			continue
		}
		if tried++; tried > maxAnchored {
			break
		}
		if calls, n := c.occasions(one, r, q, anchors); n > filled {
			best, filled = calls, n
		}
	}
	return best
}

// maxAnchored bounds how many parameters a text is cut by.
const maxAnchored = 4

// anchors are the mentions that could be a required argument as well as the one that is it, in the order of the text: alike
// in kind and in what introduces them, and nothing that another parameter takes.
func (c *chooser) anchors(one *call, r reading, q param) []mention {
	at, ok := one.filling.used[q.name]
	if !ok || !q.required || q.picks() || q.kind == "object" {
		return nil
	}
	f := &filler{p: c.p, r: r, frame: one.frame, today: c.today}
	anchors := []mention{at}
	values := []any{one.filling.args[q.name]}
	for _, m := range r.mentions {
		if !r.parallel(at, m) || slices.ContainsFunc(anchors, m.overlaps) || one.filling.usesOther(q.name, m) {
			continue
		}
		options := f.candidates(q, m)
		if len(options) == 0 || options[0].score < max(takeRequired, one.filling.scores[q.name]-alikeWithin) ||
			slices.ContainsFunc(values, func(v any) bool { return reflect.DeepEqual(v, options[0].value) }) {
			continue
		}
		anchors = append(anchors, m)
		values = append(values, options[0].value)
	}
	slices.SortFunc(anchors, func(a, b mention) int { return cmp.Compare(a.start, b.start) })
	return anchors
}

// alikeWithin is how much worse than the first a further anchor may fit.
const alikeWithin = 1.0

// parallel reports whether two mentions are of one kind and introduced in the same way: by the same preposition or noun, or
// measured in the same unit.
func (r reading) parallel(a, b mention) bool {
	if a.kind != b.kind || a.kind == kindPhrase || a.kind == kindFormula || a.number.spelled || b.number.spelled {
		return false
	}
	if a.kind == kindNumber && ((a.number.currency == "") != (b.number.currency == "") || a.number.percent != b.number.percent || unitOf(a.number.unit) != unitOf(b.number.unit)) {
		return false
	}
	return a.prep != "" && a.prep == b.prep || a.kind == kindNumber && (a.number.currency != "" || unitOf(a.number.unit) != "") || r.noun(a) != "" && r.noun(a) == r.noun(b)
}

// noun is the stem of the word in front of a mention, over quotation marks.
func (r reading) noun(m mention) string {
	for i := m.start - 1; i >= 0; i-- {
		if t := r.tokens[i]; !t.punct() {
			return t.stems[0]
		}
	}
	return ""
}

// occasions cuts a text between anchors and fills the tool from each part. What a part leaves open is as it was the time
// before, or as the whole text says. It returns how many required parameters the parts fill themselves, 0 where they are
// not as many calls.
func (c *chooser) occasions(one *call, r reading, anchor param, anchors []mention) ([]*call, int) {
	var calls []*call
	start, filled := 0, 0
	last := one.filling.args
	for k := range anchors {
		end := len(r.tokens)
		if k+1 < len(anchors) {
			if end = r.seam(anchors[k].end, anchors[k+1].start); end == 0 {
				return nil, 0
			}
		}
		part := read(r.between(start, end))
		if k > 0 && (part.continues() || c.p.elsewhere(one.frame, part)) {
			return nil, 0
		}
		fill := (&filler{p: c.p, r: part, frame: one.frame, today: c.today}).fill(one.frame.shape.params)
		if _, ok := fill.used[anchor.name]; !ok || k > 0 && r.sentenceEnds(start) && r.sentenceOf(anchors[k]).requests() != r.sentenceOf(anchors[0]).requests() {
			return nil, 0
		}
		args := map[string]any{}
		for _, q := range one.frame.shape.params {
			v, ok := fill.args[q.name]
			_, said := fill.used[q.name]
			if q.required && said {
				filled++
			}
			if (!ok || !said || slices.Contains(fill.guessed, q.name)) && (q.required || q.picks()) {
				if q.required && one.filling.used[q.name].kind == anchors[0].kind {
					return nil, 0 // only half of a pair
				}
				if v2, ok2 := last[q.name]; ok2 {
					v, ok = v2, true
				}
			}
			if ok {
				args[q.name] = v
			} else if q.required {
				return nil, 0
			}
		}
		if slices.ContainsFunc(calls, func(o *call) bool { return reflect.DeepEqual(o.filling.args[anchor.name], args[anchor.name]) }) {
			return nil, 0
		}
		calls = append(calls, &call{frame: one.frame, filling: filling{args: args, scores: one.filling.scores, used: fill.used}, evidence: one.evidence})
		last = args
		start = end
	}
	return calls, filled
}

// seam returns where the text between two anchors is cut: after the last sentence that ends there, or else at the last
// comma or conjunction; 0 where there is none.
func (r reading) seam(from, to int) int {
	at, sentence := 0, 0
	for i := from; i < to; i++ {
		t := r.tokens[i]
		switch {
		case t.text == "." || t.text == "?" || t.text == "!":
			sentence = i + 1
		case conjunctions[t.lower] || t.is("while", "versus", "vs", "but"):
			at = i + 1
		}
	}
	if sentence > 0 {
		return sentence
	}
	return at
}

// sentenceEnds reports whether a sentence ends before token i.
func (r reading) sentenceEnds(i int) bool {
	return i > 0 && r.tokens[i-1].is(".", "?", "!")
}

// sentenceOf is the sentence that a mention stands in, without mentions of its own.
func (r reading) sentenceOf(m mention) reading {
	start := m.start
	for start > 0 && !r.sentenceEnds(start) {
		start--
	}
	return reading{text: r.text, tokens: r.tokens[start:m.end]}
}

// requests reports whether a text opens with a request or a question rather than a statement.
func (r reading) requests() bool {
	for i, t := range r.tokens {
		switch {
		case i == 8:
			return false
		case search.RequestVerb(t.lower), t.is("what", "which", "who", "when", "where", "how", "can", "could", "would", "please", "need", "want", "i'd"):
			return true
		}
	}
	return false
}

// elliptical reports whether a request leaves out what the one before it said.
func (r reading) elliptical() bool {
	return slices.ContainsFunc(r.tokens, func(t token) bool {
		return t.is("same", "again", "another", "instead", "repeat", "likewise", "similarly")
	})
}

// continues reports whether a request is about the very thing that the one before it was about.
func (r reading) continues() bool {
	return !r.elliptical() && slices.ContainsFunc(r.tokens, func(t token) bool { return t.is("it", "them") })
}

// elsewhere reports whether what is to be the same, or another, is nothing that a tool knows: "sing the same song".
func (p *Planner) elsewhere(f *frame, r reading) bool {
	for i, t := range r.tokens {
		if !t.is("same", "another") {
			continue
		}
		if end := r.nounEnd(i + 1); end > i+1 && !anyStem(r.tokens[end-1], genericWords) && !anyStem(r.tokens[end-1], discourse) && !anyStem(r.tokens[end-1], occasionNouns) && p.knows(f, r.tokens[end-1]) == 0 {
			return true
		}
	}
	return false
}

// occasionNouns are what one time of several may be called.
var occasionNouns = stems("process procedure calculation scenario case occasion experiment round pair set group person individual")

// renewed is the call that a clause asks for of a tool that was called before: it says something else where the call had
// a value, and the rest too unless it says that it is the same. It is nil where the clause only says more about that call.
func (c *chooser) renewed(f *frame, r reading, earlier []*call) *call {
	same := r.elliptical()
	if !r.requests() || r.continues() || c.p.elsewhere(f, r) {
		return nil
	}
	fill := (&filler{p: c.p, r: r, frame: f, today: c.today}).fill(f.shape.params)
	for _, o := range slices.Backward(earlier) {
		if o.frame != f {
			continue
		}
		args := maps.Clone(o.filling.args)
		other := false
		for _, q := range f.shape.params {
			v, ok := fill.args[q.name]
			a, b := o.filling.used[q.name], fill.used[q.name]
			if !ok || slices.Contains(fill.guessed, q.name) || !q.picks() && (a.kind != b.kind || b.kind == kindPhrase) {
				if q.required && !q.picks() && !same {
					return nil
				}
				continue
			}
			other = other || (q.required || same) && !q.picks() && !reflect.DeepEqual(v, args[q.name])
			args[q.name] = v
		}
		if !other {
			return nil
		}
		return &call{frame: f, filling: filling{args: args, scores: fill.scores, used: fill.used}, evidence: o.evidence}
	}
	return nil
}
