package llm

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/sashabaranov/go-openai"
)

const responsesPath = "/responses"

// responses is the protocol of OpenAI's Responses API.
type responses struct {
	*answer
	last *openai.CreateResponseResponse // nil until it has ended
}

// request implements protocol.
func (r *responses) request(cfg Config, req Request, d dialect) object {
	out := object{"instructions": req.System, "input": req.Messages, "store": false}
	text := object{}
	if req.Schema != nil && d.form < formPrompt {
		format := object{"type": "json_object"}
		if d.form < formObject {
			format["type"] = "json_schema"
			maps.Copy(format, req.Schema.format(d.form))
		}
		text["format"] = format
	}
	if cfg.Verbosity != "" && !d.without[paramVerbosity] {
		text["verbosity"] = cfg.Verbosity
	}
	if len(text) > 0 {
		out["text"] = text
	}
	if cfg.MaxTokens > 0 {
		out["max_output_tokens"] = cfg.MaxTokens
	}
	if cfg.ReasoningEffort != "" && !d.without[paramEffort] {
		out["reasoning"] = object{"effort": cfg.ReasoningEffort}
	}
	if !d.without[paramTemperature] {
		out["temperature"] = cfg.temperature()
	}
	return out
}

// event implements protocol.
func (r *responses) event(data []byte) (bool, error) {
	kind, err := eventType(data)
	if err != nil {
		return false, err
	}
	name := openai.ResponseStreamEventType(kind)
	switch name {
	case openai.ResponseStreamEventOutputTextDelta, openai.ResponseStreamEventRefusalDelta,
		openai.ResponseStreamEventCompleted, openai.ResponseStreamEventIncomplete, openai.ResponseStreamEventFailed:
	default:
		return false, nil
	}
	var ev openai.ResponseStreamEvent
	if err := json.Unmarshal(data, &ev); err != nil {
		return false, err
	}
	switch {
	case name == openai.ResponseStreamEventOutputTextDelta:
		return false, r.add(ev.Delta)
	case name == openai.ResponseStreamEventRefusalDelta:
		r.refused += ev.Delta
		return false, nil
	case ev.Response == nil:
		return false, failure(Invalid, "the event %s has no response", kind)
	}
	ev.Response.Status = openai.ResponseStatus(strings.TrimPrefix(kind, "response."))
	return true, r.end(ev.Response)
}

// document implements protocol.
func (r *responses) document(data []byte) error {
	var whole openai.CreateResponseResponse
	if err := json.Unmarshal(data, &whole); err != nil || whole.Object != "response" {
		return failure(Invalid, "the endpoint answered with JSON that is not a response: %s", head(data))
	}
	return r.end(&whole)
}

// end reads the response at its end. Calls are read only here, because only complete ones count.
func (r *responses) end(last *openai.CreateResponseResponse) error {
	r.last = last
	if last.Usage != nil {
		r.input, r.output = last.Usage.InputTokens, last.Usage.OutputTokens
	}
	if r.text.Len() == 0 && last.Status == "completed" {
		if err := r.add(last.GetOutputText()); err != nil {
			return err
		}
	}
	for i, item := range last.Output {
		fields, _ := item.(map[string]any)
		if kind, _ := fields["type"].(string); kind != "function_call" {
			continue
		}
		id, _ := fields["call_id"].(string)
		name, _ := fields["name"].(string)
		arguments, _ := fields["arguments"].(string)
		if err := r.addCall(i, id, name, arguments); err != nil {
			return err
		}
	}
	return nil
}

// finish implements protocol.
func (r *responses) finish() error {
	if r.last == nil {
		return failure(Cut, "the stream ended before the answer was complete")
	}
	switch r.last.Status {
	case "completed":
		return r.complete()
	case "failed":
		if e := r.last.Error; e != nil {
			return errorObject{Message: e.Message, Code: e.Code}.err(0)
		}
		return failure(Server, "the response failed")
	case "incomplete":
		if d := r.last.IncompleteDetails; d != nil && d.Reason == "content_filter" {
			return failure(Refused, "the endpoint's content filter stopped the answer")
		}
		return failure(Truncated, "the answer reached the length limit")
	}
	return failure(Cut, "the response is %s", r.last.Status)
}
