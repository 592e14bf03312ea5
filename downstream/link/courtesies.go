package link

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

const (
	courtesyTime = 5 * time.Second        // for messages nobody waits for, such as cancellations
	lastWords    = 300 * time.Millisecond // for what is on its way when a session is closed
	farewellTime = 2 * time.Second        // for all that ends a session politely
)

// courtesies are the messages to the server that nobody waits for, such as cancellations.
type courtesies struct {
	s       *Session
	pending atomic.Int64  // on their way
	said    chan struct{} // told when there are none left
}

// cancel tells the server that nobody waits for the request any more.
func (c *courtesies) cancel(ctx context.Context, id jsonrpc.ID) {
	var params []byte
	var known CancelParams
	if cause := context.Cause(ctx); errors.As(cause, &known) {
		params = known.CancelParams()
	} else if !errors.Is(cause, context.Canceled) { // that says nothing
		params = jsonrpc.Set(nil, "reason", []byte(jsonrpc.StringID(cause.Error())))
	}
	params = jsonrpc.Set(params, "requestId", []byte(id))
	c.later(jsonrpc.Notification("notifications/cancelled", params))
}

// later sends a message that nobody waits for.
func (c *courtesies) later(message []byte) {
	c.pending.Add(1) // if the session is over, nobody looks at it
	c.s.spawn(func() {
		defer func() {
			if c.pending.Add(-1) == 0 {
				select {
				case c.said <- struct{}{}:
				default: // nobody waits, or somebody has been told
				}
			}
		}()
		c.send(message)
	})
}

// flush waits a moment for the messages on their way.
func (c *courtesies) flush() {
	moment := time.After(lastWords)
	for c.pending.Load() > 0 && c.s.Err() == nil {
		select {
		case <-c.said:
		case <-c.s.ctx.Done():
		case <-moment:
			return
		case <-c.s.polite.Done():
			return
		}
	}
}

// send sends a message and waits until it is sent.
func (c *courtesies) send(message []byte) {
	if err := c.post(message, courtesyTime); err != nil {
		c.s.logger.Debug("cannot send to server", "server", c.s.server, "error", err)
	}
}

// post sends a message that has no answer.
func (c *courtesies) post(message []byte, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(c.s.ctx, limit)
	defer cancel()
	c.s.trace("to server", message)
	return c.s.transport.post(ctx, message)
}

// endLater calls cancel at d after the end of ctx, unless stop is called before that end.
func endLater(ctx context.Context, d time.Duration, cancel func()) (stop func() bool) {
	return context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
}
