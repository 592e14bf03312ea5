package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/texts"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
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
		s.err = errors.New("the client refused sampling: " + texts.Line(jsonrpc.Text(jsonrpc.Get(m.Err, "message")), 300))
		return resp, s.err
	}
	if name := jsonrpc.Text(jsonrpc.Get(m.Result, "model")); name != "" {
		s.name = texts.Line(name, 100)
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

// ModelCall describes a finished request to a model, for metrics.
type ModelCall struct {
	Operation     string // tracing.OperationChat or tracing.OperationEmbed
	Model         string // as configured; ClientModel for a client's model
	Provider      string
	ErrorType     string // a kind of llm, cancelled, or empty
	Duration      time.Duration
	Input, Output int // tokens
}

// ClientModel replaces the names of clients' models, which clients choose freely.
const ClientModel = "client"

// Observed wraps models so that their requests hold no secrets and are recorded: as spans in Tracer and as a ModelCall
// to Done. Done may
// be nil.
type Observed struct {
	Tracer tracing.Tracer
	Mask   *redact.Masker // of prompts; nil knows no secrets
	Done   func(ModelCall)
}

// Model returns a model whose requests are recorded. baseURL is the URL of its endpoint.
func (o Observed) Model(m llm.Model, name, baseURL string) llm.Model {
	return &observedModel{m, o.endpoint(tracing.OperationChat, name, baseURL)}
}

// Embedder returns an embedder whose requests are recorded.
func (o Observed) Embedder(e search.Embedder, name, baseURL string) search.Embedder {
	return &observedEmbedder{e, o.endpoint(tracing.OperationEmbed, name, baseURL)}
}

func (o Observed) endpoint(operation, model, baseURL string) observedEndpoint {
	call := ModelCall{Operation: operation, Model: model, Provider: "_OTHER"}
	e := observedEndpoint{Observed: o, call: call}
	u, err := url.Parse(baseURL)
	if err == nil && u.Host != "" {
		e.call.Provider = provider(u.Hostname())
		e.where = append(e.where, tracing.ServerAddress.String(u.Hostname()))
		port := u.Port()
		if port == "" && u.Scheme == "https" {
			port = "443"
		}
		if n, err := strconv.Atoi(port); err == nil {
			e.where = append(e.where, tracing.ServerPort.Int(n))
		}
	}
	e.where = append(e.where, tracing.Operation.String(operation), tracing.Provider.String(e.call.Provider),
		tracing.RequestModel.String(model))
	return e
}

// provider returns the semantic-convention name of the provider behind a host. Most others speak OpenAI's protocol.
func provider(host string) string {
	for suffix, name := range map[string]string{
		"anthropic.com": "anthropic", "azure.com": "azure.ai.openai", "mistral.ai": "mistral_ai", "groq.com": "groq",
		"googleapis.com": "gcp.gemini", "deepseek.com": "deepseek", "x.ai": "x_ai", "perplexity.ai": "perplexity",
	} {
		if host == suffix || strings.HasSuffix(host, "."+suffix) {
			return name
		}
	}
	return "openai"
}

// observedEndpoint records the requests to one endpoint.
type observedEndpoint struct {
	Observed
	call  ModelCall
	where []attribute.KeyValue
}

// begin starts a span. end records the usage and the error.
func (e *observedEndpoint) begin(ctx context.Context) (context.Context, trace.Span, func(llm.Usage, error)) {
	ctx, span := e.Tracer.Start(ctx, tracing.Name(e.call.Operation, e.call.Model),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(e.where...))
	began := time.Now()
	return ctx, span, func(used llm.Usage, err error) {
		call := e.call
		call.Duration, call.Input, call.Output = time.Since(began), used.InputTokens, used.OutputTokens
		span.SetAttributes(tracing.InputTokens.Int(call.Input), tracing.OutputTokens.Int(call.Output),
			tracing.Attempts.Int(used.Calls))
		if err != nil {
			call.ErrorType = modelError(err)
			e.Tracer.Fail(span, call.ErrorType, err.Error())
		}
		span.End()
		if e.Done != nil {
			e.Done(call)
		}
	}
}

func modelError(err error) string {
	var failure *llm.Error
	switch {
	case errors.As(err, &failure):
		return string(failure.Kind)
	case errors.Is(err, context.Canceled):
		return reason.Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return reason.Timeout
	}
	return tracing.ErrorOther
}

// masked returns a request without secrets.
func (o Observed) masked(req llm.Request) llm.Request {
	req.System = o.Mask.Prompt(req.System)
	req.Messages, req.Tools = slices.Clone(req.Messages), slices.Clone(req.Tools)
	for i := range req.Messages {
		req.Messages[i].Content = o.Mask.Prompt(req.Messages[i].Content)
	}
	for i := range req.Tools {
		req.Tools[i].Description = o.Mask.Prompt(req.Tools[i].Description)
		req.Tools[i].Schema = o.Mask.KnownJSON(req.Tools[i].Schema)
	}
	return req
}

type observedModel struct {
	llm.Model
	endpoint observedEndpoint
}

// Complete implements llm.Model.
func (m *observedModel) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	req = m.endpoint.masked(req)
	ctx, span, end := m.endpoint.begin(ctx)
	tracer := m.endpoint.Tracer
	tracer.Message(span, tracing.Instructions, "system", req.System)
	if n := len(req.Messages); n > 0 {
		tracer.Message(span, tracing.InputMessages, req.Messages[n-1].Role, req.Messages[n-1].Content)
	}
	resp, err := m.Model.Complete(ctx, req)
	calls := make([]tracing.Call, len(resp.Calls))
	for i, c := range resp.Calls {
		calls[i] = tracing.Call(c)
	}
	tracer.Message(span, tracing.OutputMessages, llm.RoleAssistant, resp.Text, calls...)
	end(resp.Usage, err)
	return resp, err
}

type observedEmbedder struct {
	search.Embedder
	endpoint observedEndpoint
}

// Embed implements search.Embedder.
func (m *observedEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	ctx, _, end := m.endpoint.begin(ctx)
	clean := make([]string, len(texts))
	for i, text := range texts {
		clean[i] = m.endpoint.Mask.Prompt(text)
	}
	vectors, err := m.Embedder.Embed(ctx, clean)
	end(llm.Usage{Calls: 1}, err)
	return vectors, err
}
