package rules

import "slices"

// cue weighs the words around a mention against a parameter: "a radius of 5" speaks for radius,
// "for 5 years" for time_in_years. Nearer words count more, the parameter's name more than its
// description.
func (f *filler) cue(q param, m mention) float64 {
	r := f.r
	best := 0.0
	weight := 1.0
	content := 0
	for i := m.start - 1; i >= 0 && content < 4 && m.start-i < 9; i-- {
		t := r.tokens[i]
		if t.text == "." || t.text == "?" || t.text == "!" || t.text == ";" || m.kind == kindNumber && r.numberEnds(i) {
			break
		}
		if t.text == "," {
			weight *= 0.6
		}
		if t.punct() {
			continue
		}
		if v := f.wordScore(q, t); v > 0 {
			best = max(best, v*weight)
		}
		if !t.stop() {
			content++
			weight *= 0.75
		}
	}
	weight = 0.8
	content = 0
	for i := m.end; i < len(r.tokens) && content < 2 && i-m.end < 4; i++ {
		t := r.tokens[i]
		if t.punct() && t.text != "\"" && t.text != "'" || t.is("and", "or") || digitAt(t.text, 0) {
			break
		}
		if v := f.wordScore(q, t); v > 0 {
			best = max(best, v*weight)
		}
		if !t.stop() {
			content++
		}
		weight *= 0.7
	}
	return best
}

// numberEnds reports whether a number ends just before token i+1, so that the words before it
// belong to that number.
func (r reading) numberEnds(i int) bool {
	for _, m := range r.mentions {
		if m.kind == kindNumber && m.end == i+1 && m.start <= i {
			return true
		}
	}
	return false
}

// wordScore is how well one word of the question names a parameter. A word that several parameters
// or the tool itself have in common says little.
func (f *filler) wordScore(q param, t token) float64 {
	best := 0.0
	for _, s := range t.stems {
		if slices.Contains(q.nameStems, s) {
			v := 3 / float64(max(1, f.frame.inNames[s]))
			if t.stop() {
				v = min(v, 0.5)
			}
			best = max(best, v)
			continue
		}
		if t.stop() {
			continue
		}
		if q.descStems[s] {
			v := 1.2 / float64(max(1, f.frame.inTexts[s]))
			if f.frame.words[s] {
				v *= 0.4
			}
			best = max(best, v)
		}
		for _, n := range q.nameStems {
			if abbreviates(n, s) || len(n) >= 5 && abbreviates(s, n) || f.p.thesaurus.Related(s, n) && f.frame.inNames[s] == 0 {
				best = max(best, 2/float64(max(1, f.frame.inNames[n])))
			}
		}
	}
	return best
}

// abbreviates reports whether a is a shortened b, as in "temp" and "temperature".
func abbreviates(a, b string) bool {
	return len(a) >= 3 && len(b) > len(a) && b[:len(a)] == a
}
