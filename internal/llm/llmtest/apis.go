package llmtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// dialect writes answers in the form of one API.
type dialect interface {
	begin() []string
	delta(text string) string
	usageOnly() string // an event that carries no text
	end(text, finish string) []string
	document(text, finish string) any // the answer that is not streamed
}

func (r Reply) dialect(req Request) dialect {
	in := len(req.Text) / 4
	switch {
	case req.Responses():
		return responses{req.Model, in, r.Calls}
	case req.Messages():
		return messages{req.Model, in, r.Calls}
	}
	return chat{req.Model, in, strings.Contains(string(req.Body), `"include_usage":true`), r.Calls}
}

type object = map[string]any

func dataLine(v any) string {
	raw, _ := json.Marshal(v) // objects of strings and numbers always marshal
	return "data: " + string(raw) + "\n\n"
}

// event is a line of data with the kind of event that it is.
func event(kind string, fields object) string {
	fields["type"] = kind
	return "event: " + kind + "\n" + dataLine(fields)
}

// chat is the form of Chat Completions.
type chat struct {
	model string
	input int
	usage bool
	calls []Call
}

func (c chat) chunk(choices []any) object {
	return object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": c.model,
		"choices": choices}
}

func (c chat) begin() []string {
	return []string{dataLine(c.chunk([]any{object{"index": 0, "delta": object{"role": "assistant", "content": ""},
		"finish_reason": nil}}))}
}

func (c chat) delta(text string) string {
	return dataLine(c.chunk([]any{object{"index": 0, "delta": object{"content": text}, "finish_reason": nil}}))
}

func (c chat) tokens(text string) object {
	return object{"prompt_tokens": c.input, "completion_tokens": len(text) / 4, "total_tokens": c.input + len(text)/4}
}

func (c chat) usageOnly() string {
	chunk := c.chunk([]any{})
	chunk["usage"] = c.tokens("")
	return dataLine(chunk)
}

func (c chat) end(text, finish string) []string {
	frames := append(c.pieces(),
		dataLine(c.chunk([]any{object{"index": 0, "delta": object{}, "finish_reason": finish}})))
	if c.usage {
		chunk := c.chunk([]any{})
		chunk["usage"] = c.tokens(text)
		frames = append(frames, dataLine(chunk))
	}
	return append(frames, "data: [DONE]\n\n")
}

func (c chat) document(text, finish string) any {
	return object{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": c.model, "usage": c.tokens(text),
		"choices": []any{object{"index": 0, "finish_reason": finish,
			"message": object{"role": "assistant", "content": text, "tool_calls": c.whole()}}}}
}

// responses is the form of the Responses API.
type responses struct {
	model string
	input int
	calls []Call
}

func (r responses) body(text, status string) object {
	return object{"id": "resp_1", "object": "response", "created_at": 1, "model": r.model, "status": status, "error": nil,
		"output": append([]any{object{"id": "msg_1", "type": "message", "role": "assistant", "status": status,
			"content": []any{object{"type": "output_text", "text": text, "annotations": []any{}}}}}, r.items()...),
		"usage": object{"input_tokens": r.input, "output_tokens": len(text) / 4, "total_tokens": r.input + len(text)/4}}
}

func (r responses) begin() []string {
	return []string{
		event("response.created", object{"response": r.body("", "in_progress")}),
		event("response.output_item.added", object{"output_index": 0,
			"item": object{"id": "msg_1", "type": "message", "role": "assistant", "content": []any{}}}),
	}
}

func (r responses) delta(text string) string {
	return event("response.output_text.delta", object{"item_id": "msg_1", "output_index": 0, "content_index": 0,
		"delta": text})
}

func (r responses) usageOnly() string {
	return event("response.in_progress", object{"response": r.body("", "in_progress")})
}

func (r responses) status(finish string) string {
	switch finish {
	case "stop", "tool_calls":
		return "completed"
	case "length", "content_filter":
		return "incomplete"
	}
	return finish
}

