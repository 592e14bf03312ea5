// Command wordnet generates internal/search/wordnet.txt, the table of related words, from the WordNet 3.0 database.
// Its first argument is the database folder (/usr/share/wordnet in Debian's package wordnet-base). A line has the
// stem of a common word and up to 12 related stems, each with a weight in tenths. The table is derived from WordNet
// alone, not from questions or catalogs of an evaluation.
package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"log"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/search"
)

//go:embed notice.txt
var notice string

// Weights of relations: to a word with the same meaning, to a word of a linked meaning, and to a word of the
// definition.
const (
	synonym = 0.5
	gloss   = 0.3
)

// pointers are the weights of linked meanings by WordNet's pointer symbol.
var pointers = map[string]float64{
	"@": 0.5, "+": 0.8, "~": 0.25, "&": 0.5, "*": 0.3, `\`: 0.5, "$": 0.4, "^": 0.2, "#p": 0.2, "%p": 0.2,
}

const (
	maxNarrower = 12  // a meaning with more hyponyms is too general to relate them
	maxRelated  = 12  // relations per word
	leastWeight = 0.1 // minimum weight of a relation
	leastUse    = 1   // minimum use of a word, see sense.use
)

var (
	word    = regexp.MustCompile(`^[a-z]{3,}$`)
	words   = regexp.MustCompile(`[a-z]{3,}`)
	quoted  = regexp.MustCompile(`"[^"]*"`)
	marker  = regexp.MustCompile(`\(.*\)$`) // position marker of an adjective
	letters = map[string]string{"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
)

// synset is one meaning.
type synset struct {
	words []string
	links []link
	gloss string
}

// link points to another meaning; from one word to another if the word numbers are not 0.
type link struct {
	symbol, target string
	from, to       int
}

// sense is a meaning of a word. use is its frequency in a corpus plus a little for its rank.
type sense struct {
	synset *synset
	use    float64
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: wordnet FOLDER OUT")
	}
	folder := os.Args[1]
	synsets := readSynsets(folder)
	table := relate(synsets, readSenses(folder, synsets))
	var out strings.Builder
	for line := range strings.Lines(notice) {
		out.WriteString(strings.TrimRight("# "+line, " \n") + "\n")
	}
	for _, stem := range slices.Sorted(maps.Keys(table)) {
		if line := render(table[stem]); line != "" {
			out.WriteString(stem + line + "\n")
		}
	}
	if err := os.WriteFile(os.Args[2], []byte(out.String()), 0o644); err != nil {
		log.Fatal(err)
	}
}

// eachLine calls f for each line of a database file except comments.
func eachLine(folder, name string, f func(line string)) {
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "  ") {
			f(line)
		}
	}
}

func number(s string, base int) int {
	n, err := strconv.ParseInt(s, base, 32)
	if err != nil {
		log.Fatal(err)
	}
	return int(n)
}

// readSynsets reads the files data.*; see wndb(5WN).
func readSynsets(folder string) map[string]*synset {
	out := map[string]*synset{}
	for _, pos := range []string{"noun", "verb", "adj", "adv"} {
		eachLine(folder, "data."+pos, func(line string) {
			data, explanation, _ := strings.Cut(line, "|")
			fields := strings.Fields(data)
			s := &synset{gloss: quoted.ReplaceAllString(strings.ToLower(explanation), "")}
			rest := fields[4:]
			for range number(fields[3], 16) {
				s.words = append(s.words, strings.ToLower(marker.ReplaceAllString(rest[0], "")))
				rest = rest[2:]
			}
			n := number(rest[0], 10)
			for l := range slices.Chunk(rest[1:1+4*n], 4) {
				s.links = append(s.links, link{l[0], letters[l[2]] + l[1], number(l[3][:2], 16), number(l[3][2:], 16)})
			}
			out[pos+fields[0]] = s
		})
	}
	return out
}

