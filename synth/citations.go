package synth

import "github.com/agenticnexus/agenticnexus/internal/plan"

// Citation is a reference of an answer to a step.
type Citation struct {
	Step  string `json:"step"`
	Quote string `json:"quote,omitempty"` // verbatim from the step's result
}

// maxCitations bounds the citations of an answer.
const maxCitations = 256

// verified returns the citations of an answer. It removes quotes that the step's result does not contain verbatim, and
// citations without a quote of steps that are also cited with one. Each result is read once, whatever the number of its
// quotes.
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
