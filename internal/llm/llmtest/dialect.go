package llmtest

import (
	"encoding/json"
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
