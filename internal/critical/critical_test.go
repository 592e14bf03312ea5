package critical

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// longest is the time of the work, by trying every chain.
func longest(parts []Part) int64 {
	var end func(i int) int64
	end = func(i int) int64 {
		var start int64
		for _, n := range parts[i].Needs {
			start = max(start, end(n))
		}
		return start + parts[i].Time
	}
	var all int64
	for i := range parts {
		all = max(all, end(i))
	}
	return all
}

// The slack of a part is what it may take longer, and not more; the path is a chain that takes all the time.
func TestAnalyze(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		parts := make([]Part, 1+r.IntN(9))
		place := r.Perm(len(parts)) // the order of the slice means nothing
		for i := range parts {
			parts[i].Time = r.Int64N(5)
			for n := range parts {
				if place[n] < place[i] && r.IntN(3) == 0 {
					parts[i].Needs = append(parts[i].Needs, n)
				}
			}
		}
		a, total := Analyze(parts), longest(parts)
		var along int64
		for k, i := range a.Path {
			along += parts[i].Time
			if k > 0 && !slices.Contains(parts[i].Needs, a.Path[k-1]) || a.Slack[i] != 0 {
				t.Fatalf("%v: the path %v with slack %v is no critical chain", parts, a.Path, a.Slack)
			}
		}
		if along != total {
			t.Fatalf("%v: the path %v takes %d, want %d", parts, a.Path, along, total)
		}
		for i := range parts {
			longer := slices.Clone(parts)
			longer[i].Time += a.Slack[i]
			if got := longest(longer); got != total {
				t.Fatalf("%v: with its slack %d part %d makes it %d, want %d", parts, a.Slack[i], i, got, total)
			}
			longer[i].Time++
			if got := longest(longer); got != total+1 {
				t.Fatalf("%v: beyond its slack %d part %d makes it %d, want %d", parts, a.Slack[i], i, got, total+1)
			}
		}
	}
}

func TestAnalyzeCycle(t *testing.T) {
	a := Analyze([]Part{{Time: 1}, {Needs: []int{2, 0}, Time: 9}, {Needs: []int{1}, Time: 9}, {Needs: []int{2}}})
	if want := []int64{0, -1, -1, -1}; !slices.Equal(a.Slack, want) || !slices.Equal(a.Path, []int{0}) {
		t.Errorf("got %+v, want the first part alone", a)
	}
	if a := Analyze(nil); len(a.Path) != 0 {
		t.Errorf("got %+v for no work", a)
	}
}
