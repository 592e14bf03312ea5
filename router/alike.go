package router

import (
	"encoding/json"
	"strings"
	"unicode"
)

// alike reports whether at least half of the arguments of two calls are nearly the same.
func alike(a, b []byte) bool {
	one, other := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if json.Unmarshal(a, &one) != nil || json.Unmarshal(b, &other) != nil {
		return false
	}
	same := 0
	for name, value := range one {
		if v, ok := other[name]; ok && nearly(string(value), string(v)) {
			same++
		}
	}
	return 2*same >= max(len(one), len(other))
}

// minCommon is the shortest prefix, in letters and digits, that makes two texts nearly the same.
const minCommon = 8

// nearly reports whether the letters and digits of two texts are equal, or those of one begin with those of the
// other.
func nearly(a, b string) bool {
	a, b = letters(a), letters(b)
	return a == b || min(len(a), len(b)) >= minCommon && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}
