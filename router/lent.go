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

// Bounds of what a lent model writes.
const (
	lentTokens = 4096    // asked for at most
	lentBytes  = 2 << 20 // taken
)

// lent is the model that a client lends for one query, by sampling. A client that says no, as users may, is not asked
// again.
type lent struct {
	ask  func(ctx context.Context, params []byte) (jsonrpc.Message, error)
	name string // that the client calls the model
	no   error
}

// lender is the model of the client of x; nil where it lends none.
func lender(x *edge.Exchange) llm.Model {
	if jsonrpc.Get(x.Client.Capabilities, "sampling") == nil {
		return nil
	}
	return &lent{name: "the client's", ask: func(ctx context.Context, params []byte) (jsonrpc.Message, error) {
		return x.Request(ctx, "sampling/createMessage", params)
	}}
}

// Complete implements llm.Model, for one question after the other. The answer comes in one piece, so that nothing is
// passed to OnDelta.
func (l *lent) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	resp := llm.Response{Usage: llm.Usage{Model: l.name}}
	if l.no != nil {
		return resp, l.no
	}
	resp.Usage.Calls = 1
	m, err := l.ask(ctx, samplingParams(req))
	switch {
	case err != nil && ctx.Err() != nil:
		return resp, err
	case err != nil:
		l.no = fmt.Errorf("the client lends no model: %w", err)
		return resp, l.no
	case m.Err != nil:
		l.no = errors.New("the client lends no model: " + short.Line(jsonrpc.Text(jsonrpc.Get(m.Err, "message")), 300))
		return resp, l.no
	}
	if name := jsonrpc.Text(jsonrpc.Get(m.Result, "model")); name != "" {
		l.name = short.Line(name, 100)
		resp.Usage.Model = l.name
	}
	text := sampledText(jsonrpc.Get(m.Result, "content"))
	switch {
	case jsonrpc.Text(jsonrpc.Get(m.Result, "stopReason")) == "maxTokens":
		return resp, errors.New("the client's model reached its length limit")
	case len(text) > lentBytes:
		return resp, fmt.Errorf("the answer of the client's model is larger than %d bytes", lentBytes)
	}
	resp.Text = text
	return resp, nil
}

// samplingParams writes a question as the params of sampling/createMessage (MCP 2025-06-18, Sampling). It is understood
// by clients of every handshake era.
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
	}{SystemPrompt: req.System, MaxTokens: lentTokens}
	for _, m := range req.Messages {
		params.Messages = append(params.Messages, message{m.Role, content{"text", m.Content}})
	}
	return []byte(encode(params, ""))
}

// sampledText is the text of a sampled message: one block, or since 2025-11-25 a list of them.
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
