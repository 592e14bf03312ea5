package intent

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func FuzzSplit(f *testing.F) {
	for _, g := range grammars {
		g.each(g.wrapped[:8], func(sentence, _ string) { f.Add(sentence) })
	}
	for _, s := range []string{"", " ", "\n", ">", "> ", "“", "'", "```", "don't", "n't", "'s", "’s", "a’", "l’", "-", "e.g.", "3.", "\xff\xfe", "İ’d", "…",
		"a:\n\nb", "no.", ":", "DO:", "S( n,", "¿", "cancel order 5:", "and", "and and", ", , ,", "please", "don't\ncancel it", "1. a\n2. b\n- c", "K’s", "x-tu"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, question string) {
		at := 0
		for _, c := range Split(question) {
			if c.Start < at || c.End <= c.Start || c.End > len(question) {
				t.Fatalf("Split(%q): got a span [%d,%d) after %d, want ordered spans", question, c.Start, c.End, at)
			}
			if c.Text != question[c.Start:c.End] {
				t.Fatalf("Split(%q): got text %q, want %q", question, c.Text, question[c.Start:c.End])
			}
			if utf8.ValidString(question) && (!utf8.ValidString(c.Text) || !utf8.ValidString(question[at:c.Start])) {
				t.Fatalf("Split(%q): got a span [%d,%d) inside of a character", question, c.Start, c.End)
			}
			if c.Act.MayWrite() && c.Verb == "" {
				t.Fatalf("Split(%q): got %v without a verb, want one", question, c.Act)
			}
			if c.Act > Statement || (c.Act == Unknown) != (c.Language == "") && c.Act != Quoted {
				t.Fatalf("Split(%q): got act %v in %q", question, c.Act, c.Language)
			}
			at = c.End
		}
	})
}

// TestSplit_Linear doubles long inputs of one kind and bounds the time of the longest.
func TestSplit_Linear(t *testing.T) {
	for _, unit := range []string{"cancel order 5, ", "and ", "“", "' ", "'a ", "would a ", "if ", ", ", ". ", "\n", "never ", ": ", "» ", "list my orders and ",
		"a", "é", "a.", "1,", "wenn ", "der die, ", "könntest du ", "que ", "ne pas ", "no ", "s'", "l'", "a-le", "> ",
		"```", "please ", "("} {
		long := strings.Repeat(unit, 200_000/len(unit))
		start := time.Now()
		Split(long)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("Split of %d bytes of %q took %v, want time linear in the length", len(long), unit, took)
		}
	}
}
