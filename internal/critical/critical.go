// Package critical finds what decides how long work takes whose parts wait for one another (the critical path method,
// J. Kelley and M. Walker, 1959).
package critical

import "slices"

// Part is a part of the work. Time has any unit.
type Part struct {
	Needs []int // indexes of the parts that must end first
	Time  int64
}

// Analysis is what there is to know of each part, by its index.
type Analysis struct {
	Slack []int64 // how much longer the part could take without delaying the end of the work
	Path  []int   // a longest chain of parts, in order
}

// Analyze finds slack and critical path. Parts in a cycle never run: they and what needs them are left out, with a
// slack of -1.
func Analyze(parts []Part) Analysis {
	order, children := sorted(parts)
	a := Analysis{Slack: make([]int64, len(parts))}
	for i := range a.Slack {
		a.Slack[i] = -1
	}
	end := make([]int64, len(parts)) // at the earliest
	before := make([]int, len(parts))
	last := -1
	for _, i := range order {
		before[i] = -1
		for _, n := range parts[i].Needs {
			if before[i] < 0 || end[n] > end[before[i]] {
				before[i] = n
			}
		}
		if before[i] >= 0 {
			end[i] = end[before[i]]
		}
		end[i] += parts[i].Time
		if last < 0 || end[i] > end[last] {
			last = i
		}
	}
	latest := make([]int64, len(parts)) // end without delay
	for _, i := range slices.Backward(order) {
		latest[i] = end[last]
		for _, c := range children[i] {
			latest[i] = min(latest[i], latest[c]-parts[c].Time)
		}
		a.Slack[i] = latest[i] - end[i]
	}
	for i := last; i >= 0; i = before[i] {
		a.Path = append(a.Path, i)
	}
	slices.Reverse(a.Path)
	return a
}

// sorted returns the parts in an order in which none comes before what it needs, and who needs whom.
func sorted(parts []Part) (order []int, children [][]int) {
	children = make([][]int, len(parts))
	waiting := make([]int, len(parts))
	for i, p := range parts {
		waiting[i] = len(p.Needs)
		for _, n := range p.Needs {
			children[n] = append(children[n], i)
		}
		if waiting[i] == 0 {
			order = append(order, i)
		}
	}
	for k := 0; k < len(order); k++ {
		for _, c := range children[order[k]] {
			if waiting[c]--; waiting[c] == 0 {
				order = append(order, c)
			}
		}
	}
	return order, dropCyclic(children, waiting)
}

// dropCyclic removes the parts that never run from the children.
func dropCyclic(children [][]int, waiting []int) [][]int {
	for i, all := range children {
		var run []int
		for _, c := range all {
			if waiting[c] == 0 {
				run = append(run, c)
			}
		}
		children[i] = run
	}
	return children
}
