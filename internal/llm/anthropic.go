package llm

import (
	"cmp"
	"encoding/json"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
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
var budgeted = pattern.New(`^claude-(3|(opus|sonnet|haiku)-4(-[0-5])?(-20[0-9]{6})?$)`)

const messagesPath = "/v1/messages"

// messages is the protocol of Anthropic's Messages API.
type messages struct {
	*answer
	stop   string
	reason string // the model's reason for refusing
}

// request implements protocol. The system prompt ends with a cache mark.
func (m *messages) request(cfg Config, req Request, d dialect) object {
	out := object{"messages": req.Messages}
	if !d.without[paramTemperature] {
		out["temperature"] = cfg.temperature()
	}
	if req.System != "" {
		out["system"] = []object{{"type": "text", "text": req.System, "cache_control": object{"type": "ephemeral"}}}
	}
	output := object{}
	if req.Schema != nil && d.form == formStrict {
		output["format"] = object{"type": "json_schema", "schema": req.Schema.Strict}
	}
	if effort := m.thinking(out, cfg, d); effort != "" {
		output["effort"] = effort
	}
	if len(output) > 0 {
		out["output_config"] = output
	}
	return out
}

// thinking adds the token limit and the thinking to a request. It returns the effort for models that derive the
// thinking from it. A thinking model accepts no temperature.
func (m *messages) thinking(out object, cfg Config, d dialect) (effort string) {
	limit := cmp.Or(cfg.MaxTokens, usualTokens)
	switch {
	case cfg.ReasoningEffort == "" || d.without[paramEffort]:
	case cfg.ReasoningEffort == "none":
		out["thinking"] = object{"type": "disabled"}
	case budgeted().MatchString(family(cfg.Model)):
		budget := thinkingBudgets[cfg.ReasoningEffort]
		if cfg.MaxTokens == 0 {
			limit = budget + answerTokens
		} else {
			budget = min(budget, limit/2)
		}
		if budget >= leastBudget {
			out["thinking"] = object{"type": "enabled", "budget_tokens": budget}
			delete(out, "temperature")
		}
	default:
		out["thinking"] = object{"type": "adaptive"}
		delete(out, "temperature")
		effort = cfg.ReasoningEffort
		if effort == "minimal" {
			effort = "low"
		}
	}
	out["max_tokens"] = limit
	return effort
}

// The parts of messages and events that matter. Thinking is not decoded.
type (
	message struct {
		Type        string         `json:"type"`
		Content     []contentBlock `json:"content"`
		StopReason  string         `json:"stop_reason"`
		StopDetails stopDetails    `json:"stop_details"`
		Usage       messageUsage   `json:"usage"`
	}
	contentBlock struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	stopDetails struct {
		Explanation string `json:"explanation"`
	}
	messageUsage struct {
		Input      int `json:"input_tokens"`
		CacheWrite int `json:"cache_creation_input_tokens"`
		CacheRead  int `json:"cache_read_input_tokens"`
		Output     int `json:"output_tokens"`
	}
	messageEvent struct {
		Index        int          `json:"index"`
		Message      message      `json:"message"`
		ContentBlock contentBlock `json:"content_block"`
		Delta        struct {
			Text        string      `json:"text"`
			PartialJSON string      `json:"partial_json"`
			StopReason  string      `json:"stop_reason"`
			StopDetails stopDetails `json:"stop_details"`
		} `json:"delta"`
		Usage messageUsage `json:"usage"`
	}
)

// event implements protocol.
func (m *messages) event(data []byte) (bool, error) {
	kind, err := eventType(data)
	if err != nil {
		return false, err
	}
	switch kind {
	case "message_start", "content_block_start", "content_block_delta", "message_delta":
	default:
		return kind == "message_stop", nil
	}
	var ev messageEvent
	if err := json.Unmarshal(data, &ev); err != nil {
		return false, err
	}
	switch kind {
	case "message_start":
		return false, m.start(ev.Message)
	case "content_block_start":
		if block := ev.ContentBlock; block.Type == "tool_use" {
			return false, m.startCall(ev.Index, block.ID, block.Name, string(block.Input))
		}
		return false, m.add(ev.ContentBlock.Text)
	case "content_block_delta":
		if ev.Delta.PartialJSON != "" {
			return false, m.addCall(ev.Index, "", "", ev.Delta.PartialJSON)
		}
		return false, m.add(ev.Delta.Text)
	}
	m.stop, m.reason = ev.Delta.StopReason, ev.Delta.StopDetails.Explanation
	m.output = max(m.output, ev.Usage.Output) // the count is cumulative
	return false, nil
}

// start reads a message: the empty one at the start of a stream, or a whole one.
func (m *messages) start(msg message) error {
	u := msg.Usage
	m.input, m.output = u.Input+u.CacheWrite+u.CacheRead, u.Output
	m.stop, m.reason = msg.StopReason, msg.StopDetails.Explanation
	for i, block := range msg.Content {
		if block.Type == "tool_use" {
			if err := m.addCall(i, block.ID, block.Name, string(block.Input)); err != nil {
				return err
			}
		}
		if err := m.add(block.Text); err != nil {
			return err
		}
	}
	return nil
}

// document implements protocol.
func (m *messages) document(data []byte) error {
	var msg message
	if err := json.Unmarshal(data, &msg); err != nil || msg.Type != "message" {
		return failure(Invalid, "the endpoint answered with JSON that is not a message: %s", head(data))
	}
	return m.start(msg)
}

// finish implements protocol.
func (m *messages) finish() error {
	switch m.stop {
	case "end_turn", "stop_sequence", "tool_use":
		return m.complete()
	case "max_tokens", "model_context_window_exceeded":
		return failure(Truncated, "the answer reached the length limit")
	case "refusal":
		return refusal(cmp.Or(m.reason, "the model declines to answer"))
	case "":
		return failure(Cut, "the stream ended before the answer was complete")
	}
	return failure(Invalid, "the answer stopped with %q", m.stop)
}
