package search

import (
	"regexp"
	"strings"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/porter"
)

// Stem reduces an English lower-case word to its stem, so that "retrieving", "retrieves" and "retrieval" match. It
// implements M. F. Porter's algorithm ("An algorithm for suffix stripping", 1980) with his later rule for "-logy",
// adds irregular forms, and keeps words such as "status" and "various". Words with characters other than a-z are
// returned unchanged.
func Stem(word string) string {
	if s, ok := irregular[word]; ok {
		return s
	}
	if len(word) <= 2 || strings.HasSuffix(word, "is") ||
		strings.HasSuffix(word, "us") && !strings.HasSuffix(word, "ous") {
		return word
	}
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	env := snowballstem.NewEnv(word)
	porter.Stem(env)
	stem := env.Current()
	switch {
	case strings.HasSuffix(stem, "ou") && stem+"s" == word:
		return word
	case strings.HasSuffix(stem, "logi") && science.MatchString(stem):
		return strings.TrimSuffix(stem, "i")
	}
	return stem
}

// science matches stems such as "technologi", not "biologi".
var science = regexp.MustCompile(`[aeiouy][^aeiouy].*logi$`)

// irregular maps irregular forms to the stem of their base form.
var irregular = map[string]string{
	"bought": "bui", "found": "find", "sent": "send", "wrote": "write", "written": "write", "made": "make",
	"gave": "give", "given": "give", "took": "take", "taken": "take", "paid": "pai", "spent": "spend", "sold": "sell",
	"sought": "seek", "knew": "know", "known": "know", "told": "tell", "said": "sai", "went": "go", "gone": "go",
	"began": "begin", "begun": "begin", "built": "build", "drew": "draw", "drawn": "draw", "drove": "drive",
	"driven": "drive",
	"ate":    "eat", "eaten": "eat", "flew": "fly", "flown": "fly", "held": "hold", "kept": "keep", "led": "lead",
	"lost": "lose",
	"met":  "meet", "ran": "run", "sang": "sing", "saw": "see", "seen": "see", "shown": "show", "spoke": "speak",
	"spoken": "speak", "taught": "teach", "thought": "think", "won": "win", "chose": "choos", "chosen": "choos",
	"children": "child", "people": "person", "persons": "person", "men": "man", "women": "woman", "feet": "foot",
	"mice":    "mouse",
	"indices": "index", "indexes": "index", "vertices": "vertex", "matrices": "matrix", "analyses": "analysi",
	"analysis": "analyz", "analyse": "analyz", "analyze": "analyz", "analyzing": "analyz", "analyzed": "analyz",
	"analyzer":  "analyz",
	"analytics": "analyz", "lives": "life", "leaves": "leaf", "media": "medium", "criteria": "criterion",
	"news": "news", "series": "seri", "species": "speci", "gas": "gas", "bus": "bus", "plus": "plus", "always": "alwai",
	"weather": "weather", "translation": "translat", "ids": "id", "apis": "api", "urls": "url", "uri": "url",
	"uris": "url",
	"dns":  "dns", "gps": "gps", "aws": "aws", "css": "css", "sms": "sms", "rss": "rss", "cms": "cms", "ios": "ios",
}
