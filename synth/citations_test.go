package synth_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/synth"
)

// says is a model that answers every question with the same text, in small pieces.
type says string

func (s says) Complete(_ context.Context, req llm.Request) (llm.Response, error) {
	if req.OnDelta != nil {
		for text := string(s); text != ""; {
			n := min(12, len(text))
			req.OnDelta(text[:n])
			text = text[n:]
		}
	}
	return llm.Response{Text: string(s), Usage: llm.Usage{Model: "says", Calls: 1}}, nil
}

// letters returns n random letters.
func letters(random *rand.Rand, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte('a' + random.IntN(26))
	}
	return string(text)
}

// TestQuotes: an answer cites what the model read in the result, with or without the escapes of JSON, and nothing else.
func TestQuotes(t *testing.T) {
	long := filler(1, 100_000)
	lines := strings.Split(long, "\n")
	hidden, last := lines[len(lines)/2], lines[len(lines)-2]
	marked := text("s1", lines[0]+"\nthe office opened late\n"+long)
	for _, row := range []struct {
		name    string
		outcome plan.Outcome
		quote   string
		want    bool
	}{
		{"in a text", text("s1", "one\ntwo café"), "two café", true},
		{"across lines", text("s1", "one\ntwo"), "one two", false},
		{"almost", text("s1", "one\ntwo café"), "two cafe", false},
		{"in JSON", worked("s1", "s", "read", `{"a":"one two"}`), `one two`, true},
		{"behind escapes", worked("s1", "s", "read", `{"a":"C:\\dir\/caf\u00e9 \ud83d\ude00 \\u0041\tA"}`), `C:\dir/café 😀 \u0041` + "\tA", true},
		{"as escaped", worked("s1", "s", "read", `{"a":"caf\u00e9"}`), `caf\u00e9`, true},
		{"in a passage", marked, "office opened", true},
		{"left out", marked, hidden, false},
		{"the last line, left out", marked, last, false},
		{"an omission", marked, "…", false},
		{"the size", marked, "bytes shown", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := synth.New(synth.Options{Model: says(fmt.Sprintf("x [s1: \"%s\"]", row.quote))})
			got := s.Compose(t.Context(), synth.Request{Query: "When did the office open?", Outcomes: []plan.Outcome{row.outcome}})
			want := []synth.Citation{{Step: "s1"}}
			if row.want {
				want[0].Quote = row.quote
			}
			if got.Text != "x [s1]" || !reflect.DeepEqual(got.Citations, want) {
				t.Errorf("got %q with %+v, want %+v", got.Text, got.Citations, want)
			}
		})
	}
}

func TestCitationsAreBounded(t *testing.T) {
	content := strings.ReplaceAll(filler(3, 30_000), "\n", " ")
	var quotes []string
	for i := range 900 {
		quotes = append(quotes, fmt.Sprintf("x [s1: \"%s\"]", content[i*30:i*30+30]))
	}
	s := synth.New(synth.Options{Model: says(strings.Join(quotes, " "))})
	got := s.Compose(t.Context(), synth.Request{Outcomes: []plan.Outcome{text("s1", content)}})
	if len(got.Citations) != 256 || got.Citations[255].Quote != content[255*30:255*30+30] {
		t.Errorf("got %d citations, want the first 256", len(got.Citations))
	}
	if strings.Count(got.Text, "[s1]") != 900 {
		t.Errorf("got %d marks in the text, want all", strings.Count(got.Text, "[s1]"))
	}
}

// FuzzAnswerGrows: each piece that is shown continues the one before and is a beginning of the answer.
func FuzzAnswerGrows(f *testing.F) {
	for _, text := range []string{
		`One [s1: "twice as fast"], two [s1, s9] and [s3 failed].`, "a<think>b</think>c", "[[s1]]]",
		"x [s1: “a”] <thin", "[more: x] y", "[more: x", "[s1 failed] [s3; s3 failed] é[s1 not done]",
	} {
		f.Add(text, 1)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		if size < 1 || strings.Contains(text, "</think>") || !utf8.ValidString(text) {
			return
		}
		req := synth.Request{Outcomes: []plan.Outcome{news, mail}}
		quiet := synth.New(synth.Options{Model: says(text)}).Compose(t.Context(), req)
		shown := ""
		req.OnText = func(text string) {
			if !strings.HasPrefix(text, shown) || !quiet.Degraded && !strings.HasPrefix(quiet.Text, text) {
				t.Errorf("got %q after %q, want a beginning of %q", text, shown, quiet.Text)
			}
			shown = text
		}
		if loud := synth.New(synth.Options{Model: says(text)}).Compose(t.Context(), req); !reflect.DeepEqual(loud, quiet) {
			t.Errorf("got %+v while it is shown, want %+v", loud, quiet)
		}
	})
}
