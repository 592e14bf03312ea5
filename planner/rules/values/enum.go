package values

import (
	"slices"
	"strings"
)

// Mention is a choice that a text names.
type Mention struct {
	Choice     string
	Start, End int // bytes in the text
}

// Enum finds the choices that a text names, in their order, whatever their case, separators and endings; a unit or a
// currency also by its other names. Of mentions that overlap the longest counts. A choice may be named several times.
func Enum(text string, choices []string) (out []Mention) {
	read := func(text string) (tokens []token, stems []string) {
		for _, t := range tokenize(text, nil) {
			if t.kind != 'p' || strings.Contains("$€£¥%°+#", t.fold) {
				tokens, stems = append(tokens, t), append(stems, stem(t.fold))
			}
		}
		return tokens, stems
	}
	byFirst, split := map[string][]int{}, make([][]string, len(choices))
	for i, choice := range choices {
		if strings.ToUpper(choice) != choice { // inProgress
			choice = strings.Join(words(choice), " ")
		}
		if _, split[i] = read(choice); len(split[i]) > 0 {
			byFirst[split[i][0]] = append(byFirst[split[i][0]], i)
		}
	}
	tokens, stems := read(text)
	for i := 0; i < len(tokens); i++ {
		best := -1
		for _, c := range byFirst[stems[i]] {
			end := i + len(split[c])
			if end <= len(stems) && slices.Equal(stems[i:end], split[c]) && (best < 0 || len(split[c]) > len(split[best])) {
				best = c
			}
		}
		if best >= 0 {
			start := tokens[i].start
			i += len(split[best]) - 1
			out = append(out, Mention{choices[best], start, tokens[i].end})
		}
	}
	return out
}

// stem is what the forms of a word have in common; units and currencies are their symbols.
func stem(word string) string {
	for _, class := range []string{"unit", "currency"} {
		if symbol := meaning(word, class); symbol != "" {
			return "=" + symbol
		}
	}
	for _, ending := range []string{"ies", "es", "en", "s", "e", "y", "n"} {
		if rest, ok := strings.CutSuffix(word, ending); ok && len(rest) > 3 {
			return rest
		}
	}
	return word
}
