package rules

import "slices"

// reference stands for a field of an earlier call's result.
type reference struct {
	call *call
	path string
}

// takesUp reports whether words of the question say that an argument is taken from an earlier call's result.
func (f filling) takesUp() bool {
	for name, v := range f.args {
		if _, ok := v.(reference); ok && f.used[name].end > f.used[name].start {
			return true
		}
	}
	return false
}

// references returns what the results of earlier calls could give a parameter: where the question
// speaks of the result ("the converted amount", "translate it"), or, for required parameters, where
// the names fit.
func (f *filler) references(q param) []candidate {
	if q.kind == "boolean" || len(q.enum) > 0 {
		return nil
	}
	var out []candidate
	for _, c := range f.earlier {
		if c.frame.tool.Name == f.frame.tool.Name || c.given(q) {
			continue
		}
		for _, o := range c.frame.outputs {
			ref := reference{c, o.path}
			if s := fits(q, o, c.frame); s > fitsPartly && q.required && (q.classOf() == classID || akin(f.frame, c.frame, q)) {
				if c.frame.inNames[o.stems[0]] > 0 {
					s = fitsPartly // the tool only repeats what it was given
				}
				out = append(out, candidate{ref, s, mention{start: -1, end: -1}})
			}
			for _, m := range f.r.mentions {
				if s := f.speaksOf(m, o, c.frame); s > 0 && (q.named(f.r.stemsOf(m)) || q.takesAnything()) {
					if s += f.cue(q, m); s >= 2.2 {
						out = append(out, candidate{ref, s, m})
					}
				}
			}
		}
	}
	for _, a := range f.anaphors {
		if s := f.takes(q, a); s > 0 {
			if path := f.meant(q, a); path != "" {
				out = append(out, candidate{reference{a.call, path}, s, a.span})
			}
		}
	}
	return out
}

// anaphoric reports whether a mention is part of what takes up a result, so that it is no value itself.
func (f *filler) anaphoric(m mention) bool {
	return slices.ContainsFunc(f.anaphors, func(a anaphor) bool { return a.span.overlaps(m) })
}

// given reports whether a call has an argument for a parameter of the same name: then the question says what that is, and
// no result does.
func (c *call) given(q param) bool {
	_, ok := c.filling.args[q.name]
	return ok && !q.takesAnything()
}

// What an anaphor is worth for a parameter.
const (
	takesNamed = 3.2 // "the event ID" for event_id
	takesWhole = 1.3 // "it" for a text
)

// takes is how well an anaphor fits a parameter.
func (f *filler) takes(q param, a anaphor) float64 {
	switch {
	case a.call.frame.tool.Name == f.frame.tool.Name:
		return 0
	case q.named(a.head):
		return takesNamed
	case q.required && q.takesAnything():
		return takesWhole
	}
	return 0
}

// named reports whether a noun names a parameter: "the event ID" is an event_id, and so is "the ID".
func (q param) named(head []string) bool {
	return slices.ContainsFunc(head, func(s string) bool {
		return slices.Contains(q.nameStems, s) && (!genericWords[s] || len(q.nameStems) == 1) || q.classOf() == classID && identifying[s]
	})
}

// takesAnything reports whether a parameter takes what it is given as it is, rather than something of a kind of its own.
func (q param) takesAnything() bool {
	switch q.kind {
	case "integer", "number", "object":
		return true
	}
	return len(q.nameStems) > 0 && (freeText[q.nameStems[len(q.nameStems)-1]] || material[q.nameStems[len(q.nameStems)-1]])
}

// material are what inputs are called that may be anything.
var material = stems("data input value object argument source result query")

// identifying are what identifiers are called.
var identifying = stems("id identifier number code uuid")

// meant is the field of an anaphor's result that a parameter takes: the one whose name fits, or else the one that the
// anaphor names, or else the first.
func (f *filler) meant(q param, a anaphor) string {
	best, score := "", -1.0
	for _, o := range a.call.frame.outputs {
		s := fits(q, o, a.call.frame)
		if speaks(a.head, o.stems) {
			s++
		}
		if s > score {
			best, score = o.path, s
		}
	}
	return best
}

// speaksOf is how plainly a mention speaks of an output: "the converted amount" of converted_amount.
func (f *filler) speaksOf(m mention, o output, producer *frame) float64 {
	if m.kind != kindPhrase && m.kind != kindCode && m.kind != kindProper {
		return 0
	}
	total, hit := 0.0, 0.0
	said := f.r.stemsOf(m)
	for _, s := range o.stems {
		if genericWords[s] {
			continue
		}
		total++
		if slices.ContainsFunc(said, func(w string) bool { return f.p.related(w, s) }) {
			hit++
		}
	}
	if hit == 0 || hit/total < 0.5 || f.r.defined(m) || f.r.introduced(m) || f.r.asked(m) {
		return 0
	}
	score := 0.6 + hit/total
	switch {
	case m.start > 0 && f.r.tokens[m.start-1].is("this", "that", "these", "those"):
		score += 1.1
	case m.start > 0 && f.r.tokens[m.start-1].is("the", "its", "their", "each"):
		score += 0.6
	case hit < total:
		return 0
	}
	for _, t := range f.r.tokens[m.start:m.end] {
		if past(t) && (participles[t.lower] || slices.ContainsFunc(t.stems, func(s string) bool { return slices.Contains(producer.name, s) })) {
			score += 0.8
			break
		}
	}
	return score
}
