package llm

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// States of a model.
const (
	StateUnknown  = "unknown"  // no request sent yet
	StateOK       = "ok"       // the last request succeeded
	StateFailing  = "failing"  // the last request failed
	StateRejected = "rejected" // the endpoint refused the key
)

// Status is the state of a model.
type Status struct {
	Model     string     `json:"model"`
	State     string     `json:"state"`
	LastOK    *time.Time `json:"last_ok,omitempty"`    // when a request last succeeded
	LastError string     `json:"last_error,omitempty"` // why the last request failed; empty after a success
	Breaker   string     `json:"breaker,omitempty"`    // closed, open or half-open
}

// Status returns the state of the model. It sends nothing.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	status := c.status
	status.Breaker = c.breaker.State()
	return status
}

// record stores the result of a request. A cancellation by the caller says nothing about the model.
func (c *Client) record(ctx context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		now := time.Now()
		c.status.State, c.status.LastOK, c.status.LastError = StateOK, &now, ""
	case !errors.Is(ctx.Err(), context.Canceled):
		c.status.State, c.status.LastError = stateAfter(err), err.Error()
	}
}

func stateAfter(err error) string {
	var e *Error
	if errors.As(err, &e) && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden) {
		return StateRejected
	}
	return StateFailing
}

// Probe checks whether the endpoint is reachable and accepts the key, and updates Status. It costs no tokens: it
// lists the models. If that does not test the key, because the endpoint has no list or the key may not read it, Probe
// sends a request without messages. Every endpoint refuses that, but checks the key first.
func (c *Client) Probe(ctx context.Context) {
	_, path := c.protocol(nil)
	models := "/models"
	if c.cfg.API == APIAnthropic {
		models = "/v1/models"
	}
	err := c.probe(ctx, http.MethodGet, models, nil)
	var e *Error
	if errors.As(err, &e) && e.Status != 0 && e.Status != http.StatusUnauthorized {
		turns := "messages"
		if c.cfg.API == APIResponses {
			turns = "input"
		}
		err = c.probe(ctx, http.MethodPost, path, object{"model": c.cfg.Model, turns: []any{}})
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
