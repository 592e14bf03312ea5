package rules

// maxItems bounds the items of an enumeration.
const maxItems = 40

// lists adds a mention for every enumeration: things of one kind joined by commas, "and" or "or".
func (r *reading) lists() {
	starts := map[int]mention{}
	for _, m := range r.mentions {
		starts[m.start] = m
	}
	inList := map[int]bool{}
	for i := range r.tokens {
		if _, ok := starts[i]; !ok || inList[i] {
			continue
		}
		items := []mention{r.item(starts, i)}
		for {
			next := r.afterJoiner(items[len(items)-1].end, items[0].kind)
			if _, ok := starts[next]; next == 0 || !ok {
				break
			}
			it := r.item(starts, next)
			if !sameKind(items[0], it) || len(items) == maxItems {
				break
			}
			items = append(items, it)
			inList[next] = true
		}
		last := items[len(items)-1]
		bracketed := i > 0 && (r.tokens[i-1].text == "[" || i > 1 && r.tokens[i-2].text == "[") && r.closes(last.end)
		if len(items) > 1 || bracketed {
			r.mentions = append(r.mentions, mention{
				kind: kindList, start: i, end: last.end, text: r.between(i, last.end), items: items, prep: items[0].prep, bracketed: bracketed, joined: r.joins(items),
			})
		}
	}
}

// item is the thing that begins at token i: a mention with the names and words that follow it
// directly ("C foot").
func (r *reading) item(starts map[int]mention, i int) mention {
	m := starts[i]
	if !named(m) {
		return m
	}
	for {
		next, ok := starts[m.end]
		if !ok || !named(next) {
			return m
		}
		m = mention{kind: kindPhrase, start: m.start, end: next.end, text: r.between(m.start, next.end), prep: m.prep}
	}
}

// joins reports whether a conjunction stands before the last item: without one, a comma may only add
// where something is ("Boston, MA").
func (r *reading) joins(items []mention) bool {
	if len(items) < 2 {
		return false
	}
	for i := items[len(items)-2].end; i < items[len(items)-1].start; i++ {
		if r.tokens[i].is("and", "or", "&") {
			return true
		}
	}
	return false
}

func (r *reading) closes(i int) bool {
	for i < len(r.tokens) && r.tokens[i].is("\"", "'", ",") {
		i++
	}
	return i < len(r.tokens) && r.tokens[i].text == "]"
}

// afterJoiner returns the token after the comma or conjunction at i (quotation marks skipped), or 0.
func (r *reading) afterJoiner(i int, k kind) int {
	joined := false
	for ; i < len(r.tokens); i++ {
		t := r.tokens[i]
		switch {
		case t.text == ",", t.is("and", "or", "&"):
			joined = true
		case t.is("\"", "'", "“", "”", "‘", "’", "`"), t.is("the", "a", "an") && joined, t.is("then") && joined && k == kindNumber:
		default:
			if joined {
				return i
			}
			return 0
		}
	}
	return 0
}

func sameKind(a, b mention) bool {
	if a.kind == kindNumber || b.kind == kindNumber {
		return a.kind == b.kind && !a.number.ordinal && !b.number.ordinal && (a.number.currency == b.number.currency || b.number.currency == "")
	}
	return a.kind == b.kind || named(a) && named(b)
}

func named(m mention) bool { return m.kind == kindProper || m.kind == kindCode || m.kind == kindPhrase }
