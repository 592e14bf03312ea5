package search

import (
	"math"
	"regexp"
	"strings"
	"unicode"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// queryTerm is one stem of the question.
type queryTerm struct {
	word    string // as in the question
	stem    string
	weight  float64 // proportional to the square root of its frequency
	clauses uint32  // bit i: occurs in clause i
}

// question is a parsed question.
type question struct {
	terms   []queryTerm
	names   []string // what may be names of tools, in lower case
	clauses int
}

// paths matches file paths and URLs. Their kind matters, not their words.
var paths = regexp.MustCompile(`(?:[A-Za-z][A-Za-z0-9+.-]*:/|~|\.{1,2})?(?:/[\w.@%+~-]+)+/?`)

// parseQuestion returns the terms of a question, each with its clauses. It joins adjacent words to one that is known.
func parseQuestion(text string, known func(stem string) bool) question {
	text = texts.Prefix(text, maxQueryBytes)
	q := question{names: namesIn(text)}
	index := map[string]int{}
	add := func(w string, weight float64) {
		if len(w) == 1 || IsStopWord(w) {
			return
		}
		stem := Stem(w)
		i, ok := index[stem]
		if !ok {
			if len(q.terms) == maxQueryTerms {
				return
			}
			i = len(q.terms)
			index[stem] = i
			q.terms = append(q.terms, queryTerm{word: w, stem: stem})
		}
		q.terms[i].weight += weight
		q.terms[i].clauses |= 1 << min(q.clauses, maxClauses-1)
	}
	for _, clause := range clausesOf(text) {
		topic := paths.ReplaceAllStringFunc(clause, func(p string) string {
			for _, w := range pathWords(p) {
				add(w, pathWeight)
			}
			return " "
		})
		for _, w := range texts.Words(topic) {
			weight := 1.0
			if RequestVerb(w) {
				weight = verbWeight
			}
			add(w, weight)
			for _, c := range ideographs(w) {
				add(c, hanWeight)
			}
		}
		for _, w := range joined(texts.Words(topic)) {
			if known(Stem(w)) {
				add(w, compoundWeight)
			}
		}
		q.clauses++
	}
	for i := range q.terms {
		q.terms[i].weight = math.Sqrt(q.terms[i].weight)
	}
	return q
}

// namesIn returns the words that can only be names, such as "get_y", or a text that is one word.
func namesIn(text string) (names []string) {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("`'\"“”‘’()[]{},;?!", r) })
	for _, w := range words {
		w = strings.Trim(w, ".:")
		if len(names) < maxClauses && (len(words) == 1 || strings.ContainsAny(w, "_-.:") || strings.ContainsFunc(w[min(1, len(w)):], unicode.IsUpper)) {
			names = append(names, strings.ToLower(w))
		}
	}
	return names
}

// pathWords returns words that describe a path: the kind of file by its extension, or a URL.
func pathWords(path string) []string {
	if strings.Contains(path, "://") {
		return append(texts.Words(path), "url")
	}
	words := []string{"file"}
	if i := strings.LastIndexByte(path, '.'); i > strings.LastIndexByte(path, '/') {
		words = append(words, texts.Words(path[i+1:])...)
	}
	return words
}

// clausesOf splits a question into parts that may ask for different results: sentences, and the parts of a sentence
// joined by "and", "then", "also" or a comma if the next part opens a request (an imperative or a question word). It
// does not split text in quotation marks or brackets. The parts are in order and have no leading conjunction.
func clausesOf(text string) []string {
	var out []string
	for _, s := range texts.Sentences(text) {
		out = appendClauses(out, s)
	}
	return out
}

// appendClauses splits one sentence at its conjunctions.
func appendClauses(out []string, sentence string) []string {
	start := 0
	var quotes texts.Quotes
	for i, r := range sentence {
		if quotes.Inside(sentence, i, r) || i <= start || r != ' ' && r != ',' && r != ':' {
			continue
		}
		n := conjunction(sentence[i:])
		if n == 0 {
			continue
		}
		left, right := strings.TrimSpace(sentence[start:i]), sentence[i+n:]
		if !opensRequest(right) || !contentful(texts.Prefix(left, 400)) {
			continue
		}
		out = append(out, left)
		start = i + n
	}
	if s := strings.TrimSpace(sentence[start:]); s != "" {
		out = append(out, s)
	}
	return out
}

// conjunction returns the length of the conjunction at the start of s, including spaces and commas,
// or 0.
func conjunction(s string) int {
	i := 0
	for i < len(s) && (s[i] == ' ' || s[i] == ',' || s[i] == ':') {
		i++
	}
	comma := strings.ContainsAny(s[:i], ",:")
	n := i
	joined := false
	for {
		j := n
		for j < len(s) && 'a' <= s[j]|0x20 && s[j]|0x20 <= 'z' {
			j++
		}
		if !conjunctions[strings.ToLower(s[n:j])] {
			break
		}
		joined = true
		for j < len(s) && (s[j] == ' ' || s[j] == ',') {
			j++
		}
		n = j
	}
	if !joined && !comma {
		return 0
	}
	return n
}

var conjunctions = set(`and then also plus but additionally finally afterwards afterward next
	after secondly lastly furthermore moreover as well before that while`)

// contentful reports whether a clause has a word that may match a tool.
func contentful(s string) bool {
	for _, w := range texts.Words(s) {
		if !IsStopWord(w) && !RequestVerb(w) {
			return true
		}
	}
	return false
}

// opensRequest reports whether a clause begins like a request: with an imperative, a question word
// or a phrase such as "I need" or "could you".
func opensRequest(s string) bool {
	words := texts.Words(texts.Prefix(s, 80))
	for i, w := range words {
		switch {
		case i >= 5:
			return false
		case openers[w], i+1 < len(words) && phrasalVerbs[w+" "+words[i+1]]:
			return true
		case RequestVerb(w):
			return true
		case !IsStopWord(w):
			return false
		}
	}
	return false
}

var openers = set(`what when where who whom whose which how why can could would will is are do does did i we let please
	whats should`)

// phrasalVerbs are requests whose verb alone is a stop word.
var phrasalVerbs = map[string]bool{
	"work out": true, "find out": true, "look up": true, "look for": true, "sort out": true,
}

// RequestVerb reports whether a lower-case word is a verb that begins requests.
func RequestVerb(word string) bool { return requestVerbs[word] }

var requestVerbs = set(`
add adjust alert analyse analyze apply approve arrange assess assign attach authenticate backup block book
browse build buy calculate cancel capture change
check clean clear clone close collect combine compare compile compose compress compute configure confirm connect
convert copy count create crop cut decode decrypt delete
deploy describe design detect determine develop diagnose disable discover display download draft draw edit email
enable encode encrypt enroll estimate evaluate examine
execute explain explore export extract fetch figure fill filter find fix follow forecast format gather generate
get give grab help hire identify implement import improve
include increase inform initialize insert inspect install integrate investigate invite invoke issue join keep
launch learn list load locate lock log look lookup make manage map mark
measure merge message monitor move multiply notify obtain offer open optimize order organize pause pay perform
pick pinpoint plan play plot post predict prepare present print process
produce provide pull purchase push query rank rate read rebook recommend record reduce refund register remind
remove rename render rent replace reply report request reschedule
reserve reset resolve restart resume retrieve return review rewrite rotate run save scan schedule search secure
see select sell send set setup share show simulate solve sort specify split
start stop store stream submit subscribe suggest sum summarize supply switch sync tag take tell test track
transfer transform translate trigger turn uninstall unlock update upgrade upload
use validate verify view visit visualize watch withdraw write
`)
