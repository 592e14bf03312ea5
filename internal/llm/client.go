// Package llm is a client of language models over HTTP: of OpenAI's Chat Completions and Responses APIs, Anthropic's
// Messages API, and compatible endpoints.
//
// [New] returns a [Client], whose [Client.Complete] sends a prompt; [NewEmbeddings] returns [Embeddings]. A Client is
// safe for concurrent use and has no goroutines between calls. A response is complete or an error: streams that are
// cut, stall, carry errors or exceed a limit never become a response. Rate limits, server errors, timeouts and lost
// connections are retried within the caller's context. The API key is sent in one request header and never appears in
// errors or logs.
package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/agenticnexus/agenticnexus/internal/breaker"
)

// Options of a Client. The zero value works.
type Options struct {
	Logger     *slog.Logger  // nil discards
	HTTPClient *http.Client  // nil creates one; its Timeout must be 0, because it would limit streams
	RetryDelay time.Duration // before the second attempt, doubled for the third; 0 is one second
	Breaker    *Breaker      // shared by clients of the same endpoint; nil creates one
}

// Client is a Model at an HTTP endpoint.
type Client struct {
	cfg      Config
	log      *slog.Logger
	endpoint endpoint
	delay    time.Duration
	breaker  *Breaker

	mu      sync.Mutex
	learned map[requestKind]learned // parameters that the endpoint is known to accept
	status  Status
}

// attempts limits the attempts of one request, without those that find out which parameters the endpoint accepts.
const attempts = 3

// errSlow is the cause if a response takes longer than the configured timeout.
var errSlow = errors.New("no complete answer in time")

// New returns a Client. It does not connect before the first Complete.
func New(cfg Config, opts Options) *Client {
	c := &Client{
		cfg: cfg, log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)),
		endpoint: newEndpoint(cfg.API, cfg.BaseURL, cfg.APIKey, opts.HTTPClient),
		delay:    cmp.Or(max(opts.RetryDelay, 0), time.Second), breaker: opts.Breaker,
		learned: map[requestKind]learned{}, status: Status{Model: cfg.Model, State: StateUnknown},
	}
	c.endpoint.add(cfg.Headers)
	for _, value := range cfg.Extra {
		c.endpoint.hideTexts(value)
	}
	if c.breaker == nil {
		c.breaker = NewBreaker()
	}
	c.cfg.Timeout = cmp.Or(max(c.cfg.Timeout, 0), Default().Timeout)
	return c
}

// Close closes idle connections. The Client remains usable.
func (c *Client) Close() { c.endpoint.http.CloseIdleConnections() }

// Complete implements Model. Its errors are *Error; if the caller's context ends, the error is its cause. The Usage
// is set in either case.
func (c *Client) Complete(ctx context.Context, req Request) (Response, error) {
	usage := Usage{Model: c.cfg.Model}
	before, down := c.breaker.allow()
	if down != nil {
		down.Model = c.cfg.Model
		c.record(ctx, down)
		return Response{Usage: usage}, down
	}
	got, err := c.retry(ctx, req, &usage)
	c.breaker.done(before, err)
	c.record(ctx, err)
	out := Response{Usage: usage}
	if err == nil {
		out.Text, out.Calls = got.response()
	}
	return out, err
}

