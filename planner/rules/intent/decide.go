package intent

import (
	"slices"
	"strings"
)

// rule returns what the first matching rule says about a clause that begins at token i.
func (s *line) rule(i, n int) (act Act, verb, next int, ok bool) {
	for _, r := range s.lex.rules {
		if verb, next, ok = s.match(r.items, i, n); ok {
			return r.act, verb, next, true
		}
	}
	return Unknown, -1, i, false
}

// decide sets the acts of the spans.
func (s *sentence) decide(spans []span, n int) {
	asks := len(s.t) > n && strings.ContainsAny(s.t[n].lower, "?？")
	continued := s.scope.act
	if first := s.t[spans[0].start]; !first.is(joins) && !listed("goesOn", first.lower) && continued != Hypothetical {
		continued = Unknown
	}
	s.scope.act = continued
	lastOr, done := 0, 0 // done: conditions and retractions have changed the clauses before it
	for k := range spans {
		if spans[k].join.or {
			lastOr = k
		}
	}
	take := func(k int, act Act) {
		for ; done < k; done++ {
			if spans[done].act.MayWrite() {
				spans[done].act = act
			}
		}
	}
	for k := range spans {
		p := &spans[k]
		asked := asks && k == len(spans)-1 && !slices.ContainsFunc(spans[:k], func(q span) bool {
			return q.act != Command && q.act != Statement && q.act != Past
		})
		s.classify(p, asked)
		if p.otherwise && p.act.MayWrite() {
			p.act = Conditional
		}
		if p.act == Conditional && len(spans) == 1 && asks && s.t[p.head].is(wh) {
			p.act = Question
		}
		if listed("inverted", s.t[p.head].lower) && !asks && k+1 < len(spans) && !spans[k+1].join.and {
			p.act = Conditional
		}
		if p.act == retract {
			p.act = Negated
			s.retracted = true
			take(k, Negated)
		}
		if k > 0 {
			s.inherit(&spans[k-1], p, lastOr > k)
		}
		switch {
		case p.act == Conditional || p.act == Hypothetical || p.act == Reported:
			if p.act == Conditional && (p.verb >= 0 || p.join.restart || k == len(spans)-1) { // "…, but only if it is empty"
				take(k, Conditional)
			}
			s.scope.act = p.act
			if k == len(spans)-1 && p.act == Hypothetical && (asks || !listed("supposes", s.t[spans[0].head].lower)) {
				s.scope.act = Unknown
			}
		case s.scope.act != Unknown && p.act.MayWrite():
			p.act = s.scope.act
		}
	}
	if last := spans[len(spans)-1]; asks && last.act == Question && !s.t[last.head].is(wh) {
		s.scope.act = Conditional // "Is it late? Then cancel it."
	}
}

// classify sets the act of a span by itself. asked tells that it ends with a question mark of its own.
func (s *sentence) classify(p *span, asked bool) {
	act, verb, next, ok := s.rule(p.head, p.end)
	p.ruled = ok
	switch {
	case ok && (act == Statement || act == Past):
		p.act = act
		if s.tells(p, next) {
			p.act = Reported
		} else if act == Statement && s.pastTense(p.head, p.end) {
			p.act = Past
		}
		return
	case ok:
		p.act, p.verb = act, verb
	default:
		s.byOrder(p)
	}
	if !p.act.MayWrite() {
		return
	}
	for _, t := range s.t[p.head:p.end] {
		if t.kind == colon {
			break
		}
		p.polite = p.polite || t.is(please)
	}
	if p.act == Command && p.polite {
		p.act = Request
	}
	from := p.head
	if ok && act == Command {
		from = p.verb
	}
	switch {
	case s.denied(p, from) || p.end-1 > p.verb && s.t[p.end-1].is(negation):
		p.act = Negated
	case s.underCondition(p):
	case asked && !p.polite && p.act == Command:
		p.act = Question
	}
	p.loose = p.verb+1 >= p.end
	if after := p.verb + 1; after < p.end && s.t[after].kind == word && s.lex.language == german {
		if end := s.mainEnd(p.verb, p.end); s.t[end-1].is(particles) && end-1 > p.verb {
			p.particle = s.t[end-1].lower
		}
	}
}

