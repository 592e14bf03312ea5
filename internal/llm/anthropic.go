package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// anthropicVersion is the version of the Messages API.
const anthropicVersion = "2023-06-01"

// Token limits of a response, which the Messages API requires. Thinking counts.
const (
	usualTokens  = 16_000
	answerTokens = 8_000 // in addition to a thinking budget
	leastBudget  = 1_024
)

// thinkingBudgets are the thinking budgets by effort, for models that need one.
var thinkingBudgets = map[string]int{
	"minimal": leastBudget, "low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 24_000, "max": 24_000,
}

// budgeted matches models that need a thinking budget. Later models derive it from the effort.
var budgeted = regexp.MustCompile(`^claude-(3|(opus|sonnet|haiku)-4(-[0-5])?(-20[0-9]{6})?$)`)

// messageSettings adds the settings to a request of the Messages API. A thinking model accepts no temperature.
func (c Config) messageSettings(out object, d dialect) {
	limit := cmp.Or(c.MaxTokens, usualTokens)
	switch {
	case c.ReasoningEffort == "" || d.noEffort:
	case c.ReasoningEffort == "none":
		out["thinking"] = object{"type": "disabled"}
	case budgeted.MatchString(family(c.Model)):
		budget := thinkingBudgets[c.ReasoningEffort]
		if c.MaxTokens == 0 {
			limit = budget + answerTokens
		} else {
			budget = min(budget, limit/2)
		}
		if budget >= leastBudget {
			out["thinking"] = object{"type": "enabled", "budget_tokens": budget}
			delete(out, "temperature")
		}
	default:
		effort := c.ReasoningEffort
		if effort == "minimal" {
			effort = "low"
		}
		out["thinking"], out["output_config"] = object{"type": "adaptive"}, object{"effort": effort}
		delete(out, "temperature")
	}
	out["max_tokens"] = limit
}

// messageRequest returns a request of the Messages API. The system prompt ends with a cache mark.
func (c *Client) messageRequest(req Request) anthropic.MessageNewParams {
	out := anthropic.MessageNewParams{Model: c.cfg.Model}
	if req.System != "" {
		cached := anthropic.NewCacheControlEphemeralParam()
		out.System = []anthropic.TextBlockParam{{Text: req.System, CacheControl: cached}}
	}
	for _, m := range req.Messages {
		text := anthropic.NewTextBlock(m.Content)
		if m.Role == RoleAssistant {
			out.Messages = append(out.Messages, anthropic.NewAssistantMessage(text))
		} else {
			out.Messages = append(out.Messages, anthropic.NewUserMessage(text))
		}
	}
	return out
}

// message calls the Messages API and reads the events up to the last one. It disables the library's use of
// environment variables, spans and retries.
func message(
	ctx context.Context, request anthropic.MessageNewParams, schema *Schema, d dialect, t *transcript,
) (completion, error) {
	g := t.guard
	g.named = true
	g.edit = func(body map[string]json.RawMessage) {
		if schema != nil && d.form == formStrict {
			format := object{"type": "json_schema", "schema": schema.Strict}
			body["output_config"], _ = json.Marshal(object{"format": format}) // a valid schema always marshals
		}
		if d.whole {
			delete(body, "stream")
		}
	}
	g.whole = startOfMessage
	g.keep = messageEventMatters
	service := anthropic.NewMessageService(option.WithBaseURL(g.baseURL+"/"), option.WithHTTPClient(g),
		option.WithMaxRetries(0), option.WithoutOpenTelemetry())
	stream := service.NewStreaming(ctx, request)
	defer stream.Close()
	var m messageReader
	for stream.Next() {
		if err := m.read(stream.Current(), t); err != nil {
			return m.completion, err
		}
	}
	if err := stream.Err(); err != nil {
		return m.completion, frameTrouble(err)
	}
	return m.finish(t)
}

// messageReader reads the events of a message.
type messageReader struct {
	completion
	stop   anthropic.StopReason
	reason string // the model's reason for refusing
}

func (m *messageReader) read(event anthropic.MessageStreamEventUnion, t *transcript) error {
	switch ev := event.AsAny().(type) {
	case anthropic.MessageStartEvent:
		u := ev.Message.Usage
		m.input = int(u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens)
		m.output, m.stop = int(u.OutputTokens), ev.Message.StopReason
		m.reason = ev.Message.StopDetails.Explanation
		for i, block := range ev.Message.Content { // the message is not streamed
			if block.Type == "tool_use" {
				if err := t.addCall(i, block.ID, block.Name, string(block.Input)); err != nil {
					return err
				}
			}
			if err := t.add(block.Text); err != nil {
				return err
			}
		}
	case anthropic.ContentBlockStartEvent:
		if block := ev.ContentBlock; block.Type == "tool_use" {
			return t.startCall(int(ev.Index), block.ID, block.Name, block.JSON.Input.Raw())
		}
		return t.add(ev.ContentBlock.Text)
	case anthropic.ContentBlockDeltaEvent:
		if ev.Delta.Type == "input_json_delta" {
			return t.addCall(int(ev.Index), "", "", ev.Delta.PartialJSON)
		}
		return t.add(ev.Delta.Text)
	case anthropic.MessageDeltaEvent:
		m.stop, m.reason = ev.Delta.StopReason, ev.Delta.StopDetails.Explanation
		m.output = max(m.output, int(ev.Usage.OutputTokens)) // the count is cumulative
	}
	return nil
}

// finish distinguishes a complete response from an incomplete one.
func (m *messageReader) finish(t *transcript) (completion, error) {
	switch m.stop {
	case anthropic.StopReasonEndTurn, anthropic.StopReasonStopSequence, anthropic.StopReasonToolUse:
		return t.complete(m.completion)
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		return m.completion, failure(Truncated, "the answer reached the length limit")
	case anthropic.StopReasonRefusal:
		return m.completion, refusal(cmp.Or(m.reason, "the model declines to answer"))
	case "":
		return m.completion, failure(Cut, "the stream ended before the answer was complete")
	}
	return m.completion, failure(Invalid, "the answer stopped with %q", m.stop)
}

// messageEventMatters reports whether an event carries text, usage or the end of the response. Thinking is not
// decoded.
func messageEventMatters(data []byte) bool {
	var event struct {
		Type  string `json:"type"`
		Delta struct {
			Type string `json:"type"`
		} `json:"delta"`
	}
	if json.Unmarshal(data, &event) != nil {
		return true
	}
	switch event.Type {
	case "message_start", "content_block_start", "message_delta":
		return true
	}
	kind := event.Delta.Type
	return event.Type == "content_block_delta" && (kind == "text_delta" || kind == "input_json_delta")
}

// startOfMessage converts a message without streaming into the first event of a stream.
func startOfMessage(body []byte) ([]byte, error) {
	var whole struct {
		Type    string            `json:"type"`
		Content []json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(body, &whole); err != nil || whole.Type != "message" {
		return nil, failure(Invalid, "the endpoint answered with JSON that is not a message: %s", head(body))
	}
	return json.Marshal(map[string]any{"type": "message_start", "message": json.RawMessage(body)})
}
