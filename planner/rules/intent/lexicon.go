package intent

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// class is a set of word classes.
type class uint32

// The classes of words, as the files of the languages name them.
const (
	fillers class = 1 << iota // adverbs and courtesy that change nothing
	please                    // makes a command a request
	joins                     // "and", "or", "then"
	or
	restarts  // after which a command is no longer negated: "but", "instead"
	dets      // what an object begins with, objects' pronouns included
	preps     // prepositions
	toward    // prepositions that follow verbs more than nouns
	clitics   // object pronouns in front of verbs
	subjects  // pronouns
	wh        // question words
	inner     // begin a subordinate clause within a clause
	aux       // finite verbs that are function words
	negation  // "not", "never", "nobody"
	past      // auxiliaries of the past
	modal     // what a verb in the base form follows
	words     // any other function words
	reports   // forms of verbs of saying; this and the following are no function words
	nominal   // begin a noun phrase, as adjectives do
	heads     // nouns that make the word before them part of a noun phrase
	particles // of verbs
	phrasal   // verbs whose particles are prepositions
	function  = reports - 1
)

// lexicon is what is known of a language.
type lexicon struct {
	language string
	words    map[string]class
	rules    []rule // by how a clause begins; the first that matches counts
	trailing []rule // conditions behind a command
	// Suffixes that no imperative has, exceptions, and those of an infinitive at the end.
	notVerb, verb, final []string
}

// The files of the languages have three sections: words, rules for how a clause starts, and for what trails a command.
var (
	//go:embed en.txt
	en string
	//go:embed de.txt
	de string
	//go:embed fr.txt
	fr string
	//go:embed es.txt
	es string
	//go:embed words.txt
	common string
)

// Languages whose rules differ.
const (
	english = "en"
	german  = "de"
	spanish = "es"
)

// readClasses reads lines such as "or: or nor"; a class may have several.
func readClasses(lines string) map[string]string {
	classes := map[string]string{}
	for line := range strings.Lines(lines) {
		if name, list, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && line[0] != '#' {
			classes[name] += " " + list
		}
	}
	return classes
}

// general are the words of words.txt by list; each has what it stands for, or itself.
var general = sync.OnceValue(func() map[string]map[string]string {
	out := map[string]map[string]string{}
	for name, list := range readClasses(common) {
		out[name] = map[string]string{}
		for word := range strings.FieldsSeq(list) {
			word, meaning, _ := strings.Cut(word, "=")
			out[name][word] = cmp.Or(meaning, word)
		}
	}
	return out
})

// means is what a word of a list stands for, "" if it is not one of it.
func means(list, word string) string { return general()[list][word] }

func listed(list, word string) bool { return means(list, word) != "" }

// newLexicon reads a file of a language.
func newLexicon(language, file string) *lexicon {
	lines, rest, _ := strings.Cut(file, "\nstarts\n")
	starts, trailing, _ := strings.Cut(rest, "\ntrailing\n")
	classes := readClasses(lines)
	l := &lexicon{language: language, words: map[string]class{}, notVerb: strings.Fields(classes["notVerb"]),
		verb: strings.Fields(classes["verb"]), final: strings.Fields(classes["final"])}
	for k, name := range strings.Fields("fillers please joins or restarts dets preps toward clitics subjects wh inner aux " +
		"negation past modal words reports nominal heads particles phrasal") {
		for word := range strings.FieldsSeq(classes[name]) {
			l.words[word] |= 1 << k
		}
	}
	l.rules, l.trailing = rules(classes, starts), rules(classes, trailing)
	return l
}

// lexicons are in order of preference. They are read when the first question comes.
var lexicons = sync.OnceValue(func() []*lexicon {
	return []*lexicon{newLexicon(english, en), newLexicon(german, de), newLexicon("fr", fr), newLexicon(spanish, es)}
})

// languagesOf returns the lexicons of the languages with most function words, fallback or nothing if there are none, and
// nothing if another language is as likely. The fallback comes first and stands alone among equals.
func languagesOf(tokens []token, fallback []*lexicon) (out []*lexicon) {
	votes := make([]int, len(lexicons())+1)
	other := len(lexicons())
	for i, t := range tokens {
		if t.kind != word {
			continue
		}
		for _, r := range t.lower {
			switch {
			case r < unicode.MaxASCII:
			case !unicode.Is(unicode.Latin, r) && unicode.IsLetter(r):
				votes[other] += 3
			case strings.ContainsRune("ßäöü", r):
				votes[1]++
			case strings.ContainsRune("èêàùœâîçôûë", r):
				votes[2]++
			case strings.ContainsRune("ñáíóú", r):
				votes[3]++
			case r == 'é':
				votes[2]++
				votes[3]++
			case unicode.IsLetter(r):
				votes[other] += 2
			}
		}
		if t.capital && i > 0 && tokens[i-1].kind != stop {
			continue // a name
		}
		for k, l := range lexicons() {
			if l.words[t.lower]&(function|reports) != 0 {
				votes[k]++
			}
		}
		if listed("foreign", t.lower) {
			votes[other]++
		}
	}
	best := slices.Max(votes[:other])
	if votes[other] > 0 && votes[other] >= best {
		return nil
	}
	if best == 0 {
		return fallback
	}
	for k, l := range lexicons() {
		if votes[k] == best {
			out = append(out, l)
		}
	}
	if len(fallback) == 1 && slices.Contains(out, fallback[0]) {
		return fallback
	}
	return out
}

// plain reports whether the words are ASCII.
func plain(tokens []token) bool {
	for _, t := range tokens {
		if t.kind == word && strings.ContainsFunc(t.lower, func(r rune) bool { return r > unicode.MaxASCII }) {
			return false
		}
	}
	return true
}
