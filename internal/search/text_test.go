package search

import (
	"slices"
	"strings"
	"testing"
)

func TestStemJoinsForms(t *testing.T) {
	for _, forms := range []string{
		"day days", "city cities", "retrieve retrieves retrieving retrieved", "calculate calculator calculation calculating", "buy bought buys buying",
		"write writing wrote written", "child children", "translate translation translating", "recommend recommends recommended", "id ids", "use using used",
	} {
		words := strings.Fields(forms)
		for _, w := range words[1:] {
			if Stem(w) != Stem(words[0]) {
				t.Errorf("%s and %s: got %q and %q", words[0], w, Stem(words[0]), Stem(w))
			}
		}
	}
	for _, pair := range [][2]string{{"news", "new"}, {"universe", "unit"}, {"host", "hostel"}} {
		if Stem(pair[0]) == Stem(pair[1]) {
			t.Errorf("%v have one stem %q", pair, Stem(pair[0]))
		}
	}
}

func TestClauses(t *testing.T) {
	for text, want := range map[string][]string{
		"What's the latest AI news and what's 15% of $2500?":        {"What's the latest AI news", "what's 15% of $2500?"},
		"Get the weather, then send a mail to Bob and Ann.":         {"Get the weather", "send a mail to Bob and Ann."},
		"Find red and blue shoes":                                   {"Find red and blue shoes"},
		`Post "Come home. And then call me" to the wall`:            {`Post "Come home. And then call me" to the wall`},
		"Translate 'bonjour' and also find the lyrics of 'Let Go'.": {"Translate 'bonjour'", "find the lyrics of 'Let Go'."},
		"Search for": {"Search for"},
		"":           nil,
	} {
		if got := clausesOf(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestThesaurus(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{{"film", "movie", true}, {"create", "post", true}, {"new", "add", true}, {"purchase", "buy", true}, {"movie", "movie", true}, {"movie", "weather", false}} {
		if got := Related(Stem(tc.a), Stem(tc.b)); got != tc.want {
			t.Errorf("%s and %s: got %v", tc.a, tc.b, got)
		}
	}
}

func FuzzClauses(f *testing.F) {
	for _, s := range []string{"a and then b", `"and find`, "., ; ? !", "e.g. 'x' and get y", "天气？新闻", ". a. b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		total := 0
		for _, c := range clausesOf(text) {
			total += len(c)
		}
		if total > len(text) {
			t.Errorf("clauses of %q are longer than it", text)
		}
	})
}
