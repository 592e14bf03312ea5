package llmtest

import (
	"cmp"
	"encoding/json"
	"net/http"
)

// Messages reports whether the request came over Anthropic's Messages API.
func (r Request) Messages() bool { return r.endpoint("/messages") }

// blocks are the contents of a message: a text, or blocks with texts.
func blocks(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var list []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &list) // anything else has no text
	for _, b := range list {
		text += b.Text
	}
	return text
}

// messages is the form of the Messages API.
type messages struct {
	model string
	input int
	calls []Call
}

func (m messages) message(content []any, stop any, output int) object {
	return object{"id": "msg_1", "type": "message", "role": "assistant", "model": m.model, "content": content,
		"stop_reason": stop, "stop_sequence": nil, "stop_details": nil,
		"usage": object{"input_tokens": m.input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
			"output_tokens": output}}
}

func (m messages) begin() []string {
	return []string{
		event("message_start", object{"message": m.message([]any{}, nil, 1)}),
		event("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}}),
		m.usageOnly(),
	}
}

func (m messages) delta(text string) string {
	return event("content_block_delta", object{"index": 0, "delta": object{"type": "text_delta", "text": text}})
}

func (m messages) usageOnly() string { return event("ping", object{}) }

// stop converts the finish reason of a chat completion.
func (m messages) stop(finish string) string {
	switch finish {
	case "stop":
		return "end_turn"
	case "length":
		return "max_tokens"
	case "tool_calls":
		return "tool_use"
	case "content_filter":
		return "refusal"
	}
	return finish
}

func (m messages) end(text, finish string) []string {
	frames := append([]string{event("content_block_stop", object{"index": 0})}, m.blocks()...)
	return append(frames,
		event("message_delta", object{"delta": object{"stop_reason": m.stop(finish), "stop_sequence": nil},
			"usage": object{"output_tokens": len(text) / 4}}),
		event("message_stop", object{}),
	)
}

func (m messages) document(text, finish string) any {
	content := []any{object{"type": "text", "text": text}}
	for i, c := range m.calls {
		content = append(content, object{"type": "tool_use", "id": callID(i), "name": c.Name,
			"input": json.RawMessage(c.Arguments)})
	}
	return m.message(content, m.stop(finish), len(text)/4)
}

// errorOfMessages writes an error in the form of the Messages API.
func errorOfMessages(w http.ResponseWriter, status int, message string) {
	kind := cmp.Or(map[int]string{400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error",
		429: "rate_limit_error", 529: "overloaded_error"}[status], "api_error")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	writeJSON(w, object{"type": "error", "error": object{"type": kind, "message": message}, "request_id": "req_1"})
}
