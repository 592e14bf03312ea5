package llm_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/llm/llmtest"
)

// events writes events in the form of the Messages API.
func events(data ...string) string {
	var out strings.Builder
	for _, d := range data {
		var event struct{ Type string }
		_ = json.Unmarshal([]byte(d), &event) // all are valid
		out.WriteString("event: " + event.Type + "\ndata: " + d + "\n\n")
	}
	return out.String()
}

// Parts of the recorded streams.
const (
	messageStart = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-opus-4-8","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":1}}}`
	textStart    = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	hello        = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`
	there        = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" there"}}`
	blockStop    = `{"type":"content_block_stop","index":0}`
	endTurn      = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`
	messageStop  = `{"type":"message_stop"}`
)

// TestRecordedMessages replays responses of the Messages API in the forms of its documentation.
func TestRecordedMessages(t *testing.T) {
	for _, row := range []struct {
		name, raw, kind string
		in, out         int
	}{
		{name: "streamed", in: 1125, out: 15, raw: events(messageStart, textStart, `{"type":"ping"}`, hello, there, blockStop, endTurn, messageStop)},
		{name: "without names", in: 1125, out: 15, raw: frames(messageStart, textStart, hello, there, blockStop, endTurn, messageStop)},
		{name: "with thinking", in: 1125, out: 15, raw: events(messageStart,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"I need to greet. {\"error\":1}"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds"}}`,
			blockStop,
			`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKAhgB"}}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"Hello"}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":" there"}}`,
			`{"type":"content_block_stop","index":2}`, endTurn, messageStop)},
		{name: "an event of a later version", in: 1125, out: 15, raw: events(messageStart, `{"type":"weather","sky":"blue"}`, textStart, hello, there,
			`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}`, blockStop, endTurn, messageStop)},
		{name: "not streamed", kind: "application/json", in: 12, out: 6,
			raw: `{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-8","content":[{"type":"thinking","thinking":"Greet.","signature":"x"},{"type":"text","text":"Hello there"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":12,"output_tokens":6}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := connect(t, func(c *llm.Config) { c.API = llm.APIAnthropic })
			kind := row.kind
			if kind == "" {
				kind = "text/event-stream; charset=utf-8"
			}
			f.Answer(llmtest.Reply{Raw: row.raw, RawType: kind})
			got, err := f.llm.Complete(t.Context(), ask("?"))
			if err != nil || got.Text != "Hello there" {
				t.Fatalf("got %q, %v", got.Text, err)
			}
			if got.Usage.InputTokens != row.in || got.Usage.OutputTokens != row.out {
				t.Errorf("got %d tokens in and %d out, want %d and %d, cached ones included", got.Usage.InputTokens, got.Usage.OutputTokens, row.in, row.out)
			}
		})
	}
}

// TestRecordedMessageErrors replays how the Messages API fails.
func TestRecordedMessageErrors(t *testing.T) {
	stopped := func(reason string) string {
		return events(messageStart, textStart, hello, blockStop, strings.Replace(endTurn, "end_turn", reason, 1), messageStop)
	}
	for _, row := range []struct {
		name, raw string
		status    int
		want      llm.Kind
		message   string
		refusal   bool
		calls     int
	}{
		{name: "overloaded", status: 529, raw: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`, want: llm.Server, message: "Overloaded", calls: 3},
		{name: "rate limit", status: 429, raw: `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit"}}`, want: llm.RateLimited, message: "rate limit", calls: 3},
		{name: "key", status: 401, raw: `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key ` + apiKey + `"}}`, want: llm.Refused, message: "invalid x-api-key [redacted]", calls: 1},
		{name: "model", status: 404, raw: `{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}`, want: llm.Refused, message: "model: claude-9", calls: 1},
		{name: "size", status: 413, raw: `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, want: llm.Refused, message: "maximum size", calls: 1},
		{name: "credit", status: 400, raw: `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, want: llm.Refused, message: "credit balance", calls: 1},
		{name: "prompt", status: 400, raw: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, want: llm.Refused, message: "too long", calls: 1},
		{name: "limit", status: 400, raw: `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens for stub"}}`, want: llm.Refused, message: "maximum allowed", calls: 1},
		{name: "overloaded in the stream", raw: events(messageStart, textStart, hello) + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", want: llm.RateLimited, message: "Overloaded", calls: 3},
		{name: "length", raw: stopped("max_tokens"), want: llm.Truncated, message: "length limit", calls: 1},
		{name: "context", raw: stopped("model_context_window_exceeded"), want: llm.Truncated, message: "length limit", calls: 1},
		{name: "refusal", raw: stopped("refusal"), want: llm.Refused, message: "the model declines", refusal: true, calls: 1},
		{name: "refusal with words", want: llm.Refused, message: "That would harm.", refusal: true, calls: 1,
			raw: events(messageStart, `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":"cyber","explanation":"That would harm."}},"usage":{"output_tokens":1}}`, messageStop)},
		{name: "pause", raw: stopped("pause_turn"), want: llm.Invalid, message: "pause_turn", calls: 1},
		{name: "no end", raw: events(messageStart, textStart, hello, blockStop), want: llm.Cut, message: "ended before", calls: 3},
		{name: "nothing", raw: events(messageStart, endTurn, messageStop), want: llm.Invalid, message: "empty", calls: 1},
		{name: "another shape", raw: events(`{"type":"message_start","message":7}`), want: llm.Invalid, message: "unexpected form", calls: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := connect(t, func(c *llm.Config) { c.API = llm.APIAnthropic })
			kind := "text/event-stream"
			if row.status != 0 {
				kind = "application/json"
			}
			f.Answer(llmtest.Reply{Raw: row.raw, RawType: kind, Status: row.status})
			req := ask("?")
			req.Schema = schema
			got, err := f.llm.Complete(t.Context(), req)
			f.expect(t, got, err, row.want, row.status)
			if !strings.Contains(err.Error(), row.message) || got.Usage.Calls != row.calls {
				t.Errorf("got %v after %d calls, want %q after %d", err, got.Usage.Calls, row.message, row.calls)
			}
			if e := (*llm.Error)(nil); errors.As(err, &e) && (e.Refusal != row.refusal || e.Declined() != row.refusal) {
				t.Errorf("got a refusal of the model: %t, want %t", e.Refusal, row.refusal)
			}
		})
	}
}

