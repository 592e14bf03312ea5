package edge

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// Exchange is one request or notification, all that is known about it, and the m back. Its fields are
// not to be changed. Its methods may be called from any goroutine, also after Serve has returned.
type Exchange struct {
	Message    jsonrpc.Message // request or notification, without _meta.api_key
	Caller     auth.Caller
	Session    string             // id of the client session; empty without one and in the modern era
	Version    protocol.Version   // protocol version in force; for initialize the one to answer with
	Modern     bool               // protocol version 2026-07-28
	Client     inbound.ClientInfo // from initialize or, in the modern era, from the request
	Header     http.Header        // without keys; nil on stdio
	RemoteAddr string             // address of the client; empty on stdio

	edge    *Edge
	session *session        // nil without one
	out     output.Outlet   // nil for notifications
	mrtr    *mrtr           // nil if the client takes no requests, or before 2026-07-28
	conn    <-chan struct{} // closed when the connection of its answer ends; nil if it shares one
	cancel  context.CancelCauseFunc
	lane    output.Lane
	state   atomic.Uint32

	reserved atomic.Int64 // bytes for the answer that its message has not taken over; over in the end
	free     func()       // see Reuse

	// Guarded by the mutex of scope.
	scope   *scope
	id      jsonrpc.ID // under which it can be cancelled
	barrier uint64     // how many notifications come before it
	sent    bool
	sentCh  chan struct{} // closed when sent; made by those who wait
	listed  bool
	prev    *Exchange
	next    *Exchange
}

// States of a request. The first of response and cancellation wins.
const (
	live uint32 = iota
	succeeded
	failed
	cancelled
)

// over marks an exchange that reserves nothing any more.
const over = -1

// Notify sends a whole notification that relates to this request, on its stream and before its response.
// It is dropped after the response. Where the client takes no event stream, progress is dropped, and the rest goes to the session's own stream if that is read.
// Notify does not wait for the client: of more than 1,000 unwritten messages, and of more bytes than the caller may
// hold, the oldest are dropped. It reports whether the message will be written.
func (x *Exchange) Notify(message []byte) bool {
	if x.out == nil || x.state.Load() != live {
		return false
	}
	if x.session == nil || x.Modern || x.out.Open() {
		return x.send(output.Whole(message), false)
	}
	return x.session.Attached() && jsonrpc.Text(jsonrpc.Get(message, "method")) != "notifications/progress" &&
		x.session.send(output.Whole(message))
}

// Reserve makes room for an answer of n bytes in all while it is being read. False means that the caller holds too
// much: the answer has to be given up as overloaded.
func (x *Exchange) Reserve(n int) bool {
	for {
		have := x.reserved.Load()
		switch more := n - int(have); {
		case have == over:
			return false
		case more <= 0:
			return true
		case !x.edge.budget.Reserve(x.Caller.ID, more):
			return false
		case x.reserved.CompareAndSwap(have, int64(n)):
			return true
		default:
			x.edge.budget.Release(x.Caller.ID, more)
		}
	}
}

// Hold charges n bytes to the caller, for what is kept of the message after Serve, until release is called once.
func (x *Exchange) Hold(n int) (release func(), ok bool) {
	budget, caller := x.edge.budget, x.Caller.ID
	if !budget.Reserve(caller, n) {
		return nil, false
	}
	return func() { budget.Release(caller, n) }, true
}

// Reuse has free called once the result that follows is written, if it is too large to be kept for a client that
// comes back. Then nothing refers to the memory of the result any more. It is called before Reply.
func (x *Exchange) Reuse(free func()) { x.free = free }

// Reply answers with a raw result. In the modern era, where each result says whether it is the last word,
// one that does not is complete.
func (x *Exchange) Reply(rawResult []byte) {
	if x.Modern && jsonrpc.Get(rawResult, "resultType") == nil {
		rawResult = jsonrpc.Set(rawResult, "resultType", []byte(`"complete"`))
	}
	x.respond(output.Result(x.Message.ID, rawResult), succeeded)
}

// Fail answers with an error.
func (x *Exchange) Fail(err *jsonrpc.Error) { x.FailRaw(err.Encode()) }

// FailRaw answers with a raw error object.
func (x *Exchange) FailRaw(err []byte) {
	x.respond(output.RawError(x.Message.ID, err), failed)
}

func (x *Exchange) respond(m output.Message, state uint32) {
	if x.out == nil || !x.state.CompareAndSwap(live, state) {
		return
	}
	if x.mrtr != nil {
		var there bool
		if m.ID, there = x.mrtr.awaitRound(); !there {
			return
		}
	}
	if m.Size() > output.SmallMessage && !x.Reserve(m.Size()) {
		x.edge.refused.Add(1)
		m = output.Error(m.ID, routerError(x.Version, "The result is more than the caller may hold beside the answers that it has not read", "too_large", false))
	} else if len(m.Body) > output.ReplayBytes {
		m.Free = x.free
	}
	m.Paid = int(max(0, x.reserved.Swap(0)))
	x.scope.settle(x)
	if !x.send(m, true) {
		m.Free = nil // others may still refer to it
		m.Payer = x.Caller.ID
		output.Settle(x.edge.budget, m)
	}
}

func (x *Exchange) send(m output.Message, last bool) bool {
	m.Payer = x.Caller.ID
	logSent(x.edge.log, x.session, m)
	return x.out.Send(&x.lane, m, last)
}

// ForceStream makes the answer an event stream, also if nothing precedes the response.
func (x *Exchange) ForceStream() {
	if x.out != nil {
		x.out.Open()
	}
}

// PreferStream makes the answer an event stream where the client takes both kinds; nothing is sent yet.
func (x *Exchange) PreferStream() {
	if x.out != nil {
		x.out.PreferStream()
	}
}

// Request asks the client on the stream of this request, or on the session's own where the client takes no
// event stream, or in the modern era by an input_required result, and waits for the answer: a response with a
// result or an error. The id is our own. The error is ErrNoClient where the client cannot be asked and was sent
// nothing, ErrClientGone where the answer cannot come any more, as during Stop in the modern era, or the cause of ctx; then the client is told that
// the request is cancelled, in the words of a cause with CancelParams. Asking implies Sent, for the answer comes behind what the client has said since.
func (x *Exchange) Request(ctx context.Context, method string, params []byte) (jsonrpc.Message, error) {
	if x.mrtr != nil {
		x.Sent()
		return x.mrtr.request(ctx, method, params)
	}
	if x.session == nil || x.Modern {
		return jsonrpc.Message{}, ErrNoClient
	}
	x.Sent()
	if x.out == nil || !x.out.Open() {
		return x.edge.Request(ctx, x.session.id, method, params)
	}
	return x.session.ask(ctx, method, params, func(m output.Message) (<-chan struct{}, bool) {
		return x.out.Lost(), x.state.Load() == live && x.send(m, false)
	})
}

// Gone reports whether the connection of the answer has ended and the client listens on no other of its session.
func (x *Exchange) Gone() bool {
	select {
	case <-x.conn:
		return x.session == nil || !x.session.Attached()
	default:
		return false
	}
}

// Sent tells that the message has been handed on, or need not be: notifications of the session that came
// after it may pass. Returning from Serve implies it. Until then they wait, 5 seconds at most, and the
// requests after them.
func (x *Exchange) Sent() { x.scope.markSent(x) }

// abort ends the exchange's context.
func (x *Exchange) abort(cause error) {
	x.cancel(cause)
}