// readSenses reads the files index.* and the corpus counts.
func readSenses(folder string, synsets map[string]*synset) map[string][]sense {
	type numbered struct {
		lemma, pos string
		number     int
	}
	kinds := map[byte]string{'1': "noun", '2': "verb", '3': "adj", '4': "adv", '5': "adj"}
	counts := map[numbered]float64{}
	eachLine(folder, "cntlist.rev", func(line string) {
		fields := strings.Fields(line)
		lemma, key, _ := strings.Cut(fields[0], "%")
		counts[numbered{lemma, kinds[key[0]], number(fields[1], 10)}] = float64(number(fields[2], 10))
	})
	out := map[string][]sense{}
	for _, pos := range []string{"noun", "verb", "adj", "adv"} {
		eachLine(folder, "index."+pos, func(line string) {
			fields := strings.Fields(line)
			if !word.MatchString(fields[0]) {
				return
			}
			for i, offset := range fields[len(fields)-number(fields[2], 10):] {
				use := counts[numbered{fields[0], pos, i + 1}] + 0.5/float64(i+1)
				out[fields[0]] = append(out[fields[0]], sense{synsets[pos+offset], use})
			}
		})
	}
	return out
}

// relate returns the weights of the stems related to each stem of a common word. A meaning is weighted by its share
// of the uses of all words with the stem.
func relate(synsets map[string]*synset, senses map[string][]sense) map[string]map[string]float64 {
	lemmas := map[string][]string{} // by stem
	common := map[string]float64{}  // uses, by stem
	for _, lemma := range slices.Sorted(maps.Keys(senses)) {
		uses := 0.0
		for _, s := range senses[lemma] {
			uses += s.use
		}
		if uses >= leastUse && !search.IsStopWord(lemma) {
			stem := search.Stem(lemma)
			lemmas[stem] = append(lemmas[stem], lemma)
			common[stem] += uses
		}
	}
	table := map[string]map[string]float64{}
	for stem := range common {
		related, explained := map[string]float64{}, map[string]float64{}
		for _, lemma := range lemmas[stem] {
			for _, s := range senses[lemma] {
				share := s.use / common[stem]
				s.synset.related(lemma, synsets, func(w string, x float64) { related[w] += share * x })
				said := map[string]bool{}
				for _, w := range words.FindAllString(s.synset.gloss, -1) {
					said[w] = true
				}
				for w := range said {
					explained[w] += share
				}
			}
		}
		table[stem] = map[string]float64{}
		add := func(weight float64, from map[string]float64) {
			for w, x := range from {
				target := search.Stem(strings.ReplaceAll(w, "-", ""))
				if target != stem && common[target] > 0 && !search.IsStopWord(w) {
					table[stem][target] = max(table[stem][target], weight*min(1, x))
				}
			}
		}
		add(synonym, related)
		add(gloss, explained)
	}
	return table
}

// related calls add for the other words of a meaning and for those of linked meanings.
func (s *synset) related(lemma string, synsets map[string]*synset, add func(word string, weight float64)) {
	for _, w := range s.words {
		if w != lemma {
			add(w, 1)
		}
	}
	narrower := 0
	for _, l := range s.links {
		if l.symbol == "~" {
			narrower++
		}
	}
	for _, l := range s.links {
		weight := pointers[l.symbol]
		if weight == 0 || l.symbol == "~" && narrower > maxNarrower || l.from > 0 && s.words[l.from-1] != lemma {
			continue
		}
		targets := synsets[l.target].words
		if l.to > 0 {
			targets = targets[l.to-1 : l.to]
		}
		for _, w := range targets {
			add(w, weight/math.Pow(float64(len(targets)), 0.3))
		}
	}
}

// render formats the strongest relations, as in " purchas5 acquir2".
func render(related map[string]float64) string {
	stems := slices.SortedFunc(maps.Keys(related), func(a, b string) int {
		return cmp.Or(cmp.Compare(related[b], related[a]), cmp.Compare(a, b))
	})
	var line strings.Builder
	for i, stem := range stems {
		if tenths := math.Round(10 * related[stem]); i < maxRelated && tenths >= 10*leastWeight {
			fmt.Fprintf(&line, " %s%d", stem, int(tenths))
		}
	}
	return line.String()
}