// TestMessageRequest: what each model gets for the settings, and where the cache ends.
func TestMessageRequest(t *testing.T) {
	for _, row := range []struct {
		model, effort string
		limit         int
		want, not     []string
	}{
		{"claude-opus-4-8", "", 0, []string{`"max_tokens":16000`}, []string{"thinking", "effort", "temperature"}},
		{"claude-opus-4-8", "minimal", 0, []string{`"thinking":{"type":"adaptive"}`, `"effort":"low"`, `"max_tokens":16000`}, []string{"budget"}},
		{"claude-sonnet-5", "xhigh", 900, []string{`"thinking":{"type":"adaptive"}`, `"effort":"xhigh"`, `"max_tokens":900`}, []string{"budget"}},
		{"anthropic/claude-haiku-4-5-20251001", "medium", 0, []string{`"thinking":{"budget_tokens":8192,"type":"enabled"}`, `"max_tokens":16192`}, []string{"effort"}},
		{"claude-sonnet-4-5", "max", 4000, []string{`"thinking":{"budget_tokens":2000,"type":"enabled"}`, `"max_tokens":4000`}, []string{"effort"}},
		{"claude-3-7-sonnet-20250219", "high", 2000, []string{`"max_tokens":2000`}, []string{"thinking"}},
		{"claude-opus-5", "none", 0, []string{`"thinking":{"type":"disabled"}`}, []string{"effort"}},
	} {
		f := connect(t, func(c *llm.Config) {
			c.API, c.Model, c.ReasoningEffort, c.MaxTokens = llm.APIAnthropic, row.model, row.effort, row.limit
			c.Verbosity = "low"
		})
		f.Answer(llmtest.Reply{Text: "{}"})
		req := ask("?")
		req.Schema = schema
		req.Messages = append(req.Messages, llm.Message{Role: llm.RoleAssistant, Content: "what?"}, llm.Message{Role: llm.RoleUser, Content: "this"})
		if _, err := f.llm.Complete(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		r := f.Requests()[0]
		always := []string{`"system":[{"cache_control":{"type":"ephemeral"},"text":"Be brief.","type":"text"}]`, `"schema":` + string(schema.Strict), `"role":"assistant"`}
		for _, want := range append(always, row.want...) {
			if !strings.Contains(string(r.Body), want) {
				t.Errorf("%s %s: got %s, want %s in it", row.model, row.effort, r.Body, want)
			}
		}
		for _, not := range append(row.not, "verbosity") {
			if strings.Contains(string(r.Body), not) {
				t.Errorf("%s %s: got %s, want no %s in it", row.model, row.effort, r.Body, not)
			}
		}
		if r.Header.Get("Anthropic-Version") != "2023-06-01" || r.Header.Get("X-Api-Key") != apiKey || r.Header.Get("Authorization") != "" || r.Path != "/v1/messages" {
			t.Errorf("got %s with headers %v", r.Path, r.Header)
		}
	}
}

// TestMessageFallback: a model without structured outputs gets the prompt alone, and one without thinking does not think.
func TestMessageFallback(t *testing.T) {
	f := connect(t, func(c *llm.Config) { c.API, c.ReasoningEffort = llm.APIAnthropic, "high" })
	f.Answer(
		llmtest.Reply{Status: 400, Text: "output_config.format: structured outputs are not supported for this model"},
		llmtest.Reply{Status: 400, Text: "adaptive thinking is not supported on this model"},
		llmtest.Reply{Text: "{}"})
	req := ask("?")
	req.Schema = schema
	if got, err := f.llm.Complete(t.Context(), req); err != nil || got.Usage.Calls != 3 {
		t.Fatalf("got %+v, %v, want an answer at the third call", got, err)
	}
	r := f.Requests()
	if !r[1].Has("thinking") || r[1].Form != "" || r[2].Has("thinking") || r[2].Has("output_config") {
		t.Errorf("got requests %s\n%s", r[1].Body, r[2].Body)
	}
}

// TestMessageProbe: a refused key is found without a question.
func TestMessageProbe(t *testing.T) {
	for _, suffix := range []string{"", "/"} {
		f := connect(t, func(c *llm.Config) { c.API = llm.APIAnthropic; c.BaseURL += suffix })
		f.Answer(llmtest.Reply{Status: 401, Text: "invalid x-api-key"})
		f.llm.Probe(t.Context())
		if s := f.llm.Status(); s.State != llm.StateRejected || !strings.Contains(s.LastError, "invalid x-api-key") {
			t.Errorf("got %+v, want the key rejected", s)
		}
		if r := f.Requests(); len(r) != 1 || r[0].Path != "/v1/messages" || r[0].Header.Get("X-Api-Key") != apiKey {
			t.Errorf("got requests %+v", r)
		}
	}
}
