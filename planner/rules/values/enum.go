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
// currency also by its other names. Of mentions that overlap the longest counts. A choice may be mentioned several times.
func Enum(text string, choices []string) []Mention {
	tokens := tokenize(text, nil)
	tokens = slices.DeleteFunc(tokens, func(t token) bool { return t.kind == 'p' && !strings.ContainsRune("$€£¥%°", []rune(t.fold)[0]) })
	byFirst := map[string][]int{}
	split := make([][]string, len(choices))
	for i, choice := range choices {
		for _, t := range tokenize(strings.Join(splitCamel(choice), " "), nil) {
			if t.kind != 'p' || strings.ContainsRune("$€£¥%°", []rune(t.fold)[0]) {
				split[i] = append(split[i], stem(t.fold))
			}
		}
		if len(split[i]) > 0 {
			byFirst[split[i][0]] = append(byFirst[split[i][0]], i)
		}
	}
	var out []Mention
	for i := 0; i < len(tokens); {
		best, length := -1, 0
		for _, c := range byFirst[stem(tokens[i].fold)] {
			n := len(split[c])
			if n <= length || i+n > len(tokens) {
				continue
			}
			same := true
			for j, word := range split[c] {
				same = same && stem(tokens[i+j].fold) == word
			}
			if same {
				best, length = c, n
			}
		}
		if best < 0 {
			i++
			continue
		}
		out = append(out, Mention{choices[best], tokens[i].start, tokens[i+length-1].end})
		i += length
	}
	return out
}

// splitCamel splits inProgress into its words.
func splitCamel(s string) []string {
	if strings.ToUpper(s) == s || strings.ToLower(s) == s {
		return []string{s}
	}
	return words(s)
}

// stem is what the forms of a word have in common; units and currencies are their symbols.
func stem(word string) string {
	for _, language := range []string{"en", "de", "fr", "es"} {
		for _, class := range []string{"unit", "currency"} {
			for _, p := range lexicons[language][class][word] {
				if len(p.rest) == 0 {
					return "=" + p.means
				}
			}
		}
	}
	for _, ending := range []string{"ies", "es", "en", "s", "e", "y", "n"} {
		if rest, ok := strings.CutSuffix(word, ending); ok && len(rest) > 3 {
			return rest
		}
	}
	return word
}
