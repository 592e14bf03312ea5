package values

import (
	"embed"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// Each line of a language, and of all.txt for all of them, is a class with its phrases. A comma separates phrases of
// one meaning and a low line the tokens of a phrase. What a phrase means follows "="; without it, it is its position in
// the line, counted from the last number. A line of units.txt is a measure with the factors of its units.
//
// A line of grammar.txt is a rule with one of its sequences; the first one that matches counts. An element is a rule, a
// class, a mark, a number in digits between two bounds (of the same length: with as many digits), or a terminal of
// reader.terminal. "?" follows what may be missing, "~" precedes what stands without a gap, "=" a meaning it must have.
//
//go:embed lexicon/*.txt
var files embed.FS

type (
	phrase struct {
		rest  []string // the tokens after the first
		means string
	}
	lexicon map[string]map[string][]phrase // by class and first token, longest first
	element struct {
		name, means, low, high string
		optional, tight        bool
	}
	factor struct{ measure, times string } // of the base unit of the measure
)

var (
	codes = []string{"en", "de", "fr", "es"}

	// They are read when the first question comes.
	lexicons = sync.OnceValue(readLexicons)
	factors  = sync.OnceValue(readFactors)
	grammar  = sync.OnceValue(readGrammar)
)

// firsts are the classes that amounts, dates and calculations begin with; most words of a text are of none.
const firsts = "number scale half one minus ordinal currency function root arithmetic month weekday day next edge period ahead " +
	"back noon halfto ten quarter"

// lines reads a file.
func lines(name string, each func(first string, rest []string)) {
	text, _ := files.ReadFile("lexicon/" + name + ".txt")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		each(fields[0], fields[1:])
	}
}

func readLexicons() map[string]lexicon {
	out := map[string]lexicon{}
	for _, language := range codes {
		l := lexicon{"morpheme": {}}
		out[language] = l
		add := func(class string, fields []string) {
			if l[class] == nil {
				l[class] = map[string][]phrase{}
			}
			position := -1
			for _, field := range fields {
				phrases, means, given := strings.Cut(field, "=")
				if position++; !given {
					means = strconv.Itoa(position)
				} else if n, err := strconv.Atoi(means); err == nil {
					position = n
				}
				for written := range strings.SplitSeq(phrases, ",") {
					words := strings.Split(written, "_")
					if (class == "number" || class == "scale") && len(words) == 1 {
						l["morpheme"][written] = append(l["morpheme"][written], phrase{nil, means})
					}
					list := append(l[class][words[0]], phrase{words[1:], means})
					slices.SortStableFunc(list, func(a, b phrase) int { return len(b.rest) - len(a.rest) })
					l[class][words[0]] = list
				}
			}
		}
		lines(language, add)
		lines("all", add)
		l["first"] = map[string][]phrase{}
		for class := range strings.FieldsSeq(firsts) {
			for word, phrases := range l[class] {
				l["first"][word] = append(l["first"][word], phrases...)
			}
		}
	}
	return out
}

func readFactors() map[string]factor {
	out := map[string]factor{}
	lines("units", func(measure string, units []string) {
		for _, field := range units {
			unit, times, _ := strings.Cut(field, "=")
			out[unit] = factor{measure, times}
		}
	})
	return out
}

func readGrammar() map[string][][]element {
	out := map[string][][]element{}
	lines("grammar", func(rule string, sequence []string) {
		var elements []element
		for _, field := range sequence {
			var e element
			field, e.tight = strings.CutPrefix(field, "~")
			field, e.optional = strings.CutSuffix(field, "?")
			if unicode.IsLetter(rune(field[0])) {
				field, e.means, _ = strings.Cut(field, "=")
				bounds := append(strings.Split(field, ":"), "", "")
				field, e.low, e.high = bounds[0], bounds[1], bounds[2]
			}
			e.name = field
			elements = append(elements, e)
		}
		out[rule] = append(out[rule], elements)
	})
	return out
}
