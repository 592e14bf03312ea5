// Package llm asks language models over HTTP: Chat Completions and the Responses API, of OpenAI and of the many
// endpoints that speak like it.
//
// A Client allows concurrent use and keeps no goroutine between calls. An answer is whole or an error: streams
// that are cut, stall, carry errors or grow without bound never become an answer. Rate limits, server errors,
// timeouts and lost connections are retried, all within the caller's context. The API key goes into one request
// header and nowhere else: not into errors, not into logs.
package llm

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/sashabaranov/go-openai"
)

// Options are what a Client needs beyond its Config. The zero value works.
type Options struct {
	Logger     *slog.Logger  // nil discards
	HTTPClient *http.Client  // nil makes one; its Timeout must be 0, for it would cover streams
	RetryDelay time.Duration // before the second attempt, doubled for the third; 0 is one second
	Reach      *Reach        // shared by clients of the same endpoint; nil makes one
}

// Client is a Model at an HTTP endpoint.
type Client struct {
	cfg     Config
	log     *slog.Logger
	http    *http.Client
	delay   time.Duration
	reach   *Reach
	baseURL string
	query   string
	header  http.Header

	mu      sync.Mutex
	dialect dialect // what the endpoint is known to understand
	status  Status
}

// Attempts of one question, probes for what the endpoint understands not counted.
const attempts = 3

// errSlow is why an answer is given up that takes longer than the configured timeout.
var errSlow = errors.New("no complete answer in time")

// New makes a Client. It connects to nothing until the first Complete.
func New(cfg Config, opts Options) *Client {
	c := &Client{cfg: cfg, log: opts.Logger, http: opts.HTTPClient, delay: opts.RetryDelay, reach: opts.Reach,
		baseURL: cfg.BaseURL}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.http == nil {
		c.http = newHTTPClient()
	}
	if c.delay <= 0 {
		c.delay = time.Second
	}
	if c.reach == nil {
		c.reach = &Reach{}
	}
	if c.cfg.Timeout <= 0 {
		c.cfg.Timeout = Default().Timeout
	}
	c.baseURL, c.query, _ = strings.Cut(cfg.BaseURL, "?")
	c.baseURL = strings.TrimRight(c.baseURL, "/")
	c.header = authHeader(c.baseURL, cfg.APIKey.Reveal())
	c.dialect = startDialect(cfg.Model)
	c.status = Status{Model: cfg.Model, State: StateUnknown}
	return c
}

// Close closes idle connections. The Client can still be used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// newHTTPClient never follows a redirect: the key and the prompt go where the configuration says.
func newHTTPClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	transport.MaxResponseHeaderBytes = 1 << 20
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// authHeader is how the endpoint wants the key: as a bearer token, or in Azure's own header where the URL
// names a deployment.
func authHeader(baseURL, key string) http.Header {
	h := http.Header{}
	switch {
	case key == "":
	case isAzureDeployment(baseURL):
		h.Set(openai.AzureAPIKeyHeader, key)
	default:
		h.Set("Authorization", "Bearer "+key)
	}
	return h
}

func isAzureDeployment(baseURL string) bool {
	u, err := url.Parse(baseURL)
	return err == nil && strings.Contains(u.Path, "/openai/deployments/")
}

// Complete implements Model. Its errors are *Error, except that a caller's own cancellation or deadline comes
// back as the cause of its context. The Usage is filled in either case.
func (c *Client) Complete(ctx context.Context, req Request) (Response, error) {
	usage := Usage{Model: c.cfg.Model}
	probe, down := c.reach.enter(time.Now())
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
	answer, err := backoff.RetryNotifyWithData(func() (answer, error) {
		a, err := c.attempt(ctx, req, &usage)
		var e *Error
		if err != nil && (!errors.As(err, &e) || !e.Retryable()) {
			err = backoff.Permanent(err)
		} else if err != nil {
			waits.asked = e.retryAfter
		}
		return a, err
	}, backoff.WithContext(waits, ctx), func(err error, wait time.Duration) {
		c.log.Warn("Asking the model again", "model", c.cfg.Model, "error", err, "wait", wait)
		if req.OnRestart != nil {
			req.OnRestart()
		}
	})
	if err != nil && errors.Is(err, ctx.Err()) { // the wait for another attempt ended
		err = context.Cause(ctx)
	}
	c.reach.leave(time.Now(), probe, err)
	c.record(ctx, err)
	return Response{Text: answer.text, Usage: usage}, err
}

// attempt asks once, more often only while the endpoint refuses parameters.
func (c *Client) attempt(ctx context.Context, req Request, usage *Usage) (answer, error) {
	c.mu.Lock()
	d := c.dialect
	c.mu.Unlock()
	for {
		usage.Calls++
		a, err := c.ask(ctx, req, d)
		usage.InputTokens += a.input
		usage.OutputTokens += a.output
		if err == nil {
			c.mu.Lock()
			c.dialect = d.known(c.dialect, req.Schema != nil)
			c.mu.Unlock()
			return a, nil
		}
		var e *Error
		if !errors.As(err, &e) {
			return answer{}, err
		}
		e.finish(c.cfg.Model, c.cfg.APIKey)
		next, ok := d.plainer(e, req.Schema != nil)
		if !ok {
			return answer{}, e
		}
		c.log.Debug("The endpoint refuses a parameter; asking more plainly", "model", c.cfg.Model, "error", e)
		if req.OnRestart != nil {
			req.OnRestart()
		}
		d = next
	}
}

// answer is what one request brought.
type answer struct {
	text          string
	input, output int // tokens
}

// ask sends one request and reads its answer.
func (c *Client) ask(ctx context.Context, req Request, d dialect) (answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, stop := context.WithTimeoutCause(ctx, c.cfg.Timeout, errSlow)
	defer stop()
	g := &guard{http: c.http, query: c.query, header: c.header, cancel: cancel, idle: c.cfg.Timeout / 4}
	library := openai.DefaultConfig("")
	library.BaseURL = c.baseURL
	library.HTTPClient = g
	client := openai.NewClientWithConfig(library)
	t := &transcript{guard: g, onDelta: req.OnDelta}
	var a answer
	var err error
	if c.cfg.API == APIResponses {
		a, err = respond(ctx, client, c.responsesRequest(req, d), d, t)
	} else {
		a, err = chat(ctx, client, c.chatRequest(req, d), d, t)
	}
	if err != nil {
		return a, networkError(ctx, err, Invalid)
	}
	return a, nil
}

// transcript gathers the pieces of an answer within bounds.
type transcript struct {
	text    strings.Builder
	guard   *guard
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