// retry sends the request up to three times, with pauses as long as the endpoint requests, else growing with jitter. It
// ends early if the next pause would exceed the deadline, so that a fallback has the time.
func (c *Client) retry(ctx context.Context, req Request, usage *Usage) (*answer, error) {
	left := attempts
	if c.breaker.State() != breaker.Closed { // a trial
		left = 1
	}
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(c.delay), backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0.25), backoff.WithMaxElapsedTime(0))
	for {
		a, err := c.attempt(ctx, req, usage)
		left--
		var e *Error
		if err == nil || !errors.As(err, &e) || !e.Retryable() || left == 0 {
			return a, err
		}
		wait := pauses.NextBackOff()
		if e.retryAfter >= 0 {
			wait = e.retryAfter
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
			return nil, err
		}
		c.log.WarnContext(ctx, "Retrying the request to the model", "model", c.cfg.Model, "error", err, "wait", wait)
		if req.OnRestart != nil {
			req.OnRestart()
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// attempt sends the request once; it sends it again only if the endpoint refuses parameters.
func (c *Client) attempt(ctx context.Context, req Request, usage *Usage) (*answer, error) {
	asked := requestKind{form: req.Schema != nil, tools: len(req.Tools) > 0}
	d := c.known(asked)
	for fewer := false; ; {
		usage.Calls++
		a, err := c.ask(ctx, req, d)
		usage.InputTokens += a.input
		usage.OutputTokens += a.output
		if err == nil {
			if fewer {
				c.learn(asked, d)
			}
			return a, nil
		}
		var e *Error
		if !errors.As(err, &e) {
			return nil, err
		}
		e.finish(c.cfg.Model, c.endpoint.secrets)
		refused, ok := d.drop(e, asked)
		if !ok {
			return nil, e
		}
		if setting := c.cfg.setting(refused); setting != "" {
			c.log.WarnContext(ctx, "The endpoint refuses a setting; retrying without it", "model", c.cfg.Model, "setting", setting, "error", e)
		} else {
			c.log.DebugContext(ctx, "The endpoint refuses a parameter; retrying with fewer parameters", "model", c.cfg.Model, "error", e)
		}
		if req.OnRestart != nil {
			req.OnRestart()
		}
		d, fewer = c.cfg.withoutParameter(d, refused), true
	}
}

// ask sends one request and reads its response. The answer has its token counts also with an error.
func (c *Client) ask(ctx context.Context, req Request, d dialect) (*answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, stop := context.WithTimeoutCause(ctx, c.cfg.Timeout, errSlow)
	defer stop()
	a := &answer{onDelta: req.OnDelta}
	p, path := c.protocol(a)
	if req.Schema != nil && d.form == formStrict {
		req.System = cmp.Or(req.Schema.System, req.System)
	}
	body := p.request(c.cfg, req, d)
	body["model"], body["stream"] = c.cfg.Model, !d.without[paramStreaming]
	if len(req.Tools) > 0 {
		body["tools"] = toolList(c.cfg.API, req.Tools, d)
	}
	members, err := c.cfg.Extra.merge(body)
	if err != nil {
		return a, err
	}
	resp, err := c.endpoint.send(ctx, http.MethodPost, path, members)
	if err != nil {
		return a, networkError(ctx, err, Unreachable)
	}
	defer resp.Body.Close()
	bounded := &boundedBody{body: resp.Body, answer: a, idle: c.cfg.Timeout / 4, cancel: cancel}
	if err := read(resp, bounded, p, a); err != nil {
		return a, networkError(ctx, err, Cut)
	}
	return a, nil
}

// protocol returns the protocol that reads into an answer, and its path.
func (c *Client) protocol(a *answer) (protocol, string) {
	switch c.cfg.API {
	case APIAnthropic:
		return &messages{answer: a}, messagesPath
	case APIResponses:
		return &responses{answer: a}, responsesPath
	}
	return &chat{answer: a}, chatPath
}

// toolList encodes tools for an API. An endpoint that refuses a schema gets open schemas and the plain descriptions.
func toolList(api string, tools []Tool, d dialect) []object {
	list := make([]object, len(tools))
	for i, t := range tools {
		schema, description := t.Schema, t.Description
		if d.without[paramToolSchemas] {
			schema, description = json.RawMessage(`{"type":"object"}`), cmp.Or(t.Plain, description)
		}
		list[i] = object{"name": t.Name, "description": description}
		switch api {
		case APIAnthropic:
			list[i]["input_schema"] = schema
		case APIResponses:
			list[i]["type"], list[i]["parameters"], list[i]["strict"] = "function", schema, false
		default:
			list[i]["parameters"] = schema
			list[i] = object{"type": "function", "function": list[i]}
		}
	}
	return list
}
