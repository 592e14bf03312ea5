package server

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

const (
	pongTime             = 2 * time.Second // for a client to answer a server's ping
	maxNotifications     = 1000            // undelivered notifications per session
	maxNotificationBytes = 8 << 20         // their size; a larger notification is accepted only if none waits
)

// Notification is a notification of a server that belongs to no call, or that concerns also others than the call's
// client.
type Notification struct {
	Server      string
	Client      string // owner of the session; empty for the router's own, which is also the shared one
	Caller      string // the only caller concerned; empty for all
	Login       string // the caller whose login the session has; empty for all
	DeliveredTo string // the client that has received it with its call; empty for none
	Message     jsonrpc.Message
}

// ServerRequest is a request from a server.
type ServerRequest struct {
	Server string
	Method string
	Params []byte // raw
	Input  bool   // from an input_required result: only a client with the capability may be asked
	// Notify sends the server a notification in the session that the request came from.
	Notify func(ctx context.Context, method string, params []byte) error
}

// Asker answers a server's request on behalf of the client whose call caused it. It returns a raw result or a raw
// error, or neither if the client cannot be asked and nothing was sent. When ctx ends, the client receives a
// cancellation.
type Asker func(ctx context.Context, q ServerRequest) (result, err []byte)

// CallHooks connects the handler with a call: whom to ask and notify, and how to pause it. It is the HandlerData of
// link.Call, which the link returns with each message that may belong to the call.
type CallHooks struct {
	Client string                     // the client session
	Ask    Asker                      // may be nil
	Notify func(jsonrpc.Message) bool // may be nil
	Pause  func() (resume func())     // pauses the time limit of the call
	Permit *admission.Permit          // of the call
	Ctx    context.Context            // of the call
}

// handler receives the messages that a server sends on its own initiative in a session of a connection.
type handler struct {
	conn          *Connection
	sessionNumber int64 // of the session in the connection
}

// Notified implements link.Handler. A notification that may contain data of a call goes to that call's client. If the
// call is unknown and several callers share the session, the notification is dropped. What concerns all clients of a
// shared session goes to the others, too.
func (h handler) Notified(message jsonrpc.Message, from []*link.Call) {
	defer h.conn.server.RecoverPanic("passing a notification on", nil)
	h.conn.Lists.changed(message.Method)
	n := Notification{Server: h.conn.server.Config.Name, Client: h.conn.client, Login: h.conn.server.caller,
		Message: message}
	known := false
	for _, call := range from {
		if hooks, ok := call.HandlerData.(*CallHooks); ok && hooks.Notify != nil {
			if known = true; hooks.Notify(message) {
				n.DeliveredTo = hooks.Client
				break
			}
		}
	}
	if known && (n.Client != "" || !concernsAll(message.Method)) {
		return
	}
	if mayHoldCallData(message.Method) && n.Client == "" {
		caller, only := h.conn.callers.only()
		if len(from) > 0 || !only {
			h.conn.server.opts.Logger.Debug("dropped a notification that may belong to any client's call",
				"server", n.Server, "method", message.Method)
			return
		}
		n.Caller = caller
	}
	h.conn.notifications.add(h.conn.server, h.sessionNumber, n)
}

// Asked implements link.Handler. If several calls of one client may have caused the request, it stays open until the
// last of them ends, because the call that carries it to the client may end first: if the client has called a and then
// b, and the server asks because of a, the request goes to the client with b.
func (h handler) Asked(ctx context.Context, message jsonrpc.Message, from []*link.Call) (result, err []byte) {
	defer h.conn.server.RecoverPanic("asking a client", func(f *link.Failure) {
		result, err = nil, (&jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: f.Message}).Encode()
	})
	q := ServerRequest{
		Server: h.conn.server.Config.Name, Method: message.Method, Params: message.Params, Notify: h.conn.Notify,
	}
	var calls []*CallHooks
	for _, call := range from {
		if hooks, ok := call.HandlerData.(*CallHooks); ok && hooks.Ask != nil {
			calls = append(calls, hooks)
		}
	}
	if message.Method == "ping" {
		return pong(ctx, q, calls)
	}
	if !h.conn.server.Config.MayAsk(message.Method) {
		e := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
			Message: "The configuration does not let this server ask a client: " + message.Method}
		return nil, e.Encode()
	}
	if len(calls) > 0 {
		asking, end := untilAllEnd(ctx, calls)
		defer end()
		for _, c := range calls {
			defer c.Pause()() // the user's time does not count
		}
		// Other calls may use the permit in the meantime. Only one of these calls asks, most likely the first.
		resume := calls[0].Permit.Suspend()
		defer func() { resume(calls[0].Ctx) }()
		for _, c := range calls {
			if result, err = c.Ask(asking, q); result != nil || err != nil {
				return result, err
			}
		}
	}
	if opts := h.conn.server.opts; h.conn.client != "" && opts.OnRequest != nil {
		ctx, cancel := context.WithTimeout(ctx, opts.AnswerLimit)
		defer cancel()
		if result, err = opts.OnRequest(ctx, h.conn.server.Config.Name, h.conn.client, q); result != nil || err != nil {
			return result, err
		}
	}
	e := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "No client can be asked: " + message.Method}
	if h.conn.client == "" && len(calls) == 0 {
		e.Message += "; the request does not name its call, and no client or several clients have calls in flight. " +
			h.conn.server.Config.WhatHelps()
	}
	return nil, e.Encode()
}

