package rules

// candidate is a value a mention could give a parameter.
type candidate struct {
	value any
	score float64
	span  mention // what it uses up of the question
}

// candidates returns what a mention could give a parameter, nothing if its type forbids.
func (f *filler) candidates(q param, m mention) []candidate {
	switch q.kind {
	case "integer", "number":
		return f.numeric(q, m)
	case "array":
		return f.array(q, m)
	case "boolean", "object":
		return nil
	}
	if len(q.enum) > 0 {
		return nil
	}
	return f.text(q, m)
}

func (f *filler) array(q param, m mention) []candidate {
	if q.items == nil || len(q.items.enum) > 0 {
		return nil
	}
	items := []mention{m}
	bonus := -0.3
	if m.kind == kindList {
		items, bonus = m.items, 1
	}
	var values []any
	total := 0.0
	for _, it := range items {
		it.prep = m.prep
		best := candidate{score: -1}
		for _, c := range f.candidates(*q.items, it) {
			if c.score > best.score {
				best = c
			}
		}
		if best.score < 0 {
			return nil
		}
		values = append(values, best.value)
		total = max(total, best.score)
	}
	if m.bracketed {
		bonus += 1
	}
	return []candidate{{values, total + bonus, m}}
}
