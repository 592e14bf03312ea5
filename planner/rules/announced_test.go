package rules

import (
	"strings"
	"testing"
)

// TestAnnouncedTexts checks where texts without quotation marks begin and end; "?" stands behind one that may go on.
func TestAnnouncedTexts(t *testing.T) {
	for asked, want := range map[string]string{
		"Email a@b.co with subject Hi and body Hello, Bob":             "subject=Hi body=Hello, Bob",
		"Email a@b.co with the subject Hi and the text See you. Now?":  "subject=Hi text=See you.",
		"Email with subject Hi there to a@b.co saying hello":           "subject=Hi there",
		`Email a@b.co with subject "Hi" and body Hello`:                "body=Hello",
		"Email a@b.co, subject Hi, body Hello":                         "subject=Hi body=Hello",
		"File an issue with title Crash and body It crashes!":          "title=Crash body=It crashes!",
		"Email a@b.co with subject: Hi and body: Hello":                "",
		"Email a@b.co with the subject of the last mail":               "",
		"Find the report and message Bob":                              "",
		"Open the page with title Home":                                "",
		"with subject ":                                                "",
		"Email a@b.co with subject Hi and body Hello, but do not send": "subject=Hi body=Hello?",
		"Email a@b.co with subject Hi and body Hello and delete it":    "subject=Hi body=Hello?",
		"Email a@b.co with subject Hi and body Hello if Bob is there":  "subject=Hi body=Hello?",
		"add a todo with content - go to gym":                          "content=go to gym",
		"stop it using the exact command halt /t 0":                    "command=halt /t 0",
		"show the date using the same command":                         "",
		"Email a@b.co with content and send it":                        "",
		"show the date using the echo %date% command":                  "command=echo %date%",
	} {
		texts, masked := announcedTexts(asked)
		var got []string
		for _, v := range texts {
			mark := ""
			if len(v.Alternatives) > 0 {
				mark = "?"
			} else if strings.Trim(masked[v.Start:v.End], "_") != "" {
				t.Errorf("%s: got %q, want %q masked", asked, masked, v.Text)
			}
			got = append(got, v.Label+"="+v.Text+mark)
		}
		if strings.Join(got, " ") != want || len(masked) != len(asked) {
			t.Errorf("%s: got %q, want %q", asked, got, want)
		}
	}
}
