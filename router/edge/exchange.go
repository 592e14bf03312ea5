package edge

import (
	"context"
	"net/http"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
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
	Version       protocol.Version               // negotiated; for initialize, the version to answer with
	Client        inbound.ClientInfo             // from initialize or, since 2026-07-28, from the request
	ProgressToken []byte                         // raw; nil if the client wants no progress
	Header        http.Header                    // without keys; nil on stdio

	edge    *Edge
	session *session // nil without one
	remote  tracing.Remote
	mrtr    *mrtr // nil if the client accepts no requests, and before 2026-07-28
	cancel  context.CancelCauseFunc
	entry   entry
	out     response
}

// Notify sends a notification that relates to this request, on its stream and before its response. After the response
// it is dropped. If the client accepts no event stream, progress is dropped, and other notifications go to the
// session's own stream if that is read. Notify does not wait for the client: beyond 1,000 unwritten messages or the
// caller's memory limit, the oldest are dropped. It reports whether the message will be written.
func (x *Exchange) Notify(message []byte) bool {
	outlet := x.out.outlet
	if outlet == nil || x.out.state.Load() != live {
		return false
	}
	if x.session == nil || x.Version.AtLeast(protocol.V20260728) || outlet.Open() {
		return x.send(output.Whole(message), false)
	}
	return x.session.Attached() && jsonrpc.Text(jsonrpc.Get(message, "method")) != "notifications/progress" &&
		x.session.send(output.Whole(message))
}

// levels are the severities of log messages in ascending order.
var levels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Wants reports whether a server's notification that relates to the request may be sent to the client. Since
// 2026-07-28, log messages are sent only if the request's _meta names their level or a lower one, and changes of lists
// and resources only to subscriptions/listen.
func (x *Exchange) Wants(m jsonrpc.Message) bool {
	if !x.Version.AtLeast(protocol.V20260728) {
		return true
	}
	if m.Method != "notifications/message" {
		of := func(a protocol.Announcement) bool { return a.Method == m.Method }
		return !slices.ContainsFunc(protocol.Announcements, of)
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
func (x *Exchange) ForceStream() bool { return x.out.outlet != nil && x.out.outlet.Open() }

// PreferStream makes the response an event stream if the client names that type. It sends nothing.
func (x *Exchange) PreferStream() {
	if x.out.outlet != nil {
		x.out.outlet.PreferStream()
	}
}

// Request sends a request to the client and waits for the response, a result or an error. The request goes on the
// stream of this exchange, on the session's own stream if the client accepts no event stream, or, since 2026-07-28,
// into an input_required result. Its id is the router's. The error is ErrNoClient if nothing was sent to the client,
// ErrClientGone if no response can arrive, or the cause of ctx. In the last case the client receives a cancellation,
// with the params of a cause that has CancelParams. Since 2026-07-28, Stop ends it with ErrClientGone. Request
// implies Sent, because the response follows the client's later messages.
func (x *Exchange) Request(ctx context.Context, method string, params []byte) (jsonrpc.Message, error) {
	if x.mrtr != nil {
		x.Sent()
		return x.mrtr.request(ctx, method, params)
	}
	if x.session == nil || x.Version.AtLeast(protocol.V20260728) {
		return jsonrpc.Message{}, ErrNoClient
	}
	x.Sent()
	outlet := x.out.outlet
	if outlet == nil || !outlet.Open() {
		return x.edge.Request(ctx, x.session.id, method, params)
	}
	return x.session.requests.call(ctx, method, params, func(m output.Message) (<-chan struct{}, bool) {
		return outlet.Lost(), x.out.state.Load() == live && x.send(m, false)
	})
}

// Gone reports whether the connection of the response has ended and the client reads no other stream of its session.
func (x *Exchange) Gone() bool {
	select {
	case <-x.out.conn:
		return x.session == nil || !x.session.Attached()
	default:
		return false
	}
}

// hungUp reports whether the client has cancelled the request by closing its connection.
func hungUp(x *Exchange) bool { return x.out.left.Load() || x.session == nil && x.Gone() }

// Sent marks the message as passed on, or as not to be passed on. Later notifications of the session, and the requests
// after them, wait for that, at most 5 seconds. Returning from Serve implies it.
func (x *Exchange) Sent() { x.entry.table.markSent(x) }

// abort ends the context of the exchange.
func (x *Exchange) abort(cause error) { x.cancel(cause) }

// size returns the bytes charged for the exchange itself.
func (x *Exchange) size() int { return len(x.Message.Raw) + output.SmallMessage }
