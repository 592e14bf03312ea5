package texts

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kinds of hidden characters.
const (
	Control       = "control"
	Bidirectional = "bidirectional"
	ZeroWidth     = "zero_width"
	Tag           = "tag"
)

// hidden returns the kind of a character that people do not see, or that changes how they see others; empty for other
// characters.
func hidden(r rune) string {
	switch {
	case r < 0x7f && r >= ' ':
		return ""
	case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
		return Control
	case unicode.Is(unicode.Bidi_Control, r):
		return Bidirectional
	case r >= 0xE0000 && r <= 0xE007F:
		return Tag
	case unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r): // these marks are visible
		return ZeroWidth
	}
	return ""
}

// Visible returns a text such as a description without hidden characters. Line feeds and tabs stay.
func Visible(text string) string {
	return without(text, func(r rune) bool { return hidden(r) != "" && r != '\n' && r != '\t' })
}

// VisibleName returns a name without hidden characters.
func VisibleName(name string) string {
	return without(name, func(r rune) bool { return hidden(r) != "" })
}

// VisibleValue returns a value without tag and bidirectional characters. Others may be a part of it: line ends, and
// what some scripts and emoji are joined with.
func VisibleValue(value string) string {
	return without(value, func(r rune) bool { return hidden(r) == Tag || hidden(r) == Bidirectional })
}

func without(text string, unwanted func(r rune) bool) string {
	if strings.IndexFunc(text, unwanted) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unwanted(r) {
			return -1
		}
		return r
	}, text)
}

// Hidden returns the kinds of hidden characters in a name, each once, in the order of their first character.
func Hidden(name string) (kinds []string) {
	for _, r := range name {
		if kind := hidden(r); kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Reveal returns text with its hidden characters written as <U+200B>. Line feeds and tabs stay.
func Reveal(text string) string {
	if Visible(text) == text {
		return text
	}
	var out strings.Builder
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, "<%02X>", text[i])
		case hidden(r) != "" && r != '\n' && r != '\t':
			fmt.Fprintf(&out, "<U+%04X>", r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
