package console

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// longest is the time of the work, by trying every chain.
func longest(parts []part) int64 {
	var end func(i int) int64
	end = func(i int) int64 {
		var start int64
		for _, n := range parts[i].needs {
			start = max(start, end(n))
		}
		return start + parts[i].time
	}
	var all int64
	for i := range parts {
		all = max(all, end(i))
	}
	return all
}

// The slack of a part is what it may take longer, and not more; the path is a chain that takes all the time.
func TestLongestChain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		parts := make([]part, 1+r.IntN(9))
		place := r.Perm(len(parts)) // the order of the slice means nothing
		for i := range parts {
			parts[i].time = r.Int64N(5)
			for n := range parts {
				if place[n] < place[i] && r.IntN(3) == 0 {
					parts[i].needs = append(parts[i].needs, n)
				}
			}
		}
		path, slack := criticalPath(parts)
		total := longest(parts)
		var along int64
		for k, i := range path {
			along += parts[i].time
			if k > 0 && !slices.Contains(parts[i].needs, path[k-1]) || slack[i] != 0 {
				t.Fatalf("%v: the path %v with slack %v is no critical chain", parts, path, slack)
			}
		}
		if along != total {
			t.Fatalf("%v: the path %v takes %d, want %d", parts, path, along, total)
		}
		for i := range parts {
			longer := slices.Clone(parts)
			longer[i].time += slack[i]
			if got := longest(longer); got != total {
				t.Fatalf("%v: with its slack %d part %d makes it %d, want %d", parts, slack[i], i, got, total)
			}
			longer[i].time++
			if got := longest(longer); got != total+1 {
				t.Fatalf("%v: beyond its slack %d part %d makes it %d, want %d", parts, slack[i], i, got, total+1)
			}
		}
	}
}

func TestLongestChain_Cycle(t *testing.T) {
	path, slack := criticalPath([]part{{time: 1}, {needs: []int{2, 0}, time: 9}, {needs: []int{1}, time: 9}, {needs: []int{2}}})
	if !slices.Equal(slack, []int64{0, -1, -1, -1}) || !slices.Equal(path, []int{0}) {
		t.Errorf("got %v and %v, want the first part alone", path, slack)
	}
	if path, _ := criticalPath(nil); len(path) != 0 {
		t.Errorf("got %v for no work", path)
	}
}