// pong asks the clients of the calls for the answer to a ping. The error means that none answers in time; the router
// answers then.
func pong(ctx context.Context, q ServerRequest, calls []*CallHooks) (result, err []byte) {
	ctx, cancel := context.WithTimeout(ctx, pongTime)
	defer cancel()
	for _, c := range calls {
		if result, _ = c.Ask(ctx, q); result != nil {
			return result, nil
		}
	}
	e := &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "No client answers"}
	return nil, e.Encode()
}

// untilAllEnd returns a context that ends with ctx or when all of the calls have ended.
func untilAllEnd(ctx context.Context, calls []*CallHooks) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	var left atomic.Int64
	left.Store(int64(len(calls)))
	var stops []func() bool
	for _, call := range calls {
		stops = append(stops, context.AfterFunc(call.Ctx, func() {
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

// notifications queues the notifications of a connection's sessions that belong to no call. It keeps their order and
// decouples the readers of sessions from slow clients.
type notifications struct {
	mu      sync.Mutex
	waiting []Notification
	bytes   int
	sending bool
	dropped bool  // notifications before the queued ones were dropped
	newest  int64 // the newest session that sent a notification
}

// add queues a notification of a session for Options.OnNotification. It drops the oldest if the queue is full, and
// drops notifications from replaced sessions.
func (q *notifications) add(s *Server, session int64, n Notification) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if session < q.newest {
		return
	}
	q.newest = session
	size := len(n.Message.Raw)
	for len(q.waiting) > 0 && (len(q.waiting) >= maxNotifications || q.bytes+size > maxNotificationBytes) {
		q.pop()
		if !q.dropped {
			q.dropped = true
			s.opts.Logger.Warn("dropped notifications of the server: too many wait for delivery", "server", s.Config.Name)
		}
	}
	q.waiting = append(q.waiting, n)
	q.bytes += size
	if !q.sending {
		q.sending = true
		s.wg.Go(func() { q.deliver(s) })
	}
}

// pop removes and returns the oldest notification. The caller holds q.mu.
func (q *notifications) pop() Notification {
	n := q.waiting[0]
	q.waiting[0] = Notification{}
	q.waiting = q.waiting[1:]
	q.bytes -= len(n.Message.Raw)
	return n
}

// deliver delivers notifications until the queue is empty.
func (q *notifications) deliver(s *Server) {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.waiting, q.sending, q.dropped = nil, false, false
			q.mu.Unlock()
			return
		}
		n := q.pop()
		q.mu.Unlock()
		func() {
			defer s.RecoverPanic("passing a notification on", nil)
			s.opts.OnNotification(n)
		}()
	}
}

// mayHoldCallData reports whether a notification may contain data of a call.
func mayHoldCallData(method string) bool {
	return method == "notifications/message" || strings.HasPrefix(method, protocol.MethodTask)
}

// concernsAll reports whether a notification concerns all clients of a session, whichever call it comes with.
func concernsAll(method string) bool {
	return method == "notifications/resources/updated" || strings.HasSuffix(method, "/list_changed")
}

// callers records who has used a session. The zero value is empty.
type callers struct {
	mu    sync.Mutex
	first string
	more  bool
}

// add records the caller of a call; the router's own calls have none.
func (c *callers) add(caller string) {
	if caller == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.first = cmp.Or(c.first, caller)
	c.more = c.more || c.first != caller
}

// only returns the only caller, empty if there was none. ok is false if there were several.
func (c *callers) only() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first, !c.more
}
