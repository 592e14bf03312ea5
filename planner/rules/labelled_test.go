package rules

import (
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

func TestQuoteTexts(t *testing.T) {
	for asked, want := range map[string]string{
		"Email a@b.co with subject Hi and body Hello, Bob":             `Email a@b.co with subject "Hi" and body "Hello, Bob"`,
		"Email a@b.co with the subject Hi and the text See you. Now?":  `Email a@b.co with the subject "Hi" and the text "See you." Now?`,
		"Email with subject Hi there to a@b.co saying hello":           `Email with subject "Hi there" to a@b.co saying hello`,
		`Email a@b.co with subject "Hi" and body Hello`:                `Email a@b.co with subject "Hi" and body "Hello"`,
		"Email a@b.co, subject Hi, body Hello":                         `Email a@b.co, subject: "Hi", body: "Hello"`,
		"File an issue with title Crash and body It crashes!":          `File an issue with title "Crash" and body "It crashes!"`,
		"Email a@b.co with subject: Hi and body: Hello":                "",
		"Email a@b.co with the subject of the last mail":               "",
		"Find the report and message Bob":                              "",
		"Open the page with title Home":                                "",
		"with subject ":                                                "",
		"Email a@b.co with subject Hi and body Hello, but do not send": "",
		"Email a@b.co with subject Hi and body Hello and delete it":    "",
		"Email a@b.co with subject Hi and body Hello if Bob is there":  "",
	} {
		if want == "" {
			want = asked
		}
		q := quoteTexts(asked)
		if q.text != want {
			t.Errorf("got %s, want %s", q.text, want)
		}
		if got := q.plain(q.text); got != asked {
			t.Errorf("got %s, want %s again", got, asked)
		}
	}
	q := quoteTexts("If so, email a@b.co with subject Hi and body Hello")
	p := plan.Plan{Unmet: []plan.Unmet{{Text: `subject "Hi"`}, {Text: `body "Hello"`}}, Steps: []plan.Step{{Serves: "email"}}}
	q.restore(&p)
	if p.Unmet[0].Text != "subject Hi" || p.Unmet[1].Text != "body Hello" || p.Steps[0].Serves != "email" {
		t.Errorf("got %+v and %q, want the words of the question", p.Unmet, p.Steps[0].Serves)
	}
}
