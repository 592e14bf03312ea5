package llm

import (
	"context"
	"errors"
	"net/http"
)

// Probe checks whether the endpoint is reachable and accepts the key, and updates Status. It costs no tokens: it
// lists the models. If that does not test the key, because the endpoint has no list or the key may not read it, Probe
// sends a request without messages. Every endpoint refuses that, but checks the key first.
func (c *Client) Probe(ctx context.Context) {
	prefix := ""
	if c.cfg.API == APIAnthropic {
		prefix = "/v1"
	}
	err := c.probe(ctx, http.MethodGet, prefix+"/models", nil)
	var e *Error
	if errors.As(err, &e) && e.Status != 0 && e.Status != http.StatusUnauthorized {
		path, empty := "/chat/completions", map[string]any{"model": c.cfg.Model, "messages": []any{}}
		switch c.cfg.API {
		case APIResponses:
			path, empty = "/responses", map[string]any{"model": c.cfg.Model, "input": []any{}}
		case APIAnthropic:
			path = prefix + "/messages"
		}
		err = c.probe(ctx, http.MethodPost, path, empty)
		if errors.As(err, &e) && 400 <= e.Status && e.Status < 500 && stateAfter(err) != StateRejected {
			return // it refused the request, not the key
		}
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = failure(Timeout, "no answer in time")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.status.State, c.status.LastError = StateOK, ""
	default:
		if errors.As(err, &e) {
			e.finish(c.cfg.Model, c.endpoint.secrets)
		}
		c.status.State, c.status.LastError = stateAfter(err), err.Error()
	}
}

// probe sends one request. The error is an *Error if the endpoint refuses it or cannot be reached.
func (c *Client) probe(ctx context.Context, method, path string, content any) error {
	resp, err := c.endpoint.send(ctx, method, path, content)
	if err != nil {
		return networkError(ctx, err, Unreachable)
	}
	return resp.Body.Close()
}
