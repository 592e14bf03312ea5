package rules

import "unicode"

// codes finds identifiers.
func (r reading) codes() []mention {
	var out []mention
	for i, t := range r.tokens {
		if len(t.text) > 1 && len(t.text) < 200 && codeLike(t.text) {
			out = append(out, mention{kind: kindCode, start: i, end: i + 1, text: t.text})
		}
	}
	return out
}

// codeLike reports whether a word is an identifier rather than language: letters mixed with digits, inner
// capitals, underscores, or capitals alone.
func codeLike(s string) bool {
	letters, digits, inner, under, upper := 0, 0, 0, 0, 0
	for i, c := range s {
		switch {
		case unicode.IsDigit(c):
			digits++
		case unicode.IsUpper(c):
			letters++
			upper++
			if i > 0 {
				inner++
			}
		case unicode.IsLetter(c):
			letters++
		case c == '_' || c == '#' || c == '@':
			under++
		case c == '-' || c == ':' || c == '.' || c == '/':
		default:
			return false
		}
	}
	switch {
	case letters > 0 && digits > 0, under > 0 && letters+digits > 0:
		return true
	case inner > 0 && upper < letters:
		return true
	}
	return upper > 1 && upper == letters
}
