package downstream

import (
	"context"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Question is a request of a server.
type Question struct {
	Method string
	Params []byte // raw
	// Notify tells the server something in the session that it asks in, whichever server has the name by now.
	Notify func(ctx context.Context, method string, params []byte) error
}

// Asker answers a server's request in place of the client whose call caused it, with a raw result or a raw
// error. Neither means that the client cannot be asked and has been sent nothing. If ctx ends, the client
// is told that nobody waits for its answer.
type Asker func(ctx context.Context, q Question) (result, err []byte)

// origin is what a link keeps of the request behind a call.
type origin struct {
	ask    Asker
	notify func(jsonrpc.Message) bool
	pause  func() (resume func()) // stops the time of the call
	ctx    context.Context        // of the call
}

// handler takes what a server sends of its own accord in a session of a slot.
type handler struct {
	m   *Manager
	sl  *slot
	nth int64 // session of the slot
}

// Notified implements link.Handler.
func (h handler) Notified(message jsonrpc.Message, from []*link.Call) {
	h.sl.changed(message.Method)
	known := false
	for _, call := range from {
		if o, ok := call.Origin.(*origin); ok && o.notify != nil {
			if known = true; o.notify(message) {
				return
			}
		}
	}
	if !known {
		h.sl.inTurn(h.nth, func() { h.m.opts.OnMessage(Message{h.sl.s.config.Name, h.sl.client, message}) })
	}
}

// Asked implements link.Handler. Where several calls of one client may have caused the question, it is open
// as long as any of them is: the one on whose stream it reaches the client may be the first to end.
func (h handler) Asked(ctx context.Context, message jsonrpc.Message, from []*link.Call) (result, err []byte) {
	q := Question{Method: message.Method, Params: message.Params, Notify: h.sl.tell}
	var origins []*origin
	for _, call := range from {
		if o, ok := call.Origin.(*origin); ok && o.ask != nil {
			origins = append(origins, o)
		}
	}
	if len(origins) > 0 {
		asking, end := withTheLastOf(ctx, origins)
		defer end()
		for _, o := range origins {
			defer o.pause()() // people take their time
		}
		for _, o := range origins {
			if result, err = o.ask(asking, q); result != nil || err != nil {
				return result, err
			}
		}
	}
	if h.sl.client != "" && h.m.opts.OnRequest != nil {
		if result, err = h.m.opts.OnRequest(ctx, h.sl.s.config.Name, h.sl.client, q); result != nil || err != nil {
			return result, err
		}
	}
	e := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "No client can be asked: " + message.Method}
	return nil, e.Encode()
}

// withTheLastOf returns a context that ends with ctx or when all the calls have ended.
func withTheLastOf(ctx context.Context, calls []*origin) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	left := new(atomic.Int64)
	left.Store(int64(len(calls)))
	var stops []func() bool
	for _, call := range calls {
		stops = append(stops, context.AfterFunc(call.ctx, func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		}))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}
