package search

import (
	"math"
	"regexp"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/segment"
	"github.com/agenticnexus/agenticnexus/internal/short"
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
	clauses int
}

// paths matches file paths and URLs. Their kind matters, not their words.
var paths = regexp.MustCompile(`(?:[A-Za-z][A-Za-z0-9+.-]*:/|~|\.{1,2})?(?:/[\w.@%+~-]+)+/?`)

// parseQuestion returns the terms of a question, each with its clauses.
func parseQuestion(text string) question {
	text = short.Prefix(text, maxQueryBytes)
	var q question
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
	for _, clause := range Clauses(text) {
		topic := paths.ReplaceAllStringFunc(clause, func(p string) string {
			for _, w := range pathWords(p) {
				add(w, pathWeight)
			}
			return " "
		})
		for _, w := range segment.Words(topic) {
			weight := 1.0
			if RequestVerb(w) {
				weight = verbWeight
			}
			add(w, weight)
		}
		for _, w := range segment.Joined(topic) {
			add(w, 1)
		}
		q.clauses++
	}
	for i := range q.terms {
		q.terms[i].weight = math.Sqrt(q.terms[i].weight)
	}
	return q
}

// pathWords returns words that describe a path: the kind of file by its extension, or a URL.
func pathWords(path string) []string {
	if strings.Contains(path, "://") {
		return append(segment.Words(path), "url")
	}
	words := []string{"file"}
	if i := strings.LastIndexByte(path, '.'); i > strings.LastIndexByte(path, '/') {
		words = append(words, segment.Words(path[i+1:])...)
	}
	return words
}
