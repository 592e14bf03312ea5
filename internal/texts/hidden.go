package texts

import (
	"fmt"
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

// Visible returns a description without hidden characters. Line feeds and tabs stay.
func Visible(text string) string { return visible(text, "\n\t") }

// VisibleName returns a name without hidden characters.
func VisibleName(name string) string { return visible(name, "") }

func visible(text, but string) string {
	plain := true
	for i := 0; i < len(text) && plain; i++ {
		plain = text[i] >= ' ' && text[i] < 0x7f || strings.IndexByte(but, text[i]) >= 0
	}
	if plain {
		return text
	}
	return strings.Map(func(r rune) rune {
		if hidden(r) != "" && !strings.ContainsRune(but, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

// Hidden returns the kinds of hidden characters in a name, each once, in the order of their first character.
func Hidden(name string) (kinds []string) {
	for _, r := range name {
		kind := hidden(r)
		known := kind == ""
		for _, k := range kinds {
			known = known || k == kind
		}
		if !known {
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
