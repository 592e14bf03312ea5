package rules

import "slices"

// maxConjunctions bounds how many conjunctions of one question are tried.
const maxConjunctions = 8

// apart splits a clause where a conjunction joins things that different tools answer, although the second of them opens
// no request of its own: "the latest AI news and 15% of $2500". One of the tools must be the one that best answers the
// clause as a whole, and each must be sure of its part alone. It returns whole where there is no such conjunction.
func (c *chooser) apart(r reading, whole []*call, earlier []*call) []*call {
	if len(whole) != 1 {
		return whole
	}
	for i := 1; i < len(r.tokens); i++ {
		next := r.afterConjunction(i)
		if next == i || next == len(r.tokens) {
			continue
		}
		if c.conjunctions++; c.conjunctions > maxConjunctions {
			break
		}
		one, _ := c.alone(r.between(0, i), earlier)
		if len(one) != 1 || one[0].frame == whole[0].frame && whole[0].takesFrom(next, len(r.tokens)) {
			continue
		}
		both := slices.Concat(earlier, one)
		two, second := c.alone(r.between(next, len(r.tokens)), both)
		if len(two) != 1 || two[0].frame == whole[0].frame && whole[0].takesFrom(0, i) || !c.asks(second, two[0]) {
			continue
		}
		if one[0].frame != two[0].frame && (one[0].frame == whole[0].frame || two[0].frame == whole[0].frame) {
			if first := c.apart(read(r.between(0, i)), one, earlier); len(first) > 1 {
				one, both = first, slices.Concat(earlier, first)
				if two, second = c.alone(r.between(next, len(r.tokens)), both); len(two) != 1 {
					return one
				}
			}
			return append(one, c.apart(second, two, both)...)
		}
		i = next - 1
	}
	return whole
}

// conjunctions that join two things asked for.
var conjunctions = set("and plus & , ; then also")

// afterConjunction returns the token after the conjunctions that begin at token i, or i if there is none, or only within
// a quotation, a name or a calculation.
func (r reading) afterConjunction(i int) int {
	if slices.ContainsFunc(r.mentions, func(m mention) bool {
		return (m.kind == kindQuoted || m.kind == kindFormula || m.kind == kindProper) && m.start <= i && i < m.end
	}) {
		return i
	}
	for i < len(r.tokens) && conjunctions[r.tokens[i].lower] {
		i++
	}
	return i
}

// alone is the best call for a text without regard to the rest of the question.
func (c *chooser) alone(text string, earlier []*call) ([]*call, reading) {
	part := chooser{p: c.p, whole: read(text), today: c.today, tools: c.tools, frames: c.frames, fills: map[*frame]filling{}}
	return part.best(part.whole, c.tools.Look(text, rankedTools), earlier), part.whole
}

// takesFrom reports whether an argument of a call is taken from the tokens [start,end) alone, so that they belong to the
// call. An optional search term does not count, for it takes whatever words there are.
func (c *call) takesFrom(start, end int) bool {
	return slices.ContainsFunc(c.frame.shape.params, func(q param) bool {
		m, ok := c.filling.used[q.name]
		return ok && m.start >= start && m.end <= end && (q.required || q.classOf() != classQuery)
	})
}

// asks reports whether a text asks for what a call does, rather than only naming what could be its argument: "marketing"
// in "articles about finance and marketing". A calculation asks for itself, and so does what is counted ("all engineers")
// or narrowed down ("engineers in Berlin") and explained in full.
func (c *chooser) asks(r reading, made *call) bool {
	if slices.ContainsFunc(r.mentions, func(m mention) bool { return m.kind == kindFormula }) {
		return true
	}
	x := c.p.features(r, made.frame, made.filling)
	if x[topicHits] > 0 {
		return true
	}
	return x[allKnown] == 1 && slices.ContainsFunc(r.tokens, func(t token) bool { return t.is("all", "every", "everyone", "everybody", "in", "at", "from", "near") })
}
