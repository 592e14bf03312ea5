package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Probe finds out whether the endpoint can be reached and takes the key, and keeps that for Status. It costs no
// tokens: it lists the models. Where that tells nothing about the key, because an endpoint has no such list or the key
// may not read it, Probe sends a request without messages, which every endpoint refuses, a wrong key first.
func (c *Client) Probe(ctx context.Context) {
	err := c.probe(ctx, http.MethodGet, "/models", nil)
	var e *Error
	if errors.As(err, &e) && e.Status != 0 && e.Status != http.StatusUnauthorized {
		path, empty := "/chat/completions", map[string]any{"model": c.cfg.Model, "messages": []any{}}
		if c.cfg.API == APIResponses {
			path, empty = "/responses", map[string]any{"model": c.cfg.Model, "input": []any{}}
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
			e.finish(c.cfg.Model, c.cfg.APIKey)
		}
		c.status.State, c.status.LastError = stateAfter(err), err.Error()
	}
}

// probe sends one request. The error is an *Error where the endpoint refuses it or cannot be reached.
func (c *Client) probe(ctx context.Context, method, path string, content any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.baseURL+path, bytes.NewReader(body))
	if err != nil {
		return failure(Unreachable, "base_url is no URL")
	}
	if content == nil {
		req.Body, req.ContentLength = http.NoBody, 0
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	req.URL.RawQuery = c.query
	req.Header.Set("Accept", "application/json")
	for name, values := range c.header {
		req.Header[name] = values
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return networkError(ctx, err, Unreachable)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return statusError(resp, resp.Body)
	}
	return nil
}
