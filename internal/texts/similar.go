package texts

import (
	"slices"
	"strings"
)

// maxName is the longest name that is compared, in bytes.
const maxName = 64

// Similar returns the names that are spelled similarly to name, the most similar first, at most limit of them. Case
// does not matter.
func Similar(name string, names []string, limit int) []string {
	most := min(len(name)/3+1, len(name)/2) // half of the letters stay: "log" is not meant by "foo"
	byDistance := make([][]string, most+1)
	lower := strings.ToLower(name)
	for _, n := range names {
		if diff := len(n) - len(name); diff > most || -diff > most {
			continue
		}
		if d := distance(lower, strings.ToLower(n)); d <= most {
			byDistance[d] = append(byDistance[d], n)
		}
	}
	similar := slices.Concat(byDistance...)
	return similar[:min(limit, len(similar))]
}

// distance counts the letters to insert, delete, replace or swap with their neighbour that turn a into b (optimal
// string alignment). Names beyond maxName are not compared.
func distance(a, b string) int {
	if len(a) > maxName || len(b) > maxName {
		return max(len(a), len(b))
	}
	var before, above []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, row = above, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
