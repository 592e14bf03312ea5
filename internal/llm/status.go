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
	Breaker   string     `json:"breaker,omitempty"`    // closed or open
}

// Status returns the state of the model. It sends nothing.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	status := c.status
	status.Breaker = c.breaker.state()
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
