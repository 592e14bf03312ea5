package rules

// reference stands for a field of an earlier call's result.
type reference struct {
	call *call
	path string
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
		if c.frame.tool.Name == f.frame.tool.Name {
			continue
		}
		for _, o := range c.frame.outputs {
			ref := reference{c, o.path}
			if s := fits(q, o, c.frame); s > fitsPartly && q.required {
				if c.frame.inNames[o.stems[0]] > 0 {
					s = fitsPartly // the tool only repeats what it was given
				}
				out = append(out, candidate{ref, s, mention{start: -1, end: -1}})
			}
			for _, m := range f.r.mentions {
				if s := f.speaksOf(m, o, c.frame); s > 0 {
					if s += f.cue(q, m); s >= 2.2 {
						out = append(out, candidate{ref, s, m})
					}
				}
			}
		}
	}
	if q.required && len(f.earlier) > 0 {
		out = append(out, f.anaphora(q)...)
	}
	return out
}
