package edge

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// Exchange is one request or notification with its metadata and its reply path to the client. Its deadline is that of
// the handler's context. Its fields do not change. Its methods are safe for concurrent use, also after Serve has
// returned.
type Exchange struct {
	Message       jsonrpc.Message // without _meta.api_key
	Caller        auth.Caller
	Visible       func(server, tool string) bool // tools that the caller may see and use, see auth.Caller.Visible
	Session       string                         // client session id; empty without one, as always since 2026-07-28
	Order         uint64                         // position among the requests and notifications of its session
	Version       protocol.Version               // negotiated; for initialize, the version to answer with
	Client        inbound.ClientInfo             // from initialize or, since 2026-07-28, from the request
	ProgressToken []byte                         // raw; nil if the client wants no progress
	Arrival

	edge    *Edge
	session *session // nil without one
	remote  tracing.Remote
	cancel  context.CancelCauseFunc
	entry   entry
	reply   replyPath
}

// Arrival tells how a request has come in.
type Arrival struct {
	Surface string      // path that the client is connected to, or stdio
	Header  http.Header // without keys; nil on stdio

	request *http.Request // nil on stdio
}

// Notify sends a notification that relates to this request, on its stream and before its response. After the response
// it is dropped. If the client accepts no event stream, progress is dropped, and other notifications go to the
// session's own stream if that is read. Notify does not wait for the client: beyond 1,000 unwritten messages or the
// caller's memory limit, the oldest are dropped. It reports whether the message will be written.
func (x *Exchange) Notify(message []byte) bool {
	if x.reply.sender == nil || x.reply.state.Load() != live {
		return false
	}
	if x.session == nil || x.Version.AtLeast(protocol.V20260728) || x.reply.sender.Open() {
		return x.send(output.Whole(message), false)
	}
	return x.session.own.Attached() && jsonrpc.Text(jsonrpc.Get(message, "method")) != "notifications/progress" &&
		x.session.send(output.Whole(message))
}

// levels are the severities of log messages in ascending order.
var levels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Wants reports whether a server's notification that relates to the request may be sent to the client. Since
// 2026-07-28, log messages are sent only if the request's _meta names their level or a lower one, and changes of lists,
// resources and tasks only to subscriptions/listen. That version has no ends of elicitations.
func (x *Exchange) Wants(m jsonrpc.Message) bool {
	if !x.Version.AtLeast(protocol.V20260728) {
		return true
	}
	switch m.Method {
	case "notifications/message":
	case "notifications/elicitation/complete":
		return false
	default:
		of := func(a protocol.Announcement) bool { return a.Method == m.Method }
		return m.Method != protocol.MethodTask && !slices.ContainsFunc(protocol.Announcements, of)
	}
	asked := jsonrpc.Text(jsonrpc.Get(x.Message.Params, "_meta", mcp.MetaKeyLogLevel))
	least := slices.Index(levels[:], asked)
	return least >= 0 && slices.Index(levels[:], jsonrpc.Text(jsonrpc.Get(m.Params, "level"))) >= least
}

// Hold charges n bytes to the caller for data kept after Serve. release must be called once.
func (x *Exchange) Hold(n int) (release func(), ok bool) {
	budget, caller := x.edge.budget, x.Caller.ID
	if !budget.Reserve(caller, n) {
		return nil, false
	}
	return func() { budget.Release(caller, n) }, true
}

// ForceStream makes the response an event stream even if only the result is sent. It reports false if the client
// accepts none.
func (x *Exchange) ForceStream() bool { return x.reply.sender != nil && x.reply.sender.Open() }

// PreferStream makes the response an event stream if the client names that type. It sends nothing.
func (x *Exchange) PreferStream() {
	if x.reply.sender != nil {
		x.reply.sender.PreferStream()
	}
}

// Request sends a request to the client and waits for the response, a result or an error. The request goes on the
// stream of this exchange, on the session's own stream if the client accepts no event stream, or, since 2026-07-28,
// into an input_required result. Its id is the router's. The error is ErrNoClient if nothing was sent to the client,
// ErrClientGone if no response can arrive, or the cause of ctx. In the last case the client receives a cancellation,
// with the params of a cause that has CancelParams. Since 2026-07-28, Stop ends it with ErrClientGone. Request
// implies ReleaseWaiting, because the response follows the client's later messages.
func (x *Exchange) Request(ctx context.Context, method string, params []byte) (jsonrpc.Message, error) {
	if x.reply.mrtr != nil {
		x.ReleaseWaiting()
		return x.reply.mrtr.request(ctx, method, params)
	}
	if x.session == nil || x.Version.AtLeast(protocol.V20260728) {
		return jsonrpc.Message{}, ErrNoClient
	}
	x.ReleaseWaiting()
	sender := x.reply.sender
	if sender == nil || !sender.Open() {
		return x.edge.Request(ctx, x.session.id, method, params)
	}
	return x.session.requests.call(ctx, method, params, func(m output.Message) (<-chan struct{}, bool) {
		return sender.Lost(), x.reply.state.Load() == live && x.send(m, false)
	})
}

