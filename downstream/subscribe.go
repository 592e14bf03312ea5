package downstream

import (
	"context"

	"github.com/agenticnexus/agenticnexus/downstream/link"
)

// subscriptions records log levels and subscriptions to replay them on reconnect. On a shared session a server gets
// one subscription per resource.
func (c *callChain) subscriptions(next callFunc) callFunc {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		switch {
		case r.Method == "resources/unsubscribe":
			return c.oneAtATime(ctx, r, next, c.unsubscribe)
		case !r.Proxied: // no client session, nothing to record
		case r.Method == "resources/subscribe":
			return c.oneAtATime(ctx, r, next, c.subscribe)
		case r.Method == "logging/setLevel":
			undo, err := c.clients.SetLevel(r.server.Key(), r.Client, r.Params)
			if err != nil {
				return link.Reply{}, err
			}
			return kept(ctx, r, next, undo)
		}
		return next(ctx, r)
	}
}

// shares reports whether the request uses the router's own session, which clients share: always if the server has no
// session per client, else if the client has not sent initialize.
func (r *Request) shares() bool { return r.connection() == r.server.Own }

// oneAtATime makes a call about a resource. On a shared session, calls about the same resource are serialized.
func (c *callChain) oneAtATime(
	ctx context.Context, r *Request, next callFunc,
	call func(context.Context, *Request, callFunc) (link.Reply, error),
) (link.Reply, error) {
	if r.shares() {
		unlock, err := c.clients.Lock(ctx, r.resource())
		if err != nil {
			return link.Reply{}, err
		}
		defer unlock()
	}
	return call(ctx, r, next)
}

func (c *callChain) subscribe(ctx context.Context, r *Request, next callFunc) (link.Reply, error) {
	undo, err := c.clients.Subscribe(r.resource(), r.Client, r.Caller, r.Params, r.Hold)
	if err != nil {
		return link.Reply{}, err
	}
	return kept(ctx, r, next, undo)
}

func (c *callChain) unsubscribe(ctx context.Context, r *Request, next callFunc) (link.Reply, error) {
	others := c.clients.Unsubscribe(r.resource(), r.Client, r.server.Config.PerClient())
	if others > 0 && r.shares() {
		return link.Reply{Result: []byte("{}")}, nil
	}
	return next(ctx, r)
}

// kept makes a call with a lasting effect and keeps the session from then on. undo reverts the record if the call
// fails.
func kept(ctx context.Context, r *Request, next callFunc, undo func()) (link.Reply, error) {
	reply, err := next(ctx, r)
	if err != nil || reply.Err != nil {
		undo()
	} else {
		r.connection().Keep()
	}
	return reply, err
}
