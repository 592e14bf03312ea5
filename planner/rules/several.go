package rules

import "maps"

// several turns a call into one for each item of an enumeration where the tool takes one at a time:
// "the weather in Boston and Rome". An enumeration whose other items fill other parameters is none.
func (c *chooser) several(one *call, r reading) []*call {
	for _, q := range one.frame.shape.params {
		at, ok := one.filling.used[q.name]
		if !ok || !q.required || q.picks() || q.kind == "array" || q.kind == "object" {
			continue
		}
		list, ok := r.listWith(at)
		if !ok || one.filling.usesOther(q.name, list) {
			continue
		}
		f := &filler{p: c.p, r: r, frame: one.frame, today: c.today}
		calls := []*call{}
		for _, item := range list.items {
			item.prep = list.prep
			options := f.candidates(q, item)
			if len(options) == 0 || len(calls) == maxCalls {
				return []*call{one}
			}
			args := maps.Clone(one.filling.args)
			args[q.name] = options[0].value
			calls = append(calls, &call{frame: one.frame, filling: filling{args: args, scores: one.filling.scores}, evidence: one.evidence})
		}
		return calls
	}
	return []*call{one}
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
		if m.kind != kindList || !m.joined || !m.alike() {
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
