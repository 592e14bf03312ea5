package console

import "slices"

// part is a part of work whose parts wait for one another. Its time has any unit.
type part struct {
	needs []int // indexes of the parts that must end first
	time  int64
}

// criticalPath returns a longest chain of parts, in order, and for each part how much longer it could take without
// delaying the end of the work (the critical path method). Parts in a cycle never run: they and what needs them are
// left out, with a slack of -1.
func criticalPath(parts []part) (path []int, slack []int64) {
	order, children := sorted(parts)
	slack = make([]int64, len(parts))
	for i := range slack {
		slack[i] = -1
	}
	end := make([]int64, len(parts)) // at the earliest
	before := make([]int, len(parts))
	last := -1
	for _, i := range order {
		before[i] = -1
		for _, n := range parts[i].needs {
			if before[i] < 0 || end[n] > end[before[i]] {
				before[i] = n
			}
		}
		if before[i] >= 0 {
			end[i] = end[before[i]]
		}
		end[i] += parts[i].time
		if last < 0 || end[i] > end[last] {
			last = i
		}
	}
	latest := make([]int64, len(parts)) // end without delay
	for _, i := range slices.Backward(order) {
		latest[i] = end[last]
		for _, c := range children[i] {
			latest[i] = min(latest[i], latest[c]-parts[c].time)
		}
		slack[i] = latest[i] - end[i]
	}
	for i := last; i >= 0; i = before[i] {
		path = append(path, i)
	}
	slices.Reverse(path)
	return path, slack
}

// sorted returns the parts in an order in which none comes before what it needs, and who needs whom.
func sorted(parts []part) (order []int, children [][]int) {
	children = make([][]int, len(parts))
	waiting := make([]int, len(parts))
	for i, p := range parts {
		waiting[i] = len(p.needs)
		for _, n := range p.needs {
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
