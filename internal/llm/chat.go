package llm

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/sashabaranov/go-openai"
)

func (c *Client) chatRequest(req Request, d dialect) openai.ChatCompletionRequest {
	out := openai.ChatCompletionRequest{Model: c.cfg.Model}
	if !d.noUsage {
		out.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	if req.System != "" {
		system := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: req.System}
		out.Messages = append(out.Messages, system)
	}
	for _, m := range req.Messages {
		out.Messages = append(out.Messages, openai.ChatCompletionMessage{Role: m.Role, Content: m.Content})
	}
	if req.Schema != nil {
		out.ResponseFormat = chatFormat(req.Schema, d.form)
	}
	return out
}

func chatFormat(schema *Schema, f form) *openai.ChatCompletionResponseFormat {
	switch f {
	case formStrict, formSchema:
		raw := schema.Loose
		if f == formStrict {
			raw = schema.Strict
		}
		return &openai.ChatCompletionResponseFormat{
			Type:       openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: schema.Name, Schema: raw, Strict: f == formStrict},
		}
	case formObject:
		return &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONObject}
	}
	return nil
}

// chat requests a chat completion and reads the stream to its end.
func chat(
	ctx context.Context, client *openai.Client, request openai.ChatCompletionRequest, d dialect, t *transcript,
) (completion, error) {
	t.guard.edit = func(body map[string]json.RawMessage) {
		if d.whole {
			body["stream"] = json.RawMessage("false")
			delete(body, "stream_options")
		}
	}
	t.guard.whole = chunkOfCompletion
	stream, err := client.CreateChatCompletionStream(ctx, request)
	if err != nil {
		return completion{}, err
	}
	defer stream.Close()
	var a completion
	var finish openai.FinishReason
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return a, frameTrouble(err)
		}
		if chunk.Usage != nil {
			a.input, a.output = chunk.Usage.PromptTokens, chunk.Usage.CompletionTokens
		}
		if len(chunk.Choices) == 0 {
			continue
		}
		choice := chunk.Choices[0]
		if choice.FinishReason != "" {
			finish = choice.FinishReason
		}
		t.refused += choice.Delta.Refusal
		for i, call := range choice.Delta.ToolCalls {
			if call.Index != nil {
				i = *call.Index
			}
			if err := t.addCall(i, call.ID, call.Function.Name, call.Function.Arguments); err != nil {
				return a, err
			}
		}
		if err := t.add(choice.Delta.Content); err != nil {
			return a, err
		}
	}
	switch {
	case finish == openai.FinishReasonLength:
		return a, failure(Truncated, "the answer reached the length limit")
	case finish == openai.FinishReasonContentFilter:
		return a, failure(Refused, "the endpoint's content filter stopped the answer")
	case finish == "" && !t.guard.done:
		return a, failure(Cut, "the stream ended before the answer was complete")
	}
	return t.complete(a)
}

// chunkOfCompletion converts a chat completion without streaming into a chunk of a stream.
func chunkOfCompletion(body []byte) ([]byte, error) {
	var whole struct {
		Model   string `json:"model"`
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
	if err := json.Unmarshal(body, &whole); err != nil {
		return nil, failure(Invalid, "the endpoint answered with JSON that is not a completion: %v", err)
	}
	if len(whole.Choices) == 0 || whole.Choices[0].Message == nil {
		return nil, failure(Invalid, "the endpoint answered with JSON that is not a completion: %s", head(body))
	}
	choice := whole.Choices[0]
	return json.Marshal(openai.ChatCompletionStreamResponse{
		Model: whole.Model,
		Choices: []openai.ChatCompletionStreamChoice{{
			Delta: openai.ChatCompletionStreamChoiceDelta{
				Content: contentText(choice.Message.Content), Refusal: choice.Message.Refusal,
				ToolCalls: choice.Message.ToolCalls,
			},
			FinishReason: choice.FinishReason,
		}},
		Usage: whole.Usage,
	})
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

// frameTrouble returns errors of the stream guard unchanged; other errors mean an event of the wrong form.
func frameTrouble(err error) error {
	var shape *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	if errors.As(err, &shape) || errors.As(err, &syntax) {
		return failure(Invalid, "the stream has an event of an unexpected form: %v", err)
	}
	return err
}
