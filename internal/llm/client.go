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
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/sashabaranov/go-openai"
)

// Options of a Client. The zero value works.
type Options struct {
	Logger     *slog.Logger     // nil discards
	HTTPClient *http.Client     // nil creates one; its Timeout must be 0, because it would limit streams
	RetryDelay time.Duration    // before the second attempt, doubled for the third; 0 is one second
	Now        func() time.Time // clock for remembered endpoint properties; nil = time.Now
	Breaker    *Breaker         // shared by clients of the same endpoint; nil creates one
}

// Client is a Model at an HTTP endpoint.
type Client struct {
	cfg      Config
	log      *slog.Logger
	endpoint endpoint
	delay    time.Duration
	breaker  *Breaker
	now      func() time.Time

	mu      sync.Mutex
	learned map[shape]learned // parameters that the endpoint is known to accept
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
		delay:    cmp.Or(max(opts.RetryDelay, 0), time.Second), breaker: opts.Breaker, now: opts.Now,
		learned: map[shape]learned{}, status: Status{Model: cfg.Model, State: StateUnknown},
	}
	c.endpoint.add(cfg.Headers)
	for _, value := range cfg.Extra {
		c.endpoint.hideTexts(value)
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.breaker == nil {
		c.breaker = &Breaker{}
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
	probe, down := c.breaker.allow(time.Now())
	if down != nil {
		down.model = c.cfg.Model
		c.record(ctx, down)
		return Response{Usage: usage}, down
	}
	deadline, _ := ctx.Deadline()
	waits := newWaits(c.delay, deadline)
	if probe {
		waits.left = 0
	}
	answer, err := backoff.RetryNotifyWithData(func() (completion, error) {
		a, err := c.attempt(ctx, req, &usage)
		var e *Error
		if err != nil && (!errors.As(err, &e) || !e.Retryable()) {
			err = backoff.Permanent(err)
		} else if err != nil {
			waits.asked = e.retryAfter
		}
		return a, err
	}, backoff.WithContext(waits, ctx), func(err error, wait time.Duration) {
		c.log.WarnContext(ctx, "Retrying the request to the model", "model", c.cfg.Model, "error", err, "wait", wait)
		if req.OnRestart != nil {
			req.OnRestart()
		}
	})
	if err != nil && errors.Is(err, ctx.Err()) { // the context ended the wait for another attempt
		err = context.Cause(ctx)
	}
	c.breaker.done(time.Now(), probe, err)
	c.record(ctx, err)
	return Response{Text: answer.text, Calls: answer.calls, Usage: usage}, err
}

// attempt sends the request once; it sends it again only if the endpoint refuses parameters.
func (c *Client) attempt(ctx context.Context, req Request, usage *Usage) (completion, error) {
	asked := shape{form: req.Schema != nil, tools: len(req.Tools) > 0}
	d := c.known(asked)
	for refused := false; ; refused = true {
		usage.Calls++
		a, err := c.ask(ctx, req, d)
		usage.InputTokens += a.input
		usage.OutputTokens += a.output
		if err == nil {
			if refused {
				c.learn(asked, d)
			}
			return a, nil
		}
		var e *Error
		if !errors.As(err, &e) {
			return completion{}, err
		}
		e.finish(c.cfg.Model, c.endpoint.secrets)
		next, ok := d.plainer(e, asked)
		if !ok {
			return completion{}, e
		}
		if setting := d.drops(next); setting != "" && (setting != "temperature" || c.cfg.Temperature != nil) {
			c.log.WarnContext(ctx, "The endpoint refuses a setting; retrying without it", "model", c.cfg.Model, "setting", setting, "error", e)
		} else {
			c.log.DebugContext(ctx, "The endpoint refuses a parameter; retrying with fewer parameters", "model", c.cfg.Model, "error", e)
		}
		if req.OnRestart != nil {
			req.OnRestart()
		}
		d = next
	}
}

// completion is the result of one request.
type completion struct {
	text          string
	calls         []Call
	input, output int // tokens
}

// ask sends one request and reads its response.
func (c *Client) ask(ctx context.Context, req Request, d dialect) (completion, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, stop := context.WithTimeoutCause(ctx, c.cfg.Timeout, errSlow)
	defer stop()
	g := &streamGuard{endpoint: c.endpoint, cancel: cancel, idle: c.cfg.Timeout / 4}
	g.extra = []map[string]json.RawMessage{c.cfg.settings(d), c.cfg.Extra}
	library := openai.DefaultConfig("")
	library.BaseURL = c.endpoint.baseURL
	library.HTTPClient = g
	client := openai.NewClientWithConfig(library)
	if len(req.Tools) > 0 {
		tools := map[string]json.RawMessage{"tools": toolList(c.cfg.API, req.Tools, d)}
		g.extra = append([]map[string]json.RawMessage{tools}, g.extra...)
	}
	t := &transcript{guard: g, onDelta: req.OnDelta}
	var a completion
	var err error
	switch c.cfg.API {
	case APIAnthropic:
		a, err = message(ctx, c.messageRequest(req), req.Schema, d, t)
	case APIResponses:
		a, err = respond(ctx, client, c.responsesRequest(req, d), d, t)
	default:
		a, err = chat(ctx, client, c.chatRequest(req, d), d, t)
	}
	if err != nil {
		return a, networkError(ctx, err, Invalid)
	}
	return a, nil
}

// transcript collects the pieces of a response within limits.
type transcript struct {
	text    strings.Builder
	calls   calls
	called  int    // total bytes of the calls
	refused string // text of the model's refusal
	guard   *streamGuard
	onDelta func(string)
}

func (t *transcript) add(piece string) error {
	if piece == "" {
		return nil
	}
	if t.text.Len()+len(piece) > maxText {
		return failure(Invalid, "the answer is larger than %d bytes", maxText)
	}
	t.guard.started = true
	t.text.WriteString(piece)
	if t.onDelta != nil {
		t.onDelta(piece)
	}
	return nil
}

// complete adds the text to a completion whose stream ended properly.
func (t *transcript) complete(a completion) (completion, error) {
	a.calls = t.calls.done()
	switch empty := t.text.Len() == 0 && len(a.calls) == 0; {
	case empty && t.refused != "":
		return a, refusal(t.refused)
	case empty:
		return a, failure(Invalid, "the answer is empty")
	}
	a.text = t.text.String()
	return a, nil
}
