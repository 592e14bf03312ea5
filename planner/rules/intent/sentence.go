package intent

import (
	"slices"
	"strings"
)

// line is the tokens of one sentence and the language that they are read in.
type line struct {
	t   []token
	lex *lexicon
}

// sentence is a line and what is known of it.
type sentence struct {
	line
	text      string
	scope     scope
	retracted bool // takes back what was asked for before
}

// scope is what one sentence leaves to the next.
type scope struct {
	quoted  bool // the next one is data, until the line or, if block, the paragraph ends
	block   bool
	act     Act // of a condition or the like that "then" and "otherwise" go on with; else Unknown
	started bool
}

// span is a clause in the making, of the tokens [start,end).
type span struct {
	start, head, end int // head is where the clause proper begins, after "For order 5, "
	next             int // after the words that the rule for it takes
	otherwise        bool
	lead             Act // by its first words; Unknown if only its whole tells
	join             join
	act              Act
	verb             int
	bare, ruled      bool
	polite           bool
	loose            bool // has no object
	particle         string
}

// join is what connects a clause with the one before.
type join struct {
	and, or, comma, strong, restart bool
}

// clauses splits the sentence.
func (s *sentence) clauses() []Clause {
	n := len(s.t)
	for n > 0 && s.t[n-1].kind == stop {
		n--
	}
	if n == 0 {
		s.endLine()
		return nil
	}
	if quotes := s.quotes(n); quotes || s.scope.quoted {
		c := s.clause(span{end: n, act: Quoted, verb: -1})
		s.scope.started = true
		s.endLine()
		return []Clause{c}
	}
	if s.lex == nil {
		s.scope.act = Unknown
		return []Clause{s.clause(span{end: n, verb: -1})}
	}
	spans := s.split(n)
	s.decide(spans, n)
	out := make([]Clause, 0, len(spans))
	for _, p := range spans {
		out = append(out, s.clause(p))
	}
	s.endLine()
	return out
}

// quotes reports whether the sentence is nothing but quotations.
func (s *sentence) quotes(n int) bool {
	return !slices.ContainsFunc(s.t[:n], func(t token) bool { return t.kind == word || t.kind == value })
}

// endLine ends the quotation after a colon where its line or paragraph ends.
func (s *sentence) endLine() {
	last := s.t[len(s.t)-1]
	if !s.scope.quoted || last.kind != stop || last.lower[0] != '\n' || !s.scope.started {
		return
	}
	if !s.scope.block || strings.Count(last.lower, "\n") > 1 {
		s.scope.quoted = false
	}
}

func (s *sentence) clause(p span) Clause {
	c := Clause{Start: s.t[p.start].start, End: s.t[p.end-1].end, Act: p.act, Bare: p.bare && p.act.MayWrite()}
	if p.end < len(s.t) && s.t[p.end].kind == stop && s.t[p.end].lower[0] != '\n' {
		c.End = s.t[p.end].end
	}
	c.Text = s.text[c.Start:c.End]
	if s.lex != nil {
		c.Language = s.lex.language
	}
	if p.verb >= 0 {
		c.Verb = p.particle + s.t[p.verb].lower
	}
	return c
}

// split finds the clauses of the tokens [0,n).
func (s *sentence) split(n int) []span {
	var out []span
	cur := s.open(0, n, join{})
	for i := cur.next; i < n; {
		if s.t[i].kind == colon {
			label, data := s.afterColon(cur, i, n)
			if data || i+1 == n {
				break
			}
			start := cur.start
			if cur.end = i; !label {
				out = append(out, cur)
			}
			cur = s.open(i+1, n, join{strong: true})
			if i = cur.next; label {
				cur.start = start
			}
			continue
		}
		how, next := s.joint(i, n)
		if next == i {
			i++
			continue
		}
		if next < n && s.opens(cur, i, next, n, how) {
			if s.fragment(cur, i) && !how.and {
				lead := cur.start
				cur = s.open(next, n, cur.join)
				cur.start = lead
			} else {
				cur.end = i
				out = append(out, cur)
				cur = s.open(next, n, how)
			}
			i = cur.next
			continue
		}
		i = next
	}
	cur.end = n
	return append(out, cur)
}

