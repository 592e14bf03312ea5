package rules

import (
	"cmp"
	"maps"
	"slices"
)

// filler fills the parameters of one tool from one reading.
type filler struct {
	p       *Planner
	r       reading
	frame   *frame
	today   date
	earlier []*call // whose results may be referred to

	anaphors []anaphor // to these results
}

func (f *filler) paramsNamed(stem string) int { return f.frame.inNames[stem] }

// filling is what came of it.
type filling struct {
	args    map[string]any
	scores  map[string]float64
	used    map[string]mention // what the arguments used of the question
	missing []param            // required parameters that nothing fills
	guessed []string           // required parameters filled on weak evidence
}

// withoutGuesses leaves out what is required and only guessed.
func (f filling) withoutGuesses() filling {
	args := maps.Clone(f.args)
	for _, name := range f.guessed {
		delete(args, name)
	}
	f.args = args
	return f
}

// What a match must score to be taken.
const (
	takeRequired = 0.3
	takeOptional = 1.9
	known        = 0.5 // below, a required argument is a guess
	surely       = 1.0 // below, it is weak evidence
)

// maxPairs bounds the pairings of one tool that are weighed against each other; the best are kept.
const maxPairs = 400

type pairing struct {
	param int
	candidate
}

// fill matches parameters and mentions, best matches first; no part of the question is used twice.
func (f *filler) fill(params []param) filling {
	out := filling{args: map[string]any{}, scores: map[string]float64{}, used: map[string]mention{}}
	var pairs []pairing
	for i, q := range params {
		switch {
		case len(q.enum) > 0 && q.kind != "array":
			if c, ok := f.enum(q); ok {
				pairs = append(pairs, pairing{i, c})
			}
		case q.kind == "boolean":
			if c, ok := f.boolean(q); ok {
				pairs = append(pairs, pairing{i, c})
			}
		case q.kind == "array" && q.items != nil && len(q.items.enum) > 0:
			if c, ok := f.chosen(q); ok {
				pairs = append(pairs, pairing{i, c})
			}
		default:
			for _, c := range f.references(q) {
				pairs = append(pairs, pairing{i, c})
			}
			for _, c := range f.literals(q) {
				pairs = append(pairs, pairing{i, c})
			}
			if q.kind == "string" || q.kind == "" {
				for _, c := range f.openQuery(q) {
					pairs = append(pairs, pairing{i, c})
				}
				for _, c := range f.labelledText(q) {
					pairs = append(pairs, pairing{i, c})
				}
				for _, c := range f.examplesNamed(q) {
					pairs = append(pairs, pairing{i, c})
				}
			}
			for _, m := range f.r.mentions {
				if f.anaphoric(m) {
					continue
				}
				for _, c := range f.candidates(q, m) {
					pairs = append(pairs, pairing{i, c})
				}
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pairing) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.param, b.param), cmp.Compare(a.span.start, b.span.start))
	})
	pairs = pairs[:min(len(pairs), maxPairs)]
	chosen := assign(params, pairs)
	inOrder(params, pairs, chosen)
	for i, q := range params {
		if k, ok := chosen[i]; ok {
			out.args[q.name] = pairs[k].value
			out.scores[q.name] = pairs[k].score
			out.used[q.name] = pairs[k].span
			if q.required && pairs[k].score < known {
				out.guessed = append(out.guessed, q.name)
			}
		}
	}
	f.rest(params, &out)
	return out
}

// rest deals with required parameters that no mention filled.
func (f *filler) rest(params []param, out *filling) {
	for _, q := range params {
		if _, done := out.args[q.name]; done {
			continue
		}
		if q.kind == "object" && len(q.fields) > 0 && len(f.r.mentions) > 0 {
			inner := f.fill(q.fields)
			if len(inner.args) > 0 && len(inner.missing) == 0 && (q.required || len(inner.guessed) == 0) {
				out.args[q.name] = inner.args
				out.scores[q.name] = takeOptional
				for name, m := range inner.used {
					out.used[q.name+"."+name] = m
					out.scores[q.name+"."+name] = inner.scores[name]
				}
				continue
			}
		}
		if !q.required {
			continue
		}
		switch {
		case q.fallback != nil && q.accepts(q.fallback):
			out.args[q.name] = q.fallback
		case len(q.enum) == 1:
			out.args[q.name] = q.enum[0]
		case q.kind == "boolean":
			out.args[q.name] = false
			out.scores[q.name] = takeRequired
			out.guessed = append(out.guessed, q.name)
		default:
			if v, ok := q.convention(); ok {
				out.args[q.name] = v
				continue
			}
			if c, ok := f.leftover(q, out); ok {
				out.args[q.name], out.scores[q.name], out.used[q.name] = c.value, c.score, c.span
				out.guessed = append(out.guessed, q.name)
				continue
			}
			out.missing = append(out.missing, q)
		}
	}
}

// leftover guesses a required text by the longest part of the question that nothing else used and that says more than which
// tool is meant: "weather forecast" is no city to have the forecast for.
func (f *filler) leftover(q param, out *filling) (candidate, bool) {
	list := q.kind == "array"
	if list {
		if q.items == nil {
			return candidate{}, false
		}
		q = *q.items
	}
	if q.kind != "string" && q.kind != "" || len(q.enum) > 0 {
		return candidate{}, false
	}
	switch q.classOf() {
	case classText, classQuery, classPlace:
	default:
		return candidate{}, false
	}
	best := mention{}
	for _, m := range f.r.mentions {
		if m.kind != kindPhrase && m.kind != kindProper && m.kind != kindQuoted && m.kind != kindCode {
			continue
		}
		free := true
		for _, u := range out.used {
			free = free && !u.overlaps(m)
		}
		if m.kind == kindPhrase || m.kind == kindProper {
			m = f.unexplained(q, m)
		}
		if m.kind == kindPhrase && q.classOf() == classPlace && !knownPlace(m.text) {
			continue
		}
		if free && m.end-m.start > best.end-best.start {
			best = m
		}
	}
	if best.text == "" {
		return candidate{}, false
	}
	if list {
		return candidate{[]any{best.text}, 0, best}, true
	}
	return candidate{best.text, 0, best}, true
}
