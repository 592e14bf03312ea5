package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// TestUnmet_NamesWhatAWriteLacks checks that a command for a write with a part of its arguments asks for the others.
func TestUnmet_NamesWhatAWriteLacks(t *testing.T) {
	for question, missing := range map[string][]string{
		"Send an email to bob@example.com saying hello":                              {"subject"},
		"Email bob@example.com":                                                      {"subject", "body"},
		"send_email to bob@example.com":                                              {"subject", "body"},
		"Send an email to bob@example.com with the subject \"Lunch\"":                {"body"},
		"Please send an e-mail to bob@example.com saying that I am late":             {"subject"},
		"Send an email to bob@example.com with subject \"Hi\" and body \"At noon?\"": nil,
	} {
		p := planned(t, question, sendEmail, webSearch)
		if missing == nil {
			if len(p.Steps) != 1 || len(p.Unmet) > 0 {
				t.Errorf("%s: got %s and %+v, want one call and nothing unmet", question, calls(p), p.Unmet)
			}
			continue
		}
		if len(p.Unmet) != 1 || p.Unmet[0].Reason != plan.UnmetMissingArgument || p.Unmet[0].Tool != "send_email" {
			t.Errorf("%s: got %+v, want what send_email lacks", question, p.Unmet)
			continue
		}
		if got := p.Unmet[0].Missing; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(missing))) {
			t.Errorf("%s: got %q missing, want %q", question, got, missing)
		}
		if len(p.Open) != 1 || !strings.Contains(string(p.Open[0].Arguments), "bob@example.com") {
			t.Errorf("%s: got the open calls %+v, want one with the address", question, p.Open)
		}
	}
}

func TestUnmet_WithoutConsentNothingIsOpen(t *testing.T) {
	for _, question := range []string{
		"Should I email bob@example.com?", "Don't email bob@example.com", "I emailed bob@example.com", "What if I email bob@example.com?",
		"Bob told me to email bob@example.com", "If it rains, email bob@example.com", "Should I send an email?", "Don't send_email",
		"If it rains, send an email", "What does send_email do?",
	} {
		if p := planned(t, question, sendEmail); len(p.Open) > 0 || len(p.Steps) > 0 {
			t.Errorf("%s: got %s and the open calls %+v, want none", question, calls(p), p.Open)
		}
	}
}

// TestUnmet_CommandWithoutArguments checks that a write whose whole name is said lacks all that it needs, and that no
// other tool takes the name for a value.
func TestUnmet_CommandWithoutArguments(t *testing.T) {
	for _, question := range []string{"Send an email", "Send email", "send_email", "Please `send_email`."} {
		p := planned(t, question, sendEmail, webSearch)
		if len(p.Steps) > 0 || len(p.Open) != 1 || len(p.Unmet) != 1 || p.Unmet[0].Reason != plan.UnmetMissingArgument || len(p.Unmet[0].Missing) != 3 {
			t.Errorf("%s: got %s and %+v, want all that send_email needs", question, calls(p), p.Unmet)
			continue
		}
		if !strings.Contains(question, p.Unmet[0].Text) {
			t.Errorf("%s: got the part %q, want the words of the question", question, p.Unmet[0].Text)
		}
	}
}

// TestNearest_SharesAWord checks that a tool is named that shares the only word of the question.
func TestNearest_SharesAWord(t *testing.T) {
	p := planned(t, "Calculate something", tool("calculate", "Calculate an expression", object("*expression:string:Expression")))
	if len(p.Unmet) != 1 || len(p.Unmet[0].Nearest) != 1 || !slices.Equal(p.Unmet[0].Nearest[0].Missing, []string{"expression"}) {
		t.Errorf("got %+v, want calculate and what it lacks", p.Unmet)
	}
}

func TestUnmet_ManyParts(t *testing.T) {
	p := planned(t, "Show order A-99812, bake a cake and play some jazz", getOrder)
	var got []string
	for _, u := range p.Unmet {
		got = append(got, u.Text)
	}
	if text := strings.Join(got, "|"); !strings.Contains(text, "cake") || !strings.Contains(text, "jazz") || strings.Contains(text, "order") {
		t.Errorf("got the unmet parts %q, want the cake and the jazz", got)
	}
}

func TestNearest_AtMostThree(t *testing.T) {
	var tools []plan.Tool
	for _, kind := range []string{"paper", "photo", "label", "poster", "ticket"} {
		tools = append(tools, tool("order_"+kind, "Order "+kind, object("*size:string:Size", "*address:string:Address")))
	}
	p := planned(t, "where is my order of something else", tools...)
	for _, u := range p.Unmet {
		if len(u.Nearest) > 3 {
			t.Errorf("got %d nearest tools, want at most three", len(u.Nearest))
		}
		for _, n := range u.Nearest {
			if len(n.Missing) == 0 {
				t.Errorf("got the nearest tool %+v, want what it lacks", n)
			}
		}
	}
}
