package llm

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/sashabaranov/go-openai"
)

func (c *Client) responsesRequest(req Request, d dialect) openai.CreateResponseRequest {
	var store bool
	input := make([]openai.ResponseInputMessage, len(req.Messages))
	for i, m := range req.Messages {
		input[i] = openai.ResponseInputMessage{Role: m.Role, Content: m.Content}
	}
	out := openai.CreateResponseRequest{Model: c.cfg.Model, Instructions: req.System, Input: input, Store: &store}
	if req.Schema != nil && d.form < formPrompt {
		out.Text = &openai.ResponseTextConfig{Format: responsesFormat(req.Schema, d.form)}
	}
	return out
}

func responsesFormat(schema *Schema, f form) *openai.ResponseTextFormat {
	switch f {
	case formStrict:
		return &openai.ResponseTextFormat{Type: "json_schema", Name: schema.Name, Schema: schema.Strict, Strict: true}
	case formSchema:
		return &openai.ResponseTextFormat{Type: "json_schema", Name: schema.Name, Schema: schema.Loose}
	}
	return &openai.ResponseTextFormat{Type: "json_object"}
}

// respond calls the Responses API and reads the events up to the last one.
func respond(
	ctx context.Context, client *openai.Client, request openai.CreateResponseRequest, d dialect, t *transcript,
) (completion, error) {
	t.guard.edit = func(body map[string]json.RawMessage) {
		if d.whole {
			delete(body, "stream")
		}
	}
	t.guard.whole = eventOfResponse
	t.guard.keep = responseEventMatters
	stream, err := client.CreateResponseStream(ctx, request)
	if err != nil {
		return completion{}, err
	}
	defer stream.Close()
	var a completion
	for {
		ev, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return a, failure(Cut, "the stream ended before the answer was complete")
		}
		if err != nil {
			return a, frameTrouble(err)
		}
		switch ev.Type {
		case openai.ResponseStreamEventOutputTextDelta:
			if err := t.add(ev.Delta); err != nil {
				return a, err
			}
			continue
		case openai.ResponseStreamEventRefusalDelta:
			t.refused += ev.Delta
			continue
		}
		if ev.Response == nil {
			return a, failure(Invalid, "the event %s has no response", ev.Type)
		}
		if u := ev.Response.Usage; u != nil {
			a.input, a.output = u.InputTokens, u.OutputTokens
		}
		if t.text.Len() == 0 && ev.Type == openai.ResponseStreamEventCompleted {
			if err := t.add(ev.Response.GetOutputText()); err != nil {
				return a, err
			}
		}
		if err := t.addOutput(ev.Response.Output); err != nil {
			return a, err
		}
		return a.finish(ev, t)
	}
}

// addOutput adds the calls of a response after its end, because only complete calls count.
func (t *transcript) addOutput(items []any) error {
	for i, item := range items {
		fields, _ := item.(map[string]any)
		if kind, _ := fields["type"].(string); kind != "function_call" {
			continue
		}
		id, _ := fields["call_id"].(string)
		name, _ := fields["name"].(string)
		arguments, _ := fields["arguments"].(string)
		if err := t.addCall(i, id, name, arguments); err != nil {
			return err
		}
	}
	return nil
}

// finish reads the last event of a response.
func (a completion) finish(ev openai.ResponseStreamEvent, t *transcript) (completion, error) {
	switch ev.Type {
	case openai.ResponseStreamEventFailed:
		if e := ev.Response.Error; e != nil {
			return a, complaint{Message: e.Message, Code: e.Code}.err(0)
		}
		return a, failure(Server, "the response failed")
	case openai.ResponseStreamEventIncomplete:
		if d := ev.Response.IncompleteDetails; d != nil && d.Reason == "content_filter" {
			return a, failure(Refused, "the endpoint's content filter stopped the answer")
		}
		return a, failure(Truncated, "the answer reached the length limit")
	}
	return t.complete(a)
}

// responseEventMatters reports whether an event carries text or ends the response. Other events are not decoded.
func responseEventMatters(data []byte) bool {
	var kind struct {
		Type openai.ResponseStreamEventType `json:"type"`
	}
	if json.Unmarshal(data, &kind) != nil {
		return true
	}
	switch kind.Type {
	case openai.ResponseStreamEventOutputTextDelta, openai.ResponseStreamEventRefusalDelta,
		openai.ResponseStreamEventCompleted, openai.ResponseStreamEventIncomplete, openai.ResponseStreamEventFailed:
		return true
	}
	return false
}

// eventOfResponse converts a response without streaming into the last event of a stream.
func eventOfResponse(body []byte) ([]byte, error) {
	var whole struct {
		Object string `json:"object"`
		Status string `json:"status"`
	}
	if err := json.Unmarshal(body, &whole); err != nil || whole.Object != "response" {
		return nil, failure(Invalid, "the endpoint answered with JSON that is not a response: %s", head(body))
	}
	switch whole.Status {
	case "completed", "incomplete", "failed":
		return json.Marshal(map[string]any{"type": "response." + whole.Status, "response": json.RawMessage(body)})
	}
	return nil, failure(Cut, "the response is %s", whole.Status)
}
