package downstream

import (
	"context"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Asker answers a server's request in place of the client whose call caused it, with a raw result or a raw
// error. Neither means that the client cannot be asked and has been sent nothing. If ctx ends, the client
// is told that nobody waits for its answer.
type Asker func(ctx context.Context, method string, params []byte) (result, err []byte)

// origin is what a link keeps of the request behind a call.
type origin struct {
	ask    Asker
	notify func(jsonrpc.Message) bool
	pause  func() (resume func()) // stops the time of the call
	ctx    context.Context        // of the call
}

// handler takes what a server sends of its own accord on one session.
type handler struct {
	m      *Manager
	s      *server
	client string
}

// Notified implements link.Handler.
func (h handler) Notified(message jsonrpc.Message, from []*link.Call) {
	h.s.slot(h.client).changed(message.Method)
	known := false
	for _, call := range from {
		if o, ok := call.Origin.(*origin); ok && o.notify != nil {
			if known = true; o.notify(message) {
				return
			}
		}
	}
	if !known {
		h.m.opts.OnMessage(Message{h.s.config.Name, h.client, message})
	}
}

// Asked implements link.Handler. Where several calls of one client may have caused the question, it is open
// as long as any of them is: the one on whose stream it reaches the client may be the first to end.
func (h handler) Asked(ctx context.Context, message jsonrpc.Message, from []*link.Call) (result, err []byte) {
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
			if result, err = o.ask(asking, message.Method, message.Params); result != nil || err != nil {
				return result, err
			}
		}
	}
	if h.client != "" && h.m.opts.OnRequest != nil {
		if result, err = h.m.opts.OnRequest(ctx, Message{h.s.config.Name, h.client, message}); result != nil || err != nil {
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
