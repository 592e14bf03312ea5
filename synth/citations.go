package synth

import "github.com/agenticnexus/agenticnexus/internal/plan"

// Citation says that an answer rests on a step.
type Citation struct {
	Step  string `json:"step"`
	Quote string `json:"quote,omitempty"` // verbatim from the step's result
}

// maxCitations bounds what one answer cites.
const maxCitations = 256

// verified returns what an answer cites. A quote stays if the step's result has it word for word, without it the
// citation stays; one without a quote is left out where the step is cited with one. Each result is read once, whatever
// the number of its quotes.
func verified(claims []Citation, steps map[string]*plan.Outcome) []Citation {
	quotes := map[string][]string{}
	for _, c := range claims {
		if c.Quote != "" {
			quotes[c.Step] = append(quotes[c.Step], c.Quote)
		}
	}
	var f finder
	genuine := map[Citation]bool{}
	quoted := map[string]bool{}
	for step, quotes := range quotes {
		for i, found := range f.find(steps[step], quotes) {
			if found {
				genuine[Citation{step, quotes[i]}] = true
				quoted[step] = true
			}
		}
	}
	citations := []Citation{}
	bare := map[string]bool{}
	for _, c := range claims {
		if len(citations) == maxCitations {
			break
		}
		switch {
		case genuine[c]:
			citations = append(citations, c)
		case !quoted[c.Step] && !bare[c.Step]:
			bare[c.Step] = true
			citations = append(citations, Citation{Step: c.Step})
		}
	}
	return citations
}
