package rules

import "maps"

// several turns a call into one for each item of an enumeration where the tool takes one at a time: "the weather in Boston
// and Rome". Where the question says "respectively", a second enumeration goes along with the first. An enumeration whose
// other items fill other parameters is none.
func (c *chooser) several(one *call, r reading) []*call {
	calls := []*call{one}
	for _, q := range one.frame.shape.params {
		at, ok := one.filling.used[q.name]
		if !ok || !q.required && !r.respectively() || q.picks() || q.kind == "array" || q.kind == "object" {
			continue
		}
		list, ok := r.listWith(at)
		if !ok || one.filling.usesOther(q.name, list) {
			continue
		}
		values := c.each(one, r, q, list)
		switch {
		case values == nil || len(values) > maxCalls:
		case len(calls) == 1:
			for _, v := range values {
				calls = append(calls, one.with(q.name, v))
			}
			calls = calls[1:]
		case len(calls) == len(values) && r.respectively():
			for i, v := range values {
				calls[i] = calls[i].with(q.name, v)
			}
		}
	}
	return calls
}

// with is the call with another argument.
func (c *call) with(name string, value any) *call {
	args := maps.Clone(c.filling.args)
	args[name] = value
	return &call{frame: c.frame, filling: filling{args: args, scores: c.filling.scores, used: c.filling.used}, evidence: c.evidence}
}

// each is what the items of an enumeration give a parameter, nothing if one of them gives nothing.
func (c *chooser) each(one *call, r reading, q param, list mention) []any {
	f := &filler{p: c.p, r: r, frame: one.frame, today: c.today}
	var values []any
	for _, item := range list.items {
		item.prep = list.prep
		options := f.candidates(q, item)
		if len(options) == 0 {
			return nil
		}
		values = append(values, options[0].value)
	}
	return values
}

func (r reading) respectively() bool {
	for _, t := range r.tokens {
		if t.is("respectively") {
			return true
		}
	}
	return false
}

// listWith returns the enumeration that a mention is an item of; all calculations of a question are one.
func (r reading) listWith(at mention) (mention, bool) {
	if at.kind == kindFormula {
		all := mention{kind: kindList, start: at.start, end: at.end}
		for _, m := range r.mentions {
			if m.kind == kindFormula {
				all.items = append(all.items, m)
			}
		}
		return all, len(all.items) > 1
	}
	for _, m := range r.mentions {
		if m.kind != kindList || !m.joined {
			continue
		}
		m = r.bare(m)
		if !m.alike() {
			continue
		}
		for _, item := range m.items {
			if item.start == at.start && item.end == at.end {
				return m, true
			}
		}
	}
	return mention{}, false
}

// bare takes off the last item of an enumeration the noun that all items share: "Italian and Chinese restaurants".
func (r reading) bare(list mention) mention {
	last := len(list.items) - 1
	if m, ok := r.nameAt(list.items[last].start); ok && m.kind == list.items[0].kind && list.items[last].kind == kindPhrase {
		items := append([]mention{}, list.items...)
		items[last] = m
		list.items, list.end = items, m.end
	}
	return list
}

// alike reports whether all items of an enumeration are values of one kind, not just words.
func (m mention) alike() bool {
	for _, item := range m.items {
		if item.kind != m.items[0].kind || item.kind == kindPhrase || item.number.spelled {
			return false
		}
	}
	return true
}

// usesOther reports whether a parameter other than the named one uses a part of a mention.
func (f filling) usesOther(name string, m mention) bool {
	for other, span := range f.used {
		if other != name && span.overlaps(m) {
			return true
		}
	}
	return false
}
