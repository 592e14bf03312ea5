package demo

import (
	"strings"
	"unicode"
)

// words splits text into lower-case words without their plural s.
func words(text string) []string {
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '’'
	})
	var out []string
	for _, word := range fields {
		word, _, _ = strings.Cut(strings.Trim(word, "'’"), "'")
		word, _, _ = strings.Cut(word, "’")
		if word != "" {
			out = append(out, singular(word))
		}
	}
	return out
}

func singular(word string) string {
	switch {
	case len(word) < 4 || word == "news":
	case strings.HasSuffix(word, "ies"):
		return strings.TrimSuffix(word, "ies") + "y"
	case strings.HasSuffix(word, "ss"), strings.HasSuffix(word, "us"), strings.HasSuffix(word, "is"):
	default:
		return strings.TrimSuffix(word, "s")
	}
	return word
}

// isStopWord reports whether a word is irrelevant for a search.
func isStopWord(word string) bool {
	switch word {
	case "a", "about", "an", "and", "are", "at", "by", "can", "do", "doe", "find", "for", "from", "get", "give",
		"has", "have", "how", "i", "in", "is", "it", "list", "look", "me", "of", "on", "or", "our", "please", "search", "show",
		"tell", "that", "the", "there", "this", "to", "up", "us", "was", "we", "web", "what", "when", "where", "which",
		"who", "why", "will", "with", "you", "your":
		return true
	}
	return false
}
