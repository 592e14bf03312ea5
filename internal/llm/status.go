package llm

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// States of a model.
const (
	StateUnknown  = "unknown"  // nothing was asked yet
	StateOK       = "ok"       // the last request was answered
	StateFailing  = "failing"  // the last request failed
	StateRejected = "rejected" // the endpoint refused the key
)

// Status is how a model has been doing.
type Status struct {
	Model     string     `json:"model"`
	State     string     `json:"state"`
	LastOK    *time.Time `json:"last_ok,omitempty"`    // when it last answered
	LastError string     `json:"last_error,omitempty"` // why it last failed; empty once it answers again
}

// Status reports how the model has been doing. It asks nothing.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// record keeps how a question went. That a caller went away says nothing about the model.
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
