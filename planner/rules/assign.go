package rules

// assign picks at most one pairing for each parameter, the best first (pairs are sorted so); choices
// and flags aside, no part of the question is used twice. Pairs of parameters are then swapped as
// long as that raises the sum of their scores. It returns indexes into pairs by parameter.
func assign(params []param, pairs []pairing) map[int]int {
	chosen := map[int]int{}
	for k, pr := range pairs {
		if _, done := chosen[pr.param]; done || pr.score < params[pr.param].need() {
			continue
		}
		if params[pr.param].picks() || !taken(params, pairs, chosen, pr, -1, -1) {
			chosen[pr.param] = k
		}
	}
	for range 4 {
		if !improve(params, pairs, chosen) {
			break
		}
	}
	return chosen
}

// need is the least score a parameter takes.
func (p param) need() float64 {
	if p.required {
		return takeRequired
	}
	return takeOptional
}

// picks reports whether a parameter's value is a choice rather than a part of the question.
func (p param) picks() bool {
	return p.kind == "boolean" || len(p.enum) > 0 || p.items != nil && len(p.items.enum) > 0
}

// taken reports whether a part of the question, or a result, that pr uses is used by a parameter other
// than a, b.
func taken(params []param, pairs []pairing, chosen map[int]int, pr pairing, a, b int) bool {
	if _, ok := pr.value.(reference); ok {
		for i, k := range chosen {
			if i != pr.param && i != a && i != b && pairs[k].value == pr.value {
				return true
			}
		}
	}
	for i, k := range chosen {
		if i != a && i != b && i != pr.param && pairs[k].span.overlaps(pr.span) && (!params[i].picks() || pairs[k].score > pr.score) {
			return true
		}
	}
	return false
}

// improve makes one swap: a parameter takes what another has, which takes something else or nothing.
func improve(params []param, pairs []pairing, chosen map[int]int) bool {
	for k, pr := range pairs {
		a := pr.param
		if pr.score < params[a].need() || params[a].picks() {
			continue
		}
		old, had := chosen[a]
		if had && (old == k || pairs[old].score > pr.score+3) {
			continue
		}
		b := -1
		for i, j := range chosen {
			if i != a && !params[i].picks() && pairs[j].span.overlaps(pr.span) {
				if b >= 0 {
					b = -2
					break
				}
				b = i
			}
		}
		if b < 0 || taken(params, pairs, chosen, pr, a, b) {
			continue
		}
		alternative, found := 0, false
		for j, other := range pairs {
			if other.param == b && other.score >= params[b].need() && !other.span.overlaps(pr.span) && !taken(params, pairs, chosen, other, a, b) {
				alternative, found = j, true
				break
			}
		}
		before := worth(params[b], pairs[chosen[b]].score)
		if had {
			before += worth(params[a], pairs[old].score)
		}
		after := worth(params[a], pr.score)
		if found {
			after += worth(params[b], pairs[alternative].score)
		}
		if after <= before+1e-9 {
			continue
		}
		chosen[a] = k
		if found {
			chosen[b] = alternative
		} else {
			delete(chosen, b)
		}
		return true
	}
	return false
}

// worth is what filling a parameter is worth: required ones come first.
func worth(p param, score float64) float64 {
	if p.required {
		return score + 1.5
	}
	return score - takeOptional + 0.5
}

// slack is how much better the other way round must fit to break the order of mention.
const slack = 0.35

// inOrder makes parameters of one kind take their values in the order of mention where the words
// around them do not decide: num1 and num2 from "36 and 48".
func inOrder(params []param, pairs []pairing, chosen map[int]int) {
	score := map[[2]int]int{} // parameter and start of mention to pairing
	for k := len(pairs) - 1; k >= 0; k-- {
		score[[2]int{pairs[k].param, pairs[k].span.start}] = k
	}
	for range len(params) {
		swapped := false
		for a := range params {
			for b := a + 1; b < len(params); b++ {
				i, ok1 := chosen[a]
				j, ok2 := chosen[b]
				if !ok1 || !ok2 || params[a].picks() || params[b].picks() || params[a].kind != params[b].kind || pairs[i].span.start <= pairs[j].span.start {
					continue
				}
				x, ok1 := score[[2]int{a, pairs[j].span.start}]
				y, ok2 := score[[2]int{b, pairs[i].span.start}]
				if ok1 && ok2 && pairs[x].score+pairs[y].score >= pairs[i].score+pairs[j].score-slack {
					chosen[a], chosen[b] = x, y
					swapped = true
				}
			}
		}
		if !swapped {
			return
		}
	}
}