// byOrder classifies a span that no rule knows by its word order.
func (s *sentence) byOrder(p *span) {
	strong, bare := s.verbFirst(p.head, p.end, p.start == 0 || p.head > p.start)
	first := s.t[p.head]
	end := s.mainEnd(p.head, p.end)
	finite := slices.IndexFunc(s.t[p.head:min(end, p.head+6)], func(t token) bool { return t.is(aux) })
	colon := slices.IndexFunc(s.t[p.head:p.end], func(t token) bool { return t.kind == colon })
	switch {
	case first.kind == word && (first.is(wh) || first.is(aux)) && !first.is(dets):
		p.act = Question
	case s.tells(p, p.head+1) && (!strong || s.lex.language != english):
		p.act = Reported
	case (strong || bare) && s.isStatement(p.head, end):
		p.act = Statement
		if s.pastTense(p.head, p.end) {
			p.act = Past
		}
	case strong || bare:
		p.act, p.verb, p.bare = Command, p.head, !strong
	case colon > 0 && s.verbLike(p.head, p.start == 0) && !first.is(nominal): // "note on order 5: paid"
		p.act, p.verb, p.bare = Command, p.head, true
	case s.lex.language == german && s.infinitive(end-1) && finite < 0 && end-1 > p.head:
		p.act, p.verb = Command, end-1
		p.loose = false
	case s.lex.language == english && strings.HasSuffix(first.lower, "ed") && p.head+1 < p.end && s.objectAt(p.head+1):
		p.act = Past
	case finite > 0:
		p.act = Statement
		if s.pastTense(p.head, p.end) {
			p.act = Past
		}
	default:
		p.act = Question
		if strong, bare := s.verbFirst(p.head+max(colon, 0)+1, p.end, false); colon > 0 && (strong || bare) {
			p.act = Reported // "the ticket reads: delete it"
		}
	}
}

// verbFirst reports whether a verb at token i begins a clause: strong if its object follows, bare if only a noun or
// preposition does. Only the first word of a sentence may have a capital.
func (s *line) verbFirst(i, n int, first bool) (strong, bare bool) {
	l := s.lex
	if i >= n || !s.verbLike(i, first) {
		return false, false
	}
	j := i + 1
	for j < n && (s.t[j].is(fillers) || s.t[j].is(particles) && (!s.t[j].is(preps) || s.t[i].is(phrasal))) {
		j++
	}
	if j >= n || s.t[j].kind >= pause {
		return j > i+1 || s.enclitic(s.t[i]) || j < len(s.t) && s.t[j].kind < stop, false
	}
	t := s.t[j]
	switch {
	case s.objectAt(j):
		number := t.kind == value && t.lower[0] <= '9' && t.lower[0] >= '0'
		return !number, number
	case (t.is(wh | inner)):
		return true, false
	case t.lower == "if", t.is(negation), l.language == german && (t.lower == "sie" || t.lower == "ihr"):
		return true, false
	case t.is(joins):
		strong, bare = s.verbFirst(j+1, len(s.t), false)
		return strong, bare
	case t.is(toward):
		return false, true
	case t.is(function):
		return false, false
	case t.is(heads):
		to := func(t token) bool { return t.is(toward) || t.lower == "as" || t.lower == "from" }
		k := slices.IndexFunc(s.t[j:min(n, j+8)], to)
		return false, k >= 0 && s.t[j+k].lower != "from"
	}
	return false, true
}

// verbLike reports whether token i may be an imperative or infinitive.
func (s *line) verbLike(i int, first bool) bool {
	t, l := s.t[i], s.lex
	return t.kind == word && !t.is(function) && !t.is(nominal) && (first || !t.capital) && len(t.lower) > 1 &&
		!strings.HasSuffix(t.lower, "'s") && (!hasSuffix(t.lower, l.notVerb) || hasSuffix(t.lower, l.verb) ||
		s.enclitic(t))
}

// enclitic reports whether the token is a Spanish verb with its object: "cancélalo".
func (s *line) enclitic(t token) bool {
	ends := hasSuffix(t.lower, []string{"lo", "la", "los", "las", "le", "les", "me"})
	return s.lex.language == spanish && ends && strings.ContainsAny(t.lower, "áéíóú")
}

// objectAt reports whether an object begins at token i: a determiner, pronoun, value, quotation or genitive.
func (s *line) objectAt(i int) bool {
	t := s.t[i]
	return t.kind == value || t.kind == quote || t.is(dets|nominal) ||
		s.lex.language == english && (strings.HasSuffix(t.lower, "'s") || strings.HasSuffix(t.lower, "s'"))
}

func hasSuffix(word string, suffixes []string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(word, suffix) })
}

// mainEnd returns the index after the main clause of the tokens [from,end), where a subordinate clause or data begins.
func (s *line) mainEnd(from, end int) int {
	for i := from + 1; i < min(end, from+maxMain); i++ {
		t := s.t[i]
		switch {
		case s.lex.language == german && t.kind == pause && i+1 < end && s.t[i+1].is(inner|dets|preps):
			return i
		case s.lex.language != german && t.is(inner), t.kind == colon:
			return i
		}
	}
	return end
}

