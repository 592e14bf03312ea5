package rules

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

// coded returns the number that a parameter's description gives a name: "1 for north, 2 for
// south", "'1' represents cleaning".
func (f *filler) coded(q param, m mention) []candidate {
	if m.kind == kindList || strings.IndexFunc(q.description, unicode.IsDigit) < 0 {
		return nil
	}
	for _, c := range codeFor.FindAllStringSubmatch(clip(q.description, 1000), 40) {
		for _, w := range search.Words(c[2]) {
			if slices.Contains(f.r.stemsOf(m), search.Stem(w)) && !search.IsStopWord(w) && !genericWords[search.Stem(w)] {
				v, err := strconv.ParseFloat(c[1], 64)
				if err == nil {
					return []candidate{{numberValue(q, v), 3, m}}
				}
			}
		}
	}
	return nil
}

var codeFor = regexp.MustCompile(`(-?\d+)['"]? ?(?:for|to|means|=|:|is|represents|indicates|denotes|stands for|corresponds to) (?:an? |the )?(\pL[^,;.()]{1,40})`)

// codedEnum picks the number of an enumeration to which the description gives a name that the question says.
func (f *filler) codedEnum(q param) (candidate, bool) {
	for _, m := range f.r.mentions {
		for _, c := range f.coded(q, m) {
			if v, ok := c.value.(int64); ok && slices.Contains(q.enum, any(float64(v))) {
				return c, true
			}
		}
	}
	return candidate{}, false
}
