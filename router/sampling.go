package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/short"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// Limits of a client's model.
const (
	sampledTokens = 4096    // maxTokens of a request
	sampledBytes  = 2 << 20 // of a response
)

// sampling is the client's own model for one query. After one refusal Complete fails at once.
type sampling struct {
	ask  func(ctx context.Context, params []byte) (jsonrpc.Message, error)
	name string // the client's name for the model
	err  error  // of the refusal
}

// sampler returns the model of the client of x; nil if the client does not support sampling.
func sampler(x *edge.Exchange) llm.Model {
	if jsonrpc.Get(x.Client.Capabilities, "sampling") == nil {
		return nil
	}
	return &sampling{name: "the client's", ask: func(ctx context.Context, params []byte) (jsonrpc.Message, error) {
		return x.Request(ctx, "sampling/createMessage", params)
	}}
}

// Complete implements llm.Model. It is not safe for concurrent use. The response arrives whole, so OnDelta is never
// called.
func (s *sampling) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	resp := llm.Response{Usage: llm.Usage{Model: s.name}}
	if s.err != nil {
		return resp, s.err
	}
	resp.Usage.Calls = 1
	m, err := s.ask(ctx, samplingParams(req))
	switch {
	case err != nil && ctx.Err() != nil:
		return resp, err
	case err != nil:
		s.err = fmt.Errorf("the client refused sampling: %w", err)
		return resp, s.err
	case m.Err != nil:
		s.err = errors.New("the client refused sampling: " + short.Line(jsonrpc.Text(jsonrpc.Get(m.Err, "message")), 300))
		return resp, s.err
	}
	if name := jsonrpc.Text(jsonrpc.Get(m.Result, "model")); name != "" {
		s.name = short.Line(name, 100)
		resp.Usage.Model = s.name
	}
	text := sampledText(jsonrpc.Get(m.Result, "content"))
	switch {
	case jsonrpc.Text(jsonrpc.Get(m.Result, "stopReason")) == "maxTokens":
		return resp, errors.New("the client's model reached its length limit")
	case len(text) > sampledBytes:
		return resp, fmt.Errorf("the answer of the client's model is larger than %d bytes", sampledBytes)
	}
	resp.Text = text
	return resp, nil
}

// samplingParams encodes a request as the params of sampling/createMessage (MCP 2025-06-18, Sampling), in the form
// that clients of every handshake era accept.
func samplingParams(req llm.Request) []byte {
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type message struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	}
	params := struct {
		Messages     []message `json:"messages"`
		SystemPrompt string    `json:"systemPrompt,omitempty"`
		Temperature  float64   `json:"temperature"`
		MaxTokens    int       `json:"maxTokens"`
	}{SystemPrompt: req.System, MaxTokens: sampledTokens}
	for _, m := range req.Messages {
		params.Messages = append(params.Messages, message{m.Role, content{"text", m.Content}})
	}
	return []byte(encode(params, ""))
}

// sampledText returns the text of a sampling result, whose content is one block or, since 2025-11-25, a list of
// blocks.
func sampledText(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	blocks := []json.RawMessage{raw}
	if raw[0] == '[' && json.Unmarshal(raw, &blocks) != nil {
		return ""
	}
	text := ""
	for _, b := range blocks {
		if jsonrpc.Text(jsonrpc.Get(b, "type")) == "text" {
			text += jsonrpc.Text(jsonrpc.Get(b, "text"))
		}
	}
	return text
}