// Gone reports whether the connection of the response has ended and the client reads no other stream of its session.
// Between round trips the client has no connection.
func (x *Exchange) Gone() bool {
	conn := x.reply.conn
	switch {
	case x.reply.task != nil:
		return false // no connection carries it
	case x.reply.mrtr != nil:
		r := x.reply.mrtr.current()
		if r == nil {
			return true
		}
		conn = r.conn
	}
	select {
	case <-conn:
		return x.session == nil || !x.session.own.Attached()
	default:
		return false
	}
}

// hungUp reports whether the client has cancelled the request by closing its connection.
func hungUp(x *Exchange) bool {
	return x.reply.hungUp.Load() || x.session == nil && x.reply.mrtr == nil && x.Gone()
}

// ReleaseWaiting marks the request as passed on, or as not to be passed on. Later notifications of the session wait for
// that, see [AwaitEarlier]. Returning from Serve implies it.
func (x *Exchange) ReleaseWaiting() { x.entry.table.markPassed(x) }

// abort ends the context of the exchange.
func (x *Exchange) abort(cause error) { x.cancel(cause) }

// size returns the bytes charged for the exchange itself.
func (x *Exchange) size() int { return len(x.Message.Raw) + output.SmallMessage }

// replyPath is how an exchange responds to its client.
type replyPath struct {
	sender   output.Sender   // nil for notifications
	mrtr     *mrtr           // sender as an mrtr; nil if the client accepts no requests or tasks, and before 2026-07-28
	task     *task           // keeps the reply; nil without AsTask
	conn     <-chan struct{} // closed when the connection of the response ends; nil on shared streams
	state    atomic.Uint32
	hungUp   atomic.Bool  // the client has hung up during a round trip
	listens  atomic.Bool  // see Listen
	reserved atomic.Int64 // bytes charged in advance for the response; released once the exchange is served
	free     func()       // see Exchange.OnWritten
	failure  string       // type of the error sent; empty for none
	code     []byte       // raw code of the JSON-RPC error sent; nil for none
}

// States of a request. The first of response and cancellation wins.
const (
	live uint32 = iota
	succeeded
	failed
	cancelled
)

// released is the value of replyPath.reserved after which nothing can be reserved.
const released = -1

// Reply answers with a raw result. Since 2026-07-28, a result without a resultType is marked complete.
func (x *Exchange) Reply(rawResult []byte) { x.ReplyWithNames(rawResult, jsonrpc.AnyName) }

// ReplyWithNames is like Reply, for a result in which only the given names may occur.
func (x *Exchange) ReplyWithNames(rawResult []byte, names jsonrpc.Names) {
	member := func(name string, is jsonrpc.Names) string {
		if !names.Has(is) {
			return ""
		}
		return string(jsonrpc.Get(rawResult, name))
	}
	failure := ""
	if x.Message.Method == "tools/call" && member("isError", jsonrpc.NameIsError) == "true" {
		failure = tracing.ErrorOfTool
	}
	if x.Version.AtLeast(protocol.V20260728) && member("resultType", jsonrpc.NameResultType) == "" {
		rawResult = jsonrpc.Set(rawResult, "resultType", []byte(`"complete"`))
	}
	x.respond(output.Result(x.Message.ID, rawResult), succeeded, failure, nil)
}

// Fail answers with an error.
func (x *Exchange) Fail(err *jsonrpc.Error) { x.FailRaw(err.Encode()) }

// FailRaw answers with a raw error object.
func (x *Exchange) FailRaw(err []byte) {
	code := jsonrpc.Get(err, "code")
	x.respond(output.RawError(x.Message.ID, err), failed, tracing.TypeOfCode(code), code)
}

// Reserve charges the caller for a result of n bytes in total while it is being read. If it reports false, the caller
// holds too much: drop the result and fail the request.
func (x *Exchange) Reserve(n int) bool {
	reserved := &x.reply.reserved
	for {
		have := reserved.Load()
		switch more := n - int(have); {
		case have == released:
			return false
		case more <= 0:
			return true
		case !x.edge.budget.Reserve(x.Caller.ID, more):
			return false
		case reserved.CompareAndSwap(have, int64(n)):
			return true
		default:
			x.edge.budget.Release(x.Caller.ID, more)
		}
	}
}

// OnWritten registers free, which is called once the result is written and its memory is unused. It is not called if
// the result is kept for replay. OnWritten must precede Reply.
func (x *Exchange) OnWritten(free func()) { x.reply.free = free }

