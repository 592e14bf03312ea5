package downstream

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

const pongTime = 2 * time.Second // for a client to answer a server's ping

// handler receives the messages that a server sends on its own initiative in a session of a slot.
type handler struct {
	opts *Options
	sl   *slot
	nth  int64 // number of the session in the slot
}

// Notified implements link.Handler. A notification that may contain data of a call goes to that call's client. If the
// call is unknown and several callers share the session, the notification is dropped. What concerns all clients of a
// shared session goes to the others, too.
func (h handler) Notified(message jsonrpc.Message, from []*link.Call) {
	defer h.sl.s.rescue("passing a notification on", nil)
	h.sl.lists.changed(message.Method)
	m := Message{Server: h.sl.s.config.Name, Client: h.sl.client, Message: message}
	known := false
	for _, call := range from {
		if o, ok := call.Origin.(*origin); ok && o.notify != nil {
			if known = true; o.notify(message) {
				m.Told = o.client
				break
			}
		}
	}
	if known && (m.Client != "" || !common(message.Method)) {
		return
	}
	if private(message.Method) && m.Client == "" {
		only, told := h.sl.callers.one()
		if len(from) > 0 || !told {
			h.sl.s.logger.Debug("dropped a notification that may belong to any client's call",
				"server", m.Server, "method", message.Method)
			return
		}
		m.Caller = only
	}
	h.sl.mail.post(h.sl.s, h.nth, m)
}

// Asked implements link.Handler. If several calls of one client may have caused the request, it stays open until the
// last of them ends, because the call that carries it to the client may end first.
func (h handler) Asked(ctx context.Context, message jsonrpc.Message, from []*link.Call) (result, err []byte) {
	defer h.sl.s.rescue("asking a client", func(f *link.Failure) {
		result, err = nil, (&jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: f.Message}).Encode()
	})
	q := ServerRequest{Method: message.Method, Params: message.Params, Notify: h.sl.tell}
	var origins []*origin
	for _, call := range from {
		if o, ok := call.Origin.(*origin); ok && o.ask != nil {
			origins = append(origins, o)
		}
	}
	if message.Method == "ping" {
		return pong(ctx, q, origins)
	}
	if len(origins) > 0 {
		asking, end := withTheLastOf(ctx, origins)
		defer end()
		for _, o := range origins {
			defer o.pause()() // the user's time does not count
		}
		// Other calls may use the place in the meantime. Only one of these calls asks, most likely the first.
		resume := origins[0].place.Suspend()
		defer func() { resume(origins[0].ctx) }()
		for _, o := range origins {
			if result, err = o.ask(asking, q); result != nil || err != nil {
				return result, err
			}
		}
	}
	if h.sl.client != "" && h.opts.OnRequest != nil {
		ctx, cancel := context.WithTimeout(ctx, h.opts.Execution.ToolTimeoutMax)
		defer cancel()
		if result, err = h.opts.OnRequest(ctx, h.sl.s.config.Name, h.sl.client, q); result != nil || err != nil {
			return result, err
		}
	}
	e := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "No client can be asked: " + message.Method}
	if h.sl.client == "" && len(origins) == 0 {
		e.Message += "; the request does not name its call, and no client or several clients have calls in flight. " +
			"Set session: per_client for the server " + h.sl.s.config.Name
	}
	return nil, e.Encode()
}

// pong asks the clients of the calls for the answer to a ping. The error means that none answers in time; the router
// answers then.
func pong(ctx context.Context, q ServerRequest, origins []*origin) (result, err []byte) {
	ctx, cancel := context.WithTimeout(ctx, pongTime)
	defer cancel()
	for _, o := range origins {
		if result, _ = o.ask(ctx, q); result != nil {
			return result, nil
		}
	}
	e := &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "No client answers"}
	return nil, e.Encode()
}

// withTheLastOf returns a context that ends with ctx or when all of the calls have ended.
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