// open starts a span at token i.
func (s *sentence) open(i, n int, how join) span {
	for i < n-1 && s.t[i].kind >= pause {
		i++
	}
	p := span{start: i, head: i, end: n, join: how, verb: -1}
	for p.head < min(n-1, i+maxGap) {
		t := s.t[p.head]
		answer := t.is(negation) && s.t[p.head+1].kind == pause && s.t[p.head+1].lower == ","
		if answer {
			p.head = min(p.head+2, n-1)
			continue
		}
		if p.head > i && t.kind == pause || (t.is(fillers | joins)) {
			if _, _, _, ok := s.rule(p.head, n); ok {
				break
			}
			p.otherwise = p.otherwise || listed("otherwise", t.lower)
			p.polite = p.polite || t.is(please)
			p.join.restart = p.join.restart || t.is(restarts) && (p.head > i || how.comma)
			p.head++
			continue
		}
		break
	}
	act, _, next, _ := s.rule(p.head, n)
	p.lead, p.next = act, max(next, p.head+1)
	return p
}

// joint returns what connects at token i, and the index after it, or i if nothing does.
func (s *sentence) joint(i, n int) (how join, next int) {
	for next = i; next < n; next++ {
		t := s.t[next]
		switch {
		case t.kind == pause:
			how.comma = true
		case t.kind == break_:
			how.strong, how.comma = true, true
		case t.is(joins):
			how.and = true
			how.or = how.or || t.is(or)
			how.restart = how.restart || t.is(restarts)
		default:
			return how, next
		}
	}
	return how, next
}

// opens reports whether a clause begins at token j, after a joint at i.
func (s *sentence) opens(cur span, i, j, n int, how join) bool {
	if how.strong {
		return true
	}
	p := s.open(j, n, how)
	t := s.t[p.head]
	act, _, _, ok := s.rule(p.head, n)
	leads := slices.Contains([]Act{Negated, Conditional, Hypothetical, Reported, Statement, Past}, cur.lead)
	switch {
	case t.kind != word:
		return false
	case t.is(negation):
		return true
	case t.is(inner) && !how.and:
		return leads && ok && act == Question || s.lex.language == english && slices.Contains([]string{"what", "how", "why"}, t.lower)
	case ok && act == Question && t.is(aux):
		return p.head+1 < n && s.t[p.head+1].is(subjects)
	case ok && act != Conditional:
		return true
	case ok:
		return how.and || leads
	case s.lex.language == german && how.and && s.infinitive(i-1):
		return s.finalVerb(p.head, n) > p.head || t.is(clitics)
	}
	strong, bare := s.verbFirst(p.head, n, false)
	number := p.head+2 < n && s.t[p.head+2].kind == value
	return strong || bare && (how.and || leads || number || p.polite || s.fragment(cur, i))
}

// fragment reports whether a span up to token i is no clause but a lead-in such as "For order 5" or "Bob".
func (s *sentence) fragment(p span, i int) bool {
	if p.lead != Unknown || i-p.head > 7 {
		return false
	}
	for _, t := range s.t[p.head:i] {
		if t.is(negation|reports) || t.kind >= pause {
			return false
		}
	}
	first := s.t[p.head]
	return first.is(preps) || i-p.head == 1 && (first.capital || first.is(fillers))
}

// afterColon decides on a colon at token i. A clause that is asked for follows a label and "do the following"; otherwise
// data is true: all that follows belongs to the clause, and so do the next sentences of the line.
func (s *sentence) afterColon(cur span, i, n int) (label, data bool) {
	first := s.t[cur.head].lower
	if i == cur.head+1 && listed("labels", first) {
		return true, false
	}
	if act, verb, _, ok := s.rule(cur.head, i); ok && verb >= 0 && act.MayWrite() {
		first = s.t[verb].lower
	}
	if listed("doing", first) && cur.lead != Negated {
		return false, false
	}
	s.scope = scope{quoted: true, block: i == n-1, started: i < n-1}
	return false, true
}
