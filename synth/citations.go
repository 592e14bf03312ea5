package synth

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// maxMark bounds a citation mark, quote included.
const maxMark = 600

// marks finds [s1], [s1, s2] and [s1: "words of the result"].
var marks = regexp.MustCompile(`\[([A-Za-z0-9_.-]{1,64}(?:\s*[,;]\s*[A-Za-z0-9_.-]{1,64})*)(?:\s*:\s*["“]([^"”\]\n]{1,400})["”])?\]`)

// maxCitations bounds what one answer cites.
const maxCitations = 100

// cite reads the citation marks of an answer. Marks of steps that worked become citations, their quote only if the
// result has it word for word; the text keeps the mark without the quote and without what is no step. A mark with a
// quote that names no step that worked is removed, for it claims evidence that is not there; one without a quote that
// names no step at all may be anything and stays.
func cite(text string, outcomes []plan.Outcome) (string, []Citation) {
	steps := make(map[string]plan.Outcome, len(outcomes))
	for _, o := range outcomes {
		steps[o.Step.ID] = o
	}
	citations := []Citation{}
	seen := map[Citation]bool{}
	text = marks.ReplaceAllStringFunc(text, func(mark string) string {
		parts := marks.FindStringSubmatch(mark)
		ids, quote := strings.FieldsFunc(parts[1], func(r rune) bool { return strings.ContainsRune(",; \t", r) }), parts[2]
		named := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { _, ok := steps[id]; return !ok })
		known := false
		for _, id := range named {
			o := steps[id]
			if !o.OK() {
				continue
			}
			known = true
			c := Citation{Step: id}
			if quote != "" && verbatim(o, quote) {
				c.Quote = quote
			}
			if !seen[c] && len(citations) < maxCitations {
				seen[c] = true
				citations = append(citations, c)
			}
		}
		switch {
		case quote != "" && !known:
			return ""
		case len(named) > 0 && len(named) < len(ids):
			return "[" + strings.Join(named, ", ") + "]"
		}
		return "[" + parts[1] + "]"
	})
	return strings.TrimSpace(text), withoutBare(citations)
}

// withoutBare drops citations without a quote of steps that are cited with one.
func withoutBare(citations []Citation) []Citation {
	quoted := map[string]bool{}
	for _, c := range citations {
		if c.Quote != "" {
			quoted[c.Step] = true
		}
	}
	out := []Citation{}
	for _, c := range citations {
		if c.Quote != "" || !quoted[c.Step] {
			out = append(out, c)
		}
	}
	return out
}

// verbatim reports whether the result has the words, as they stand in its text or in one of its strings.
func verbatim(o plan.Outcome, quote string) bool {
	if strings.Contains(o.Text, quote) || strings.Contains(string(o.Value), quote) {
		return true
	}
	found := false
	eachString(o.Value, func(s string) bool {
		found = strings.Contains(s, quote)
		return !found
	})
	return found
}
