package llm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

// TestKeyIsGoneBeforeTheCut: not even a part of the key is left where a long message is cut.
func TestKeyIsGoneBeforeTheCut(t *testing.T) {
	for _, at := range []int{0, 280, 290, 299, 2390, 5000} {
		for _, gap := range []string{"x", " ", "\n"} {
			f := connect(t, nil)
			f.Answer(llmtest.Reply{Status: 401, Text: strings.Repeat(gap, at) + apiKey})
			_, err := f.llm.Complete(t.Context(), ask("?"))
			if err == nil || strings.Contains(err.Error(), apiKey[:8]) {
				t.Errorf("after %d of %q: got error %q, want one without any of the key", at, gap, err)
			}
		}
	}
}

// TestOddStreams: what is no stream in name or in form is read for what it is.
func TestOddStreams(t *testing.T) {
	whole := `{"choices":[{"message":{"content":"Hello"}}]}`
	chunks := frames(`{"choices":[{"delta":{"content":"Hello"}}]}`, `[DONE]`)
	for _, row := range []struct{ name, kind, raw, want string }{
		{"JSON called a stream", "text/event-stream", whole, ""},
		{"stream called JSON", "application/json", chunks, ""},
		{"stream called text", "text/plain", chunks, ""},
		{"stream that begins with a comment", "text/plain", ":\n\n" + chunks, ""},
		{"stream that begins with an event", "text/plain", "event: message\n" + chunks, ""},
		{"byte order mark", "application/json", "\ufeff" + whole, ""},
		{"page called JSON", "application/json", "<html>", "HTML"},
		{"prose", "text/plain", "All models are busy.", "text/plain"},
		{"image", "image/png", "\x89PNG", "image/png"},
		{"empty stream", "text/event-stream", "", "nothing"},
		{"broken JSON", "application/json", `{"choices":[`, "not a completion"},
		{"list", "application/json", `[1]`, "not a completion"},
		{"no message", "application/json", `{"choices":[{}]}`, "not a completion"},
		{"event of another form", "text/event-stream", frames(`{"choices":7}`), "unexpected form"},
		{"array in the stream", "text/event-stream", frames(`[]`), "unexpected form"},
		{"large event in many lines", "text/event-stream", strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 2000), "larger than"},
		{"large document", "application/json", `{"choices":[{"message":{"content":"` + strings.Repeat("x", 3<<20) + `"}}]}`, "larger than"},
		{"endless comments", "text/event-stream", ":\n" + strings.Repeat(": "+strings.Repeat("x", 1000)+"\n", 35_000), "larger than"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := connect(t, nil)
			f.Answer(llmtest.Reply{Raw: row.raw + " ", RawType: row.kind})
			began := time.Now()
			got, err := f.llm.Complete(t.Context(), ask("?"))
			if row.want == "" {
				if err != nil || got.Text != "Hello" {
					t.Errorf("got %q, %v, want the answer", got.Text, err)
				}
				return
			}
			f.expect(t, got, err, llm.Invalid, 0)
			if !strings.Contains(err.Error(), row.want) {
				t.Errorf("got error %q, want %q in it", err, row.want)
			}
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// FuzzAnswer: whatever an endpoint sends, there is a text or an error, in bounded time.
func FuzzAnswer(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n", true)
	f.Add("event: error\ndata: x\n\n", true)
	f.Add("{\"error\":{\"message\":[]}}", false)
	f.Add("[{\"error\":1}]", false)
	f.Add("data: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"content\":[{\"type\":\"output_text\",\"text\":\"x\"}]}]}}\n\n", true)
	s, err := llmtest.Start("127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	clients := map[string]*llm.Client{}
	for _, api := range []string{llm.APIChat, llm.APIResponses} {
		clients[api] = llm.New(llm.Config{BaseURL: s.BaseURL, Model: "stub", API: api, Timeout: 5 * time.Second}, llm.Options{RetryDelay: time.Microsecond})
		f.Cleanup(clients[api].Close)
	}
	f.Fuzz(func(t *testing.T, raw string, stream bool) {
		kind := "application/json"
		if stream {
			kind = "text/event-stream"
		}
		s.Reset()
		s.Answer(llmtest.Reply{Raw: raw + "\n", RawType: kind})
		for api, c := range clients {
			got, err := c.Complete(t.Context(), ask("?"))
			if (err == nil) != (got.Text != "") {
				t.Errorf("%s: got %q and error %v, want one of them", api, got.Text, err)
			}
			if err != nil && (strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > 500) {
				t.Errorf("%s: got error %q, want one short line", api, err)
			}
		}
	})
}
