package config

import (
	"fmt"
	"strings"
)

// suggest says which of the valid keys is meant by key, or which there are.
func suggest(key string, valid []string) string {
	best, distance := "", len(key)/3+1
	for _, v := range valid {
		if d := editDistance(strings.ToLower(key), strings.ToLower(v)); d <= distance && (best == "" || d < distance) {
			best, distance = v, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "valid keys are " + orList(valid, "and")
}

// orList writes "a, b or c".
func orList(words []string, or string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " " + or + " " + words[last]
}

// editDistance counts the letters to insert, delete, replace or swap with their neighbour that turn a into b (optimal
// string alignment). Beyond 64 bytes it does not look.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
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
