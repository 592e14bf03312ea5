package intent

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
)

// lexicon has the function words of a language.
type lexicon struct {
	language string
	fillers  map[string]bool // adverbs and courtesy that change nothing
	please   map[string]bool
	joins    map[string]bool // "and", "or", "then"
	or       map[string]bool
	restarts map[string]bool // after which a command is no longer negated: "but", "instead"
	dets     map[string]bool // what an object begins with, objects' pronouns included
	preps    map[string]bool
	toward   map[string]bool // prepositions that follow verbs more than nouns
	clitics  map[string]bool // object pronouns in front of verbs
	subjects map[string]bool
	wh       map[string]bool
	inner    map[string]bool // begin a subordinate clause within a clause
	aux      map[string]bool
	negation map[string]bool
	past     map[string]bool // auxiliaries of the past
	modal    map[string]bool
	reports  map[string]bool // forms of verbs of saying
	nominal  map[string]bool // begin a noun phrase, as adjectives do
	heads    map[string]bool // nouns that make the word before them part of a noun phrase
	function map[string]bool // all function words
	rules    []rule          // by how a clause begins; the first that matches counts
	trailing []rule          // conditions behind a command
	notVerb  []string        // suffixes that no imperative has
	verb     []string        // exceptions to them
	final    []string        // suffixes of an infinitive at the end

	particles, phrasal map[string]bool // of verbs, and verbs that take those that are prepositions
}

// The files of the languages have three sections: words, rules for how a clause starts, and rules for what trails a command.
var (
	//go:embed en.txt
	en string
	//go:embed de.txt
	de string
	//go:embed fr.txt
	fr string
	//go:embed es.txt
	es string
)

var english, german, french, spanish = newLexicon("en", en), newLexicon("de", de), newLexicon("fr", fr), newLexicon("es", es)

// newLexicon reads a file of a language. The names of its words are the fields above.
func newLexicon(language, file string) *lexicon {
	words, rest, _ := strings.Cut(file, "\nstarts\n")
	starts, trailing, _ := strings.Cut(rest, "\ntrailing\n")
	classes := map[string]string{}
	for line := range strings.Lines(words) {
		if name, list, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			classes[name] += " " + list
		}
	}
	sets := map[string]map[string]bool{}
	function := map[string]bool{}
	for name, list := range classes {
		sets[name] = set(list)
		if name != "nominal" && name != "heads" && name != "notVerb" && name != "verb" && name != "final" && name != "reports" && name != "phrasal" && name != "particles" {
			for w := range sets[name] {
				function[w] = true
			}
		}
	}
	return &lexicon{language: language, function: function, fillers: sets["fillers"], please: sets["please"],
		joins: sets["joins"], or: sets["or"], restarts: sets["restarts"], dets: sets["dets"], preps: sets["preps"],
		toward: sets["toward"], clitics: sets["clitics"], subjects: sets["subjects"], wh: sets["wh"], inner: sets["inner"],
		aux: sets["aux"], negation: sets["negation"], past: sets["past"], modal: sets["modal"], reports: sets["reports"],
		nominal: sets["nominal"], heads: sets["heads"], rules: rules(classes, starts), trailing: rules(classes, trailing),
		notVerb: strings.Fields(classes["notVerb"]), verb: strings.Fields(classes["verb"]),
		final: strings.Fields(classes["final"]), particles: sets["particles"], phrasal: sets["phrasal"]}
}

// lexicons are in order of preference.
var lexicons = []*lexicon{english, german, french, spanish}

// foreign are frequent function words of other languages in Latin script.
var foreign = set(`non il gli della dello delle degli dei di che sono è perché questo mi cosa dove quali nel nella e per favore puoi ed
	os uma não dos em você minha meu isso está com ao pelo quem onde nunca qual
	het een niet van ik je mijn voor aan naar wie waar kun kunt geen dit nooit wat zijn graag alstublieft alsjeblieft
	nie w z jest się proszę czy dla jak moje mój och inte att det ett är på jag som ikke jeg og af ikkje aldrig aldri
	ve bir bu için lütfen mi değil nu nem az és ei ole ja että tidak jangan dan yang tolong untuk ne nekad prosím není`)

// negators are the words after which a line break does not end a sentence.
var negators = set("not never don't please nicht nie niemals bitte ne n pas jamais no nunca")

// languagesOf returns the lexicons of the languages with most function words, fallback or nothing if there are none, and
// nothing if another language is as likely. The fallback comes first and stands alone among equals.
func languagesOf(tokens []token, fallback []*lexicon) (out []*lexicon) {
	votes := make([]int, len(lexicons)+1)
	other := len(lexicons)
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
		for k, l := range lexicons {
			if l.function[t.lower] || l.reports[t.lower] {
				votes[k]++
			}
		}
		if foreign[t.lower] {
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
	for k, l := range lexicons {
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