// finalVerb returns the index of the verb that ends the main clause of the tokens [at,end), or -1.
func (s *line) finalVerb(at, end int) int {
	if at >= end {
		return -1
	}
	end = s.mainEnd(at-1, end)
	for end > at && s.t[end-1].kind != word || end > at && (s.t[end-1].is(fillers) ||
		s.t[end-1].is(aux) && end-2 > at && s.infinitive(end-2)) { // "wenn du es schließen könntest"
		end--
	}
	if end <= at {
		return -1
	}
	return end - 1
}

// infinitive reports whether token i may be an infinitive at the end of a German clause.
func (s *line) infinitive(i int) bool {
	t := s.t[i]
	return t.kind == word && !t.capital && hasSuffix(t.lower, s.lex.final) && !t.is(function)
}

// isStatement reports whether the tokens [from,end) begin with a bare subject and a finite verb: "order 5 is late".
func (s *line) isStatement(from, end int) bool {
	for i := from + 1; i < min(end, from+8); i++ {
		t := s.t[i]
		if t.is(aux) {
			return i+1 >= end || !s.t[i+1].is(subjects)
		}
		if t.kind == quote || t.kind >= pause || t.is(function) && !t.is(particles|preps) {
			return false
		}
	}
	return false
}

// tells reports whether a span reports what someone else says, its verb at token from or after.
func (s *sentence) tells(p *span, from int) bool {
	for _, t := range s.t[from:min(p.end, from+8)] {
		if t.is(inner) {
			return false
		}
		if t.is(reports) {
			return !listed("firstPerson", s.t[p.head].lower)
		}
	}
	return false
}

// pastTense reports whether the main clause of [from,end) has an auxiliary of the past or a regular English past tense.
func (s *line) pastTense(from, end int) bool {
	return slices.ContainsFunc(s.t[from:s.mainEnd(from, end)], func(t token) bool {
		return (t.is(past) || s.lex.language == english && len(t.lower) > 4 && strings.HasSuffix(t.lower, "ed"))
	})
}

// denied reports whether the main clause of a span is negated, from token from on.
func (s *sentence) denied(p *span, from int) bool {
	end := s.mainEnd(max(from, p.verb), p.end)
	if s.lex.language == english {
		end = min(end, p.verb+4)
	}
	for i := from; i < end; i++ {
		if t := s.t[i]; t.is(negation) {
			return s.lex.language != english || i+1 >= end || s.t[i+1].lower != "to"
		}
	}
	return false
}

// underCondition makes a command conditional if a condition follows its verb. Right behind it, "if" may be "whether".
func (s *sentence) underCondition(p *span) bool {
	main := s.mainEnd(p.verb, p.end)
	if i := p.verb + 2; i < p.end && s.t[i].lower == "ob" && s.t[i-1].kind == pause {
		p.act, s.scope.act = Question, Conditional
		return true
	}
	for i := p.verb + 1; i < p.end; i++ {
		for _, r := range s.lex.trailing {
			_, next, ok := s.match(r.items, i, p.end)
			strong := next > i+1 || s.t[i].lower == "if" || s.t[i].lower == "unless"
			if !ok || s.lex.language == english && i > main && !strong {
				continue
			}
			if r.act == Request {
				i = next
				break
			}
			p.act = r.act
			if i == p.verb+1 && s.t[i].is(inner) || i == p.verb+1 && s.t[i].lower == "if" {
				p.act, s.scope.act = Question, Conditional // "check if it is late and cancel it"
			}
			return true
		}
	}
	return false
}

// inherit lets the act of a clause extend to the next where words join their verbs. A list goes on to an "or".
func (s *sentence) inherit(prev, p *span, list bool) {
	if !p.act.MayWrite() || p.ruled || p.polite || p.join.strong {
		return
	}
	joined := p.join.and || prev.loose || list
	switch prev.act {
	case ActionQuestion:
	case Negated:
		if p.join.restart || !joined {
			return
		}
	case Statement, Past:
		if p.join.restart || !p.join.and && !prev.loose {
			return
		}
	case Question:
		if p.join.restart || !joined || !s.hasModal(prev) {
			return
		}
	default:
		return
	}
	p.act = prev.act
}

// hasModal reports whether a question has its verb in the base form, which a following command also has.
func (s *sentence) hasModal(p *span) bool {
	return slices.ContainsFunc(s.t[p.head:p.end], func(t token) bool { return t.is(modal) })
}