func (r responses) end(text, finish string) []string {
	status := r.status(finish)
	body := r.body(text, status)
	switch status {
	case "incomplete":
		reason := "max_output_tokens"
		if finish == "content_filter" {
			reason = finish
		}
		body["incomplete_details"] = object{"reason": reason}
	case "failed":
		body["error"] = object{"code": "server_error", "message": "the engine crashed"}
	}
	return []string{
		event("response.output_text.done", object{"item_id": "msg_1", "output_index": 0, "content_index": 0, "text": text}),
		event("response."+status, object{"response": body}),
	}
}

func (r responses) document(text, finish string) any { return r.body(text, r.status(finish)) }

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

// Call is a call of a tool that the model makes. Arguments are JSON.
type Call struct{ Name, Arguments string }

// WithTools reports whether a request has tools that the model may call.
func WithTools(r Request) bool { return len(r.Tools) > 0 }

// wireTool is a tool of a request, in the form of any API.
type wireTool struct {
	Name     string `json:"name"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

func names(tools []wireTool) (out []string) {
	for _, t := range tools {
		out = append(out, t.Name+t.Function.Name)
	}
	return out
}

func callID(i int) string { return fmt.Sprintf("call_%d", i) }

// halves splits the arguments into two pieces.
func (c Call) halves() [2]string {
	n := len(c.Arguments) / 2
	return [2]string{c.Arguments[:n], c.Arguments[n:]}
}

// pieces returns the calls in a stream of chat completions: first all names, then the arguments alternately,
// distinguished only by the index.
func (c chat) pieces() (frames []string) {
	send := func(call object) {
		delta := object{"tool_calls": []any{call}}
		frames = append(frames, dataLine(c.chunk([]any{object{"index": 0, "delta": delta, "finish_reason": nil}})))
	}
	for i, call := range c.calls {
		send(object{"index": i, "id": callID(i), "type": "function",
			"function": object{"name": call.Name, "arguments": ""}})
	}
	for half := range 2 {
		for i, call := range c.calls {
			send(object{"index": i, "function": object{"arguments": call.halves()[half]}})
		}
	}
	return frames
}

// whole returns the calls of a chat completion without streaming.
func (c chat) whole() (list []any) {
	for i, call := range c.calls {
		list = append(list, object{"id": callID(i), "type": "function",
			"function": object{"name": call.Name, "arguments": call.Arguments}})
	}
	return list
}

// items returns the calls in the output of a response.
func (r responses) items() (list []any) {
	for i, call := range r.calls {
		list = append(list, object{"id": fmt.Sprintf("fc_%d", i), "type": "function_call", "status": "completed",
			"call_id": callID(i), "name": call.Name, "arguments": call.Arguments})
	}
	return list
}

// blocks returns the calls in a stream of the Messages API.
func (m messages) blocks() (frames []string) {
	for i, call := range m.calls {
		frames = append(frames, event("content_block_start", object{"index": i + 1,
			"content_block": object{"type": "tool_use", "id": callID(i), "name": call.Name, "input": object{}}}))
		for _, part := range call.halves() {
			frames = append(frames, event("content_block_delta", object{"index": i + 1,
				"delta": object{"type": "input_json_delta", "partial_json": part}}))
		}
		frames = append(frames, event("content_block_stop", object{"index": i + 1}))
	}
	return frames
}

// vectors returns the response to an embeddings request, last text first, so that clients must use the indexes.
func (r Reply) vectors(req Request) any {
	var data []object
	for i := len(req.Inputs) - 1; i >= 0; i-- {
		var v []float32
		if r.Embed != nil {
			v = r.Embed(req.Inputs[i])
		}
		data = append(data, object{"object": "embedding", "index": i, "embedding": v})
	}
	return object{"object": "list", "data": data, "model": req.Model,
		"usage": object{"prompt_tokens": 1, "total_tokens": 1}}
}
