package texts

import (
	"slices"
	"strings"
)

// Piece is a part of two versions of a text: common to both, or of one alone.
type Piece struct {
	Change string `json:"change,omitempty"` // "", Removed or Added
	Text   string `json:"text"`
}

// Changes of a Piece.
const (
	Removed = "removed"
	Added   = "added"
)

// maxCells bounds the work of a comparison. Beyond it, everything between the common ends counts as replaced.
const maxCells = 1 << 18

// Compare returns the pieces of both texts, such as words or lines, with as many as possible in common. Adjacent pieces
// of the same kind are joined.
func Compare(a, b []string) (out []Piece) {
	add := func(change string, pieces ...string) {
		text := strings.Join(pieces, "")
		switch last := len(out) - 1; {
		case text == "":
		case last >= 0 && out[last].Change == change:
			out[last].Text += text
		default:
			out = append(out, Piece{change, text})
		}
	}
	head, tail := 0, 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	add("", a[:head]...)
	a, b = a[head:], b[head:]
	for tail < min(len(a), len(b)) && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	end := a[len(a)-tail:]
	a, b = a[:len(a)-tail], b[:len(b)-tail]
	if len(a)*len(b) <= maxCells {
		// common[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
		common := make([][]int32, len(a)+1)
		for i := range common {
			common[i] = make([]int32, len(b)+1)
		}
		for i, x := range slices.Backward(a) {
			for j, y := range slices.Backward(b) {
				if x == y {
					common[i][j] = common[i+1][j+1] + 1
				} else {
					common[i][j] = max(common[i+1][j], common[i][j+1])
				}
			}
		}
		for i, j := 0, 0; len(a) > 0 && len(b) > 0; {
			switch {
			case a[0] == b[0]:
				add("", a[0])
				a, b, i, j = a[1:], b[1:], i+1, j+1
			case common[i+1][j] >= common[i][j+1]:
				add(Removed, a[0])
				a, i = a[1:], i+1
			default:
				add(Added, b[0])
				b, j = b[1:], j+1
			}
		}
	}
	add(Removed, a...)
	add(Added, b...)
	add("", end...)
	return out
}
