// Package texts cuts untrusted text for logs, errors, prompts and answers, splits text into words and sentences, and
// finds names that are spelled like a given one.
package texts

import (
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Prefix returns the longest beginning of text that has at most limit bytes and cuts no character.
func Prefix(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// Cut cuts text like Prefix and appends an ellipsis to a cut text.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return Prefix(text, limit) + "…"
}

// lookAhead is how much more than the limit Line reads: room for the spaces it removes.
const lookAhead = 8

// Line returns text as one line of valid UTF-8 with single spaces and without control characters, and cuts it like
// Cut.
func Line(text string, limit int) string {
	cut := len(text) > lookAhead*limit
	if cut {
		text = text[:lookAhead*limit]
	}
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if cut && len(text) <= limit {
		return text + "…"
	}
	return Cut(text, limit)
}

// Lines yields the lines of a text without their ends. What follows the last line end is a line unless it is empty.
func Lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if !yield(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")) {
				return
			}
		}
	}
}

// terminalCodes matches escape sequences of terminals.
var terminalCodes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// Plain returns text as valid UTF-8 without escape sequences of terminals and other control characters. Line feeds and
// tabs stay.
func Plain(text string) string {
	text = terminalCodes.ReplaceAllString(text, "")
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
