package tape

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// send sends a request to a server.
type send = func(ctx context.Context, r *downstream.Request) (link.Reply, error)

// called is the recorded outcome of a request to a server.
type called struct {
	Result   json.RawMessage        `json:"result,omitempty"`
	Err      json.RawMessage        `json:"error,omitempty"`
	Modern   bool                   `json:"modern,omitempty"`
	Attempts int                    `json:"attempts"`
	Failure  *link.Failure          `json:"failure,omitempty"`
	Input    *downstream.InputError `json:"input,omitempty"`
	ending
}

// Call records or replays every request to a server. It implements downstream.Options.Around.
func (t *Tape) Call(ctx context.Context, r *downstream.Request, next send) (reply link.Reply, err error) {
	if t == nil || r.Method == "tools/list" || r.Method == "ping" {
		return next(ctx, r)
	}
	request := struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params,omitempty"`
	}{r.Method, jsonrpc.Remove(r.Params, "_meta")} // of this one request: tokens, traces
	asked := func() any {
		reply, err = next(ctx, r)
		return describe(ctx, r, reply, err)
	}
	answered := func(raw []byte) error {
		var c called
		if err := json.Unmarshal(raw, &c); err != nil {
			return err
		}
		if r.Attempts != nil {
			*r.Attempts = c.Attempts
		}
		reply, err = c.reply(ctx)
		return nil
	}
	if missing := t.exchange(ctx, kindCall, r.Server, request, asked, answered); missing != nil {
		return link.Reply{}, &link.Failure{Server: r.Server, Reason: reason.Unavailable, Message: missing.Error()}
	}
	return reply, err
}

func describe(ctx context.Context, r *downstream.Request, reply link.Reply, err error) called {
	c := called{Result: reply.Result, Err: reply.Err, Modern: reply.Modern}
	if r.Attempts != nil {
		c.Attempts = *r.Attempts
	}
	switch {
	case err == nil, errors.As(err, &c.Failure), errors.As(err, &c.Input):
	default:
		c.ending = endingOf(ctx, err)
	}
	return c
}

// ending is a recorded error without a more specific form.
type ending struct {
	Ended bool   `json:"ended,omitempty"` // the caller ended the request before the answer
	Other string `json:"other,omitempty"`
}

func endingOf(ctx context.Context, err error) ending {
	if ctx.Err() != nil {
		return ending{Ended: true}
	}
	return ending{Other: err.Error()}
}

// err returns the recorded error. If the caller had ended the request, err waits until the caller ends it again.
func (e ending) err(ctx context.Context) error {
	switch {
	case e.Ended:
		<-ctx.Done()
		return context.Cause(ctx)
	case e.Other != "":
		return errors.New(e.Other)
	}
	return nil
}

// reply returns the recorded answer.
func (c *called) reply(ctx context.Context) (link.Reply, error) {
	switch {
	case c.Failure != nil:
		return link.Reply{}, c.Failure
	case c.Input != nil:
		return link.Reply{}, c.Input
	}
	if err := c.ending.err(ctx); err != nil {
		return link.Reply{}, err
	}
	const names = jsonrpc.NameURI | jsonrpc.NameResultType | jsonrpc.NameIsError // may occur
	return link.Reply{Result: c.Result, Err: c.Err, Modern: c.Modern, Names: names}, nil
}
