package link

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

const (
	messageTimeout = 5 * time.Second        // to send one message
	flushTimeout   = 300 * time.Millisecond // for messages being sent when a session is closed
	closeTimeout   = 2 * time.Second        // for a clean end of a session
)

// unawaited sends the messages to the server that no call waits for, such as cancellations.
type unawaited struct {
	s       *Session
	pending atomic.Int64  // being sent
	said    chan struct{} // signalled when none is left
}

// cancel tells the server that a request is cancelled.
func (c *unawaited) cancel(ctx context.Context, id jsonrpc.ID) {
	var params []byte
	var known CancelParams
	if cause := context.Cause(ctx); errors.As(cause, &known) {
		params = known.CancelParams()
	} else if !errors.Is(cause, context.Canceled) { // which carries no reason
		params = jsonrpc.Set(nil, "reason", []byte(jsonrpc.StringID(cause.Error())))
	}
	params = jsonrpc.Set(params, "requestId", []byte(id))
	c.later(jsonrpc.Notification("notifications/cancelled", params))
}

// later sends a message in the background.
func (c *unawaited) later(message []byte) {
	c.pending.Add(1) // irrelevant once the session is over
	c.s.spawn(func() {
		defer func() {
			if c.pending.Add(-1) == 0 {
				select {
				case c.said <- struct{}{}:
				default: // already signalled
				}
			}
		}()
		c.send(message)
	})
}

// flush waits, at most flushTimeout, for the messages being sent.
func (c *unawaited) flush() {
	moment := time.After(flushTimeout)
	for c.pending.Load() > 0 && c.s.Err() == nil {
		select {
		case <-c.said:
		case <-c.s.ctx.Done():
		case <-moment:
			return
		case <-c.s.graceful.Done():
			return
		}
	}
}

// send sends a message and waits until it is sent.
func (c *unawaited) send(message []byte) {
	if err := c.post(message, messageTimeout); err != nil {
		c.s.logger.Debug("cannot send to server", "server", c.s.server, "error", err)
	}
}

// post sends a message that has no response.
func (c *unawaited) post(message []byte, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(c.s.ctx, limit)
	defer cancel()
	c.s.trace("to server", message)
	return c.s.transport.post(ctx, message)
}

// endLater calls cancel when d has passed after the end of ctx, unless stop is called before ctx ends.
func endLater(ctx context.Context, d time.Duration, cancel func()) (stop func() bool) {
	return context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
}
