package search

import (
	_ "embed"
	"iter"
	"strings"
)

// wordnet has a line such as "bui purchas5 buyer4" for each common stem: its related stems, each with a weight in
// tenths. Lines are sorted and follow WordNet's notice. The command in the folder wordnet generates it. The text
// stays in the program's data, so that only the pages that searches read are in memory.
//
//go:embed wordnet.txt
var wordnet string

// wordnetRelated yields the stems that WordNet relates to a stem by synonymy, hierarchy or definition, strongest
// first, with weights up to 0.5.
func wordnetRelated(stem string) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for entry := range strings.SplitSeq(wordnetLine(stem), " ") {
			if n := len(entry) - 1; n > 0 && !yield(entry[:n], float64(entry[n]-'0')/10) {
				return
			}
		}
	}
}

// wordnetLine returns the line of a stem without the stem itself; "" if there is none.
func wordnetLine(stem string) string {
	rest := wordnet
	for rest != "" {
		start := strings.LastIndexByte(rest[:len(rest)/2], '\n') + 1
		line, _, _ := strings.Cut(rest[start:], "\n")
		key, related, _ := strings.Cut(line, " ")
		switch strings.Compare(stem, key) {
		case 0:
			return related
		case -1:
			rest = rest[:start]
		default:
			rest = rest[min(len(rest), start+len(line)+1):]
		}
	}
	return ""
}
