package llm_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/llm"
)

// recorded is a transport that answers every request with the same bytes.
type recorded struct {
	kind string
	body []byte
}

// RoundTrip implements http.RoundTripper.
func (r recorded) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {r.kind}}, Request: req,
		Body: io.NopCloser(bytes.NewReader(r.body)),
	}, nil
}

// FuzzResponse feeds arbitrary responses to each API: the result is an answer or one error, and never a part of an
// answer.
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		events(messageStart, textStart, hello, there, blockStop, endTurn, messageStop),
		frames(messageStart, hello, endTurn), frames(`{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`),
		frames(`{"type":"response.completed","response":{"output":[]}}`), `{"type":"message","content":[]}`, "event: \ndata: {}\n\n", "<html>", "",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, stream bool) {
		kind := "application/json"
		if stream {
			kind = "text/event-stream"
		}
		for _, api := range []string{llm.APIChat, llm.APIResponses, llm.APIAnthropic} {
			c := llm.New(llm.Config{BaseURL: "http://x/v1", Model: "m", API: api}, llm.Options{
				HTTPClient: &http.Client{Transport: recorded{kind, body}}, RetryDelay: time.Nanosecond,
			})
			got, err := c.Complete(t.Context(), ask("?"))
			var e *llm.Error
			if err == nil && got.Text == "" || err != nil && (!errors.As(err, &e) || got.Text != "") {
				t.Errorf("%s: got %q, %v", api, got.Text, err)
			}
		}
	})
}
