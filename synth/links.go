package synth

import (
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// removed takes the place of an address.
const removed = "(address removed)"

var (
	definition = pattern.New(`\]:[ \t]*\n?[ \t]*\S*`)
	tagBegin   = pattern.New(`<[A-Za-z/!?][^>]*>?`)
	plainTag   = pattern.New(`^</?[A-Za-z][A-Za-z0-9]*[ \t]*/?>$`)
	scheme     = pattern.New(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	bare       = pattern.New(`(?i)(?:\b|_)(?:https?|ftp|wss?)(?::|&[#a-z0-9]+;|\\:)[^\s<>"]*|(?:\b|_)www\.[^\s<>"]*`)
)

// WithoutAddresses removes the addresses in Markdown that known does not know, and turns links to them into text: a
// model may have put into them what it has read, and a client that shows them may fetch them. known must be fast. It
// follows [WithoutImages]. Code is treated like text.
func WithoutAddresses(text string, known func(address string) bool) string {
	allowed := func(address string) bool { return scheme().MatchString(address) && known(address) }
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "](")
		b.WriteString(before)
		if !found {
			break
		}
		target, size := destination(rest)
		if allowed(target) {
			b.WriteString("](" + rest[:size])
		} else {
			b.WriteString("] " + strings.TrimSuffix(removed, ")")) // the link has one
		}
		text = rest[size:]
	}
	text = definition().ReplaceAllStringFunc(b.String(), func(s string) string {
		if target := strings.TrimLeft(s[2:], " \t\n"); strings.ContainsAny(target, `/:&\.@`) {
			return "] : " + removed
		}
		return "] :" + s[2:]
	})
	text = tagBegin().ReplaceAllStringFunc(text, func(s string) string {
		if plainTag().MatchString(s) || allowed(strings.Trim(s, "<>")) {
			return s
		}
		return "&lt;" + s[1:]
	})
	return bare().ReplaceAllStringFunc(text, func(s string) string {
		own := strings.TrimLeft(s, "_")
		lead := s[:len(s)-len(own)]
		s = own
		for end := len(s); end > 0; { // a link ends before punctuation
			if allowed(s[:end]) {
				return lead + s
			}
			shorter := strings.TrimRight(s[:end], ".,;:!?'*_~`|")
			if shorter == s[:end] {
				if shorter = strings.TrimSuffix(strings.TrimSuffix(shorter, ")"), "]"); shorter == s[:end] {
					break
				}
			}
			end = len(shorter)
		}
		kept := len(strings.TrimRight(s, ".,;:!?)]"))
		return lead + removed + s[kept:]
	})
}

// destination returns the destination at the begin of what follows "](", and the size of the text up to its end.
func destination(s string) (target string, size int) {
	begin := len(s) - len(strings.TrimLeft(s, " \t\n"))
	own := s[begin:]
	if strings.HasPrefix(own, "<") {
		target, _, _ = strings.Cut(own[1:], "\n")
		target, _, _ = strings.Cut(target, ">")
		return target, min(len(s), begin+len(target)+2)
	}
	depth := 0
	for i, r := range own {
		switch {
		case r == '(':
			depth++
		case r == ')' && depth == 0, r <= ' ':
			return own[:i], begin + i
		case r == ')':
			depth--
		}
	}
	return own, len(s)
}
