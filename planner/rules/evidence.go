package rules

// weights are those of a logistic regression over the questions of docs/evaluation.md, rounded; the
// sum is evidence.
var weights = features{
	allKnown:      0.3,
	nameSaid:      1.3,
	purposeSaid:   0.8,
	topicHits:     0.5,
	topicStrange:  -0.2,
	missing:       -2.4,
	weak:          -1.35,
	filled:        1.45,
	strongArgs:    0.7,
	nothingNeeded: 0.5,
	nameRun:       0.35,
	focusKnown:    0.4,
	choiceSaid:    0.7,
}

// threshold is the evidence a call needs. rankPenalty is what each place in the ranking costs.
const (
	threshold   = 1.8
	rankPenalty = 1.05
)

// evidence is how sure it is that a tool is what a question asks for; see threshold.
func (p *Planner) evidence(r reading, f *frame, fill filling) float64 {
	sum := 0.0
	for i, v := range p.features(r, f, fill) {
		sum += weights[i] * v
	}
	return sum
}
