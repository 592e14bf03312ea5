package synth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
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

// cite returns which of the quotes an answer gets to cite.
func cite(outcome plan.Outcome, quotes ...string) (found []bool) {
	var text strings.Builder
	for _, quote := range quotes {
		fmt.Fprintf(&text, "x [%s: \"%s\"] ", outcome.Step.ID, quote)
	}
	s := synth.New(synth.Options{Model: says(text.String())})
	got := s.Compose(context.Background(), synth.Request{Outcomes: []plan.Outcome{outcome}})
	for _, quote := range quotes {
		has := false
		for _, c := range got.Citations {
			has = has || c.Quote == quote
		}
		found = append(found, has)
	}
	return found
}

// letters returns n random letters.
func letters(random *rand.Rand, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte('a' + random.IntN(26))
	}
	return string(text)
}

// TestQuotesOfEveryLength: a quote of any length is found wherever it stands, alone and among others, and one that
// differs in its first or last letter is not.
func TestQuotesOfEveryLength(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := letters(random, 3000)
	o := worked("s1", "s", "read", `{"ok":true}`)
	o.Text = text
	var among []string
	for n := 1; n <= 400; n++ {
		if n > 40 && n%37 != 0 {
			continue
		}
		for _, at := range []int{0, 1, 7, 1000 + n, len(text) - n - 1, len(text) - n} {
			quote := text[at : at+n]
			if got := cite(o, quote); !got[0] {
				t.Errorf("%d letters at %d: got no quote", n, at)
			}
			if n < 8 {
				continue // another one like it may be there
			}
			among = append(among, quote)
			for _, wrong := range []string{"X" + quote[1:], quote[:n-1] + "X", quote[:n/2] + "X" + quote[n/2+1:]} {
				if got := cite(o, wrong); got[0] {
					t.Errorf("%d letters at %d: got the quote %q, which is not there", n, at, wrong)
				}
			}
		}
	}
	for len(among) > 0 {
		n := min(100, len(among))
		for i, found := range cite(o, among[:n]...) {
			if !found {
				t.Errorf("among others: got no quote of %d letters", len(among[i]))
			}
		}
		among = among[n:]
	}
}

// TestQuotesBehindEscapes: wherever an escape stands within long JSON, also between pieces that are read at once.
func TestQuotesBehindEscapes(t *testing.T) {
	escapes := map[string]string{
		`\u00e9`: "é", `\u20AC`: "€", `\ud83d\ude00`: "😀", `\/`: "/", `\\`: `\`, `\t`: "\t", `\u0041`: "A",
		`\ud83d`: "\uFFFD", `\ud83dx`: "\uFFFDx", `\ud83d\u0041`: "\uFFFDA", `\b`: "\b", `\f`: "\f", `\r`: "\r",
	}
	const piece = 64 << 10
	for escape, char := range escapes {
		for i := range 30 {
			place := piece - i
			before := strings.Repeat("abcdefghij", place/10) + strings.Repeat("x", place%10)
			value := `{"a":"` + before + "left" + escape + "right" + strings.Repeat("y", 90_000) + `"}`
			o := plan.Outcome{Step: plan.Step{ID: "s1", Tool: "read"}, Value: json.RawMessage(value)}
			got := cite(o, "left"+char+"right", "left"+char+"wrong", "abcdefghijabcdefghij left")
			if !reflect.DeepEqual(got, []bool{true, false, false}) {
				t.Errorf("%s at %d: got %v", escape, place, got)
			}
		}
	}
	o := plan.Outcome{Step: plan.Step{ID: "s1"}, Value: json.RawMessage(`"one\ntwo caf\u00e9"`), Text: "one\ntwo café"}
	if got := cite(o, "two café", `one\ntwo caf\u00e9`, "one two"); !reflect.DeepEqual(got, []bool{true, true, false}) {
		t.Errorf("text that is the value: got %v", got)
	}
	o.Text = "something else"
	if got := cite(o, "two café", "thing else"); !reflect.DeepEqual(got, []bool{true, true}) {
		t.Errorf("text beside the value: got %v", got)
	}
}

// TestQuotesAlike: many quotes that begin alike, as lines of a log do, are told apart.
func TestQuotesAlike(t *testing.T) {
	var lines, quotes []string
	for i := range 2000 {
		lines = append(lines, fmt.Sprintf("2026-11-22T18:41:%02d INFO request %d served in %d ms", i%60, i, i*7%1000))
	}
	for i := range 100 {
		quotes = append(quotes, lines[i*19], strings.Replace(lines[i*19], "served", "denied", 1))
	}
	o := worked("s1", "s", "read", `null`)
	o.Text = strings.Join(lines, "\n")
	for i, found := range cite(o, quotes...) {
		if found != (i%2 == 0) {
			t.Errorf("quote %q: got %v", quotes[i], found)
		}
	}
}

func TestCitationsAreBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	o := worked("s1", "s", "read", `null`)
	o.Text = letters(random, 100_000)
	var quotes []string
	for i := range 2000 {
		quotes = append(quotes, fmt.Sprintf("x [s1: \"%s\"]", o.Text[i*40:i*40+30]))
	}
	s := synth.New(synth.Options{Model: says(strings.Join(quotes, " "))})
	got := s.Compose(t.Context(), synth.Request{Outcomes: []plan.Outcome{o}})
	if len(got.Citations) != 256 || got.Citations[255].Quote != o.Text[255*40:255*40+30] {
		t.Errorf("got %d citations, want the first 256", len(got.Citations))
	}
	if strings.Count(got.Text, "[s1]") != 2000 {
		t.Errorf("got %d marks in the text, want all", strings.Count(got.Text, "[s1]"))
	}
}

// FuzzAnswerGrows: each piece that is shown continues the one before and is a beginning of the answer.
func FuzzAnswerGrows(f *testing.F) {
	for _, text := range []string{
		`One [s1: "twice as fast"], two [s1, s9] and [s3 failed].`, "a<think>b</think>c", "[[s1]]]",
		"x [s1: “a”] <thin", "[s1 failed] [s3; s3 failed] é[s1 not done]",
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

// TestLargeResults: what an answer over 100 MiB of results takes beside them is bounded, and all its quotes are found.
func TestLargeResults(t *testing.T) {
	for _, form := range []string{"text", "json", "escaped"} {
		outcomes, answer := large(form, 4, true)
		for name, opts := range map[string]synth.Options{"model": {Model: says(answer)}, "digest": {}} {
			s := synth.New(opts)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := s.Compose(t.Context(), synth.Request{Query: largeQuestion, Outcomes: outcomes, OnText: func(string) {}})
			runtime.ReadMemStats(&after)
			if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 48<<20 {
				t.Errorf("%s, %s: got %d bytes allocated", form, name, bytes)
			}
			quoted := 0
			for _, c := range got.Citations {
				if c.Quote != "" {
					quoted++
				}
			}
			if name == "model" && quoted != largeQuotes {
				t.Errorf("%s: got %d quotes, want %d", form, quoted, largeQuotes)
			}
		}
	}
}