func (x *Exchange) respond(m output.Message, state uint32, failure string, code []byte) {
	if x.reply.sender == nil || !x.reply.state.CompareAndSwap(live, state) {
		return
	}
	if failure != "" && hungUp(x) { // the hang-up caused the failure, and nobody reads the response
		failure, code = reason.Cancelled, nil
	}
	x.reply.failure, x.reply.code = failure, code
	if x.reply.mrtr != nil && x.reply.task == nil {
		var ok bool
		if m.ID, ok = x.reply.mrtr.awaitRoundTrip(); !ok {
			return
		}
	}
	if m.Size() > output.SmallMessage && !x.Reserve(m.Size()) {
		x.edge.refusals.overloaded.Add(1)
		x.reply.failure, x.reply.code = reason.TooLarge, nil
		const text = "The result and the caller's unread responses exceed the caller's memory limit"
		m = output.Error(m.ID, routerError(x.Version, text, reason.TooLarge, false))
	} else if len(m.Body) > output.ReplayBytes {
		m.Free = x.reply.free
	}
	m.Paid = int(max(0, x.reply.reserved.Swap(0)))
	x.entry.table.freeID(x)
	if !x.send(m, true) {
		m.Free = nil // others may still refer to it
		m.Payer = x.Caller.ID
		output.Release(x.edge.budget, m)
	}
}

func (x *Exchange) send(m output.Message, last bool) bool {
	m.Payer = x.Caller.ID
	logSent(x.edge.log, x.session, m)
	return x.reply.sender.Send(m, last)
}

// RelayProgress returns a function that relays the params of a server's progress notifications to the client with the
// client's own token. Without a token it does nothing.
func (x *Exchange) RelayProgress() func(params []byte) {
	return func(params []byte) {
		if x.ProgressToken != nil {
			params = jsonrpc.Set(params, "progressToken", x.ProgressToken)
			x.Notify(jsonrpc.Notification("notifications/progress", params))
		}
	}
}

// Progress returns a function that reports progress from 0 to 1 to the client; nil if the client wants none. A task has
// what it says as its statusMessage.
func (x *Exchange) Progress() func(fraction float64, message string) {
	if t := x.reply.task; t != nil {
		return func(_ float64, message string) { t.progressed(message) }
	}
	if x.ProgressToken == nil {
		return nil
	}
	return func(fraction float64, message string) {
		params := append([]byte(`{"progressToken":`), x.ProgressToken...)
		params = strconv.AppendFloat(append(params, `,"progress":`...), fraction, 'f', -1, 64)
		params = append(append(params, `,"total":1.0,"message":`...), jsonrpc.StringID(message)...)
		x.Notify(jsonrpc.Notification("notifications/progress", append(params, '}')))
	}
}

// NotifyKept is like Exchange.Notify, for a message that must not be dropped for newer ones. It reports false if the
// response has been sent, or if a large message exceeds the caller's memory limit.
func NotifyKept(x *Exchange, message []byte) bool {
	m := output.Whole(message)
	m.Keep = true
	return x.reply.sender != nil && x.reply.state.Load() == live && x.send(m, false)
}

// Refused reports whether the client of x must not be asked what a server asks, and returns the raw error for a request
// that fails because of that; nil before 2026-07-28, and if it is the turn of others (see [Yield]). Earlier clients are
// asked unless the server wants input, which it gets by an input_required result.
func Refused(x *Exchange, server, method string, params []byte, input bool) (refusal []byte, refused bool) {
	if x.Version.AtLeast(protocol.V20260728) {
		if missing := x.Client.Missing(method, params); missing != nil {
			return missing.Encode(), true
		}
		if x.edge.mrtrs.turns.over(x.Caller.ID, server) {
			return nil, true
		}
	}
	return nil, input && !x.Client.Supports(method, params)
}

// LoginPath is the path of the pages on which callers log in to servers; the name of a server follows. LoginAt stands
// between them with the Home of a call that lacks the login.
const (
	LoginPath = "/login/"
	LoginAt   = "at"
)

// Logins returns the URL of the pages on which the caller of x logs in to servers; the name of a server follows. It is
// empty unless they are needed, which spares most calls its memory, and on stdio, where the router has no URL.
func Logins(x *Exchange, needed bool) string {
	if !needed || x.request == nil {
		return ""
	}
	url := PublicURL(x.edge, x.request) + LoginPath
	if home := Home(x.edge); home != "" {
		url += LoginAt + "/" + home + "/"
	}
	return url
}

// PublicURL returns the URL of the router, without a path: that of the configured audience of access tokens, else the
// one that the client of r uses.
func PublicURL(e *Edge, r *http.Request) string {
	if c := e.access.oauth(); c != nil {
		if base := c.Base(); base != "" {
			return base
		}
	}
	return auth.ClientURL(r, e.access.trusted)
}

// Yield returns a function that tells that another client waits to be asked by a server, and cannot be while x is open.
// If the client of x has a request to answer, and no round trip is open, x then ends a minute after the last one, and
// it is the turn of others at the server.
func Yield(x *Exchange) func(server string) {
	return func(server string) {
		if x.reply.mrtr != nil {
			x.reply.mrtr.yield(server)
		}
	}
}

// Listen waits as long as the client may receive notifications on the stream of x: until ctx ends, the session of x
// accepts no more messages, or the edge stops. Meanwhile ctx also ends when the caller's access token expires.
func Listen(ctx context.Context, x *Exchange) {
	x.reply.listens.Store(true)
	var closing <-chan struct{}
	if x.session != nil {
		closing = x.session.life.closing
	}
	select {
	case <-ctx.Done():
	case <-closing:
	case <-x.edge.life.stopped.Done():
	}
}
