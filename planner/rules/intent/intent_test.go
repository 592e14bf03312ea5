package intent

import "testing"

func TestSplit_ClausesOfOneSentence(t *testing.T) {
	for question, want := range map[string][]Act{
		"Cancel order 5 and tell me who works in Berlin": {Command, Question},
		"Do not cancel or delete order 5":                {Negated, Negated},
		"Do not cancel order 5, list my orders instead":  {Negated, Command},
		"Who works in Berlin and email them the agenda":  {Question, Command},
		"find the invoice and then pay it":               {Command, Command},
	} {
		var got []Act
		for _, c := range Split(question) {
			got = append(got, c.Act)
		}
		if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("Split(%q): got %v, want %v", question, got, want)
		}
	}
}
