package llmtest

import "fmt"

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
