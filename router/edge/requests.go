package edge

import (
	"context"
	"errors"
	"strconv"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// clientRequests are the router's requests to the client of a session. The session's inFlight.mu guards them.
type clientRequests struct {
	session *session
	sent    uint64
	waiting map[string]chan<- clientResponse // by id
}

// clientResponse is a response and the number of notifications that precede it.
type clientResponse struct {
	jsonrpc.Message
	barrier uint64
}

// sendFunc queues a message for the client. lost is closed when nobody can read it; ok is false if it is not sent.
type sendFunc func(output.Message) (lost <-chan struct{}, ok bool)

// call sends a request to the client and waits for the response and for earlier notifications.
func (c *clientRequests) call(
	ctx context.Context, method string, params []byte, send sendFunc,
) (jsonrpc.Message, error) {
	if ctx.Err() != nil {
		return jsonrpc.Message{}, context.Cause(ctx)
	}
	s := c.session
	id, response := c.register()
	defer c.drop(id)
	m := output.Whole(jsonrpc.Request(id, method, params))
	m.Keep = true
	lost, ok := send(m)
	if !ok {
		return jsonrpc.Message{}, ErrNoClient
	}
	var err error
	select {
	case r := <-response:
		return c.inOrder(ctx, r)
	case <-lost:
		err = ErrClientGone
	case <-s.life.closing:
		err = ErrClientGone
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	select {
	case r := <-response: // it arrived at the last moment
		return c.inOrder(ctx, r)
	default:
	}
	if ctx.Err() != nil {
		c.cancel(id, err, send)
	}
	return jsonrpc.Message{}, err
}

// register returns the id of a new request and the channel of its response.
func (c *clientRequests) register() (jsonrpc.ID, <-chan clientResponse) {
	response := make(chan clientResponse, 1)
	mu := &c.session.inFlight.mu
	mu.Lock()
	defer mu.Unlock()
	c.sent++
	id := jsonrpc.StringID("nexus-" + strconv.FormatUint(c.sent, 10))
	if c.waiting == nil {
		c.waiting = make(map[string]chan<- clientResponse)
	}
	c.waiting[string(id)] = response
	return id, response
}

func (c *clientRequests) drop(id jsonrpc.ID) {
	mu := &c.session.inFlight.mu
	mu.Lock()
	defer mu.Unlock()
	delete(c.waiting, string(id))
}

// inOrder returns a response after earlier notifications have been served, even if ctx ends meanwhile.
func (c *clientRequests) inOrder(ctx context.Context, r clientResponse) (jsonrpc.Message, error) {
	if !c.session.notifications.inOrder(ctx, r.barrier) {
		return jsonrpc.Message{}, context.Cause(ctx)
	}
	return r.Message, nil
}

// cancel tells the client that its response is no longer needed. If the cause has the params of a server's
// cancellation, it sends those.
func (c *clientRequests) cancel(id jsonrpc.ID, cause error, send sendFunc) {
	var params []byte
	var told interface{ CancelParams() []byte }
	if errors.As(cause, &told) {
		params = told.CancelParams()
	}
	m := output.Whole(jsonrpc.Notification("notifications/cancelled", jsonrpc.Set(params, "requestId", []byte(id))))
	m.Keep = true
	if _, ok := send(m); !ok {
		c.session.send(m) // the stream of the request has ended; the client may still work on it
	}
}

// deliver passes a response to the waiting call. It reports false if there is none.
func (c *clientRequests) deliver(m jsonrpc.Message) bool {
	mu := &c.session.inFlight.mu
	mu.Lock()
	defer mu.Unlock()
	key := m.ID.Key()
	response, ok := c.waiting[key]
	if ok {
		delete(c.waiting, key)
		response <- clientResponse{m, c.session.notifications.arrived}
	}
	return ok
}
