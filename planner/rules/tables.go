package rules

import (
	"embed"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

//go:embed words.txt score.txt places.txt languages.txt
var files embed.FS

// stems is a set of stems, or of words as they are.
type stems map[string]bool

func (s stems) any(of []string) bool {
	return slices.ContainsFunc(of, func(stem string) bool { return s[stem] })
}

// meets reports whether two sets have one in common.
func (s stems) meets(o stems) bool { return s.any(slices.Collect(maps.Keys(o))) }

func (s stems) add(of []string) {
	for _, stem := range of {
		s[stem] = true
	}
}

// tables are what the embedded files say.
type tables struct {
	lists      map[string]stems     // words.txt by the names of the lists
	groups     []stems              // its verbs that ask for the same kind of thing
	suits      map[string][]float64 // score.txt: how well forms of values suit roles of parameters
	languages  map[string]string    // English names of languages by their codes
	regionOf   map[string]string    // large cities in lower case with the code of their state or the name of their country
	regionCode map[string]string    // names of states and countries with their codes
}

// table reads the tables when the first question comes.
var table = sync.OnceValue(func() *tables {
	t := &tables{map[string]stems{}, nil, map[string][]float64{}, map[string]string{}, map[string]string{}, map[string]string{}}
	read := func(file string, each func(name, entries string)) {
		text, _ := files.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			if name, entries, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && line[0] != '#' {
				each(name, entries)
			}
		}
	}
	read("words.txt", func(name, words string) {
		name, literal := strings.CutPrefix(name, "=")
		set := t.lists[name]
		if set == nil || name == "group" {
			set = stems{}
			t.lists[name] = set
		}
		if name == "group" {
			t.groups = append(t.groups, set)
		}
		for w := range strings.FieldsSeq(words) {
			if !literal {
				w = search.Stem(w)
			}
			set[w] = true
		}
	})
	read("score.txt", func(form, scores string) {
		for score := range strings.FieldsSeq(scores) {
			n, _ := strconv.ParseFloat(score, 64)
			t.suits[form] = append(t.suits[form], n)
		}
	})
	read("languages.txt", func(code, name string) { t.languages[code] = name })
	read("places.txt", func(code, entries string) {
		names, cities, _ := strings.Cut(entries, ": ")
		for name := range strings.SplitSeq(names, ", ") {
			t.regionCode[name] = code
		}
		for city := range strings.SplitSeq(cities, ", ") {
			if t.regionOf[city] == "" {
				t.regionOf[city] = code
			}
		}
	})
	return t
})

// list is a list of words.txt.
func list(name string) stems { return table().lists[name] }

// sameGroup reports whether two verbs ask for the same kind of thing.
func sameGroup(a, b string) bool {
	return slices.ContainsFunc(table().groups, func(g stems) bool { return g[a] && g[b] })
}

var lazy = values.Lazy
