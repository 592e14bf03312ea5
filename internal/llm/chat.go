package llm

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

const chatPath = "/chat/completions"

// chat is the protocol of OpenAI's Chat Completions API.
type chat struct {
	*answer
	reason openai.FinishReason
}

// request implements protocol.
func (c *chat) request(cfg Config, req Request, d dialect) object {
	turns := req.Messages
	if req.System != "" {
		turns = append([]Message{{Role: "system", Content: req.System}}, turns...)
	}
	out := object{"messages": turns}
	if !d.without[paramUsage] && !d.without[paramStreaming] {
		out["stream_options"] = object{"include_usage": true}
	}
	if req.Schema != nil {
		switch d.form {
		case formStrict, formSchema:
			out["response_format"] = object{"type": "json_schema", "json_schema": req.Schema.format(d.form)}
		case formObject:
			out["response_format"] = object{"type": "json_object"}
		}
	}
	if cfg.MaxTokens > 0 {
		out[cfg.limitName(d)] = cfg.MaxTokens
	}
	if cfg.ReasoningEffort != "" && !d.without[paramEffort] {
		out["reasoning_effort"] = cfg.ReasoningEffort
	}
	if cfg.Verbosity != "" && !d.without[paramVerbosity] {
		out["verbosity"] = cfg.Verbosity
	}
	if !d.without[paramTemperature] {
		out["temperature"] = cfg.temperature()
	}
	return out
}

// format returns the members that name a JSON schema in requests of OpenAI's APIs.
func (s *Schema) format(f form) object {
	if f == formStrict {
		return object{"name": s.Name, "schema": s.Strict, "strict": true}
	}
	return object{"name": s.Name, "schema": s.Loose, "strict": false}
}

// limitName returns the name of the token limit. OpenAI's reasoning models refuse the older name, which other
// endpoints use.
func (c Config) limitName(d dialect) string {
	u, err := url.Parse(c.BaseURL)
	newer := err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".openai.azure.com"))
	if (newer || reasoningModel().MatchString(family(c.Model))) != d.without[paramLimitName] {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

var reasoningModel = pattern.New(`^(gpt-[5-9]|o[0-9])`)

// event implements protocol.
func (c *chat) event(data []byte) (bool, error) {
	var chunk openai.ChatCompletionStreamResponse
	if err := json.Unmarshal(data, &chunk); err != nil {
		return false, err
	}
	c.count(chunk.Usage)
	if len(chunk.Choices) == 0 {
		return false, nil
	}
	choice := chunk.Choices[0]
	c.reason = cmp.Or(choice.FinishReason, c.reason)
	return false, c.read(choice.Delta.Content, choice.Delta.Refusal, choice.Delta.ToolCalls)
}

// document implements protocol.
func (c *chat) document(data []byte) error {
	var whole struct {
		Choices []struct {
			Message *struct {
				Content   json.RawMessage   `json:"content"`
				Refusal   string            `json:"refusal"`
				ToolCalls []openai.ToolCall `json:"tool_calls"`
			} `json:"message"`
			FinishReason openai.FinishReason `json:"finish_reason"`
		} `json:"choices"`
		Usage *openai.Usage `json:"usage"`
	}
	if err := json.Unmarshal(data, &whole); err != nil {
		return failure(Invalid, "the endpoint answered with JSON that is not a completion: %v", err)
	}
	if len(whole.Choices) == 0 || whole.Choices[0].Message == nil {
		return failure(Invalid, "the endpoint answered with JSON that is not a completion: %s", head(data))
	}
	c.count(whole.Usage)
	choice := whole.Choices[0]
	c.reason = choice.FinishReason
	return c.read(contentText(choice.Message.Content), choice.Message.Refusal, choice.Message.ToolCalls)
}

func (c *chat) count(u *openai.Usage) {
	if u != nil {
		c.input, c.output = u.PromptTokens, u.CompletionTokens
	}
}

func (c *chat) read(text, refused string, calls []openai.ToolCall) error {
	c.refused += refused
	for i, call := range calls {
		if call.Index != nil {
			i = *call.Index
		}
		if err := c.addCall(i, call.ID, call.Function.Name, call.Function.Arguments); err != nil {
			return err
		}
	}
	return c.add(text)
}

// contentText returns the text of a message whose content is a string or a list of parts.
func contentText(raw json.RawMessage) string {
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		var s string
		_ = json.Unmarshal(raw, &s) // anything else has no text
		return s
	}
	var text string
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// finish implements protocol.
func (c *chat) finish() error {
	switch {
	case c.reason == openai.FinishReasonLength:
		return failure(Truncated, "the answer reached the length limit")
	case c.reason == openai.FinishReasonContentFilter:
		return failure(Refused, "the endpoint's content filter stopped the answer")
	case c.reason == "" && !c.ended:
		return failure(Cut, "the stream ended before the answer was complete")
	}
	return c.complete()
}
