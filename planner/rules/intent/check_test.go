package intent

import (
	"strings"
	"testing"
)

// check splits the sentences of a table with lines "Act[:verb] … | sentence". A verb is compared where one is given.
func check(t *testing.T, language, table string) {
	t.Helper()
	for line := range strings.Lines(table) {
		acts, sentence, ok := strings.Cut(strings.TrimSpace(line), " | ")
		if !ok {
			continue
		}
		want := strings.Fields(acts)
		got := Split(sentence)
		same := len(got) == len(want)
		for i := 0; same && i < len(want); i++ {
			act, verb, named := strings.Cut(want[i], ":")
			quoted := got[i].Act == Quoted || got[i].Language == language
			same = got[i].Act.String() == act && (!named || got[i].Verb == verb) && quoted
		}
		if !same {
			t.Errorf("Split(%q): got %s, want %s in %q", sentence, describe(got), acts, language)
		}
	}
}

func describe(clauses []Clause) string {
	var out []string
	for _, c := range clauses {
		out = append(out, c.Act.String()+":"+c.Verb+" "+c.Language+" ["+c.Text+"]")
	}
	return strings.Join(out, ", ")
}
