package edge

import (
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
)

// response is the reply path of an exchange.
type response struct {
	outlet   output.Outlet   // nil for notifications
	lane     output.Lane     // of the outlet
	conn     <-chan struct{} // closed when the connection of the response ends; nil on shared streams
	state    atomic.Uint32
	left     atomic.Bool  // the client has hung up during a round trip
	lingers  atomic.Bool  // see Linger
	reserved atomic.Int64 // bytes charged in advance for the response; released once the exchange is served
	free     func()       // see Exchange.Reuse
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

// released is the value of response.reserved after which nothing can be reserved.
const released = -1

// Reply answers with a raw result. Since 2026-07-28, a result without a resultType is marked complete.
func (x *Exchange) Reply(rawResult []byte) { x.Relay(rawResult, jsonrpc.AnyName) }

// Relay is like Reply, for a result in which only the given names may occur.
func (x *Exchange) Relay(rawResult []byte, names jsonrpc.Names) {
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
	reserved := &x.out.reserved
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

// Reuse calls free once the result is written and its memory is unused. A result kept for replay is not freed. Reuse
// must precede Reply.
func (x *Exchange) Reuse(free func()) { x.out.free = free }

func (x *Exchange) respond(m output.Message, state uint32, failure string, code []byte) {
	if x.out.outlet == nil || !x.out.state.CompareAndSwap(live, state) {
		return
	}
	if failure != "" && hungUp(x) { // the failure is its consequence, and nobody reads the response
		failure, code = reason.Cancelled, nil
	}
	x.out.failure, x.out.code = failure, code
	if x.mrtr != nil {
		var ok bool
		if m.ID, ok = x.mrtr.awaitRoundTrip(); !ok {
			return
		}
	}
	if m.Size() > output.SmallMessage && !x.Reserve(m.Size()) {
		x.edge.refusals.overloaded.Add(1)
		x.out.failure, x.out.code = reason.TooLarge, nil
		const text = "The result and the caller's unread responses exceed the caller's memory limit"
		m = output.Error(m.ID, routerError(x.Version, text, reason.TooLarge, false))
	} else if len(m.Body) > output.ReplayBytes {
		m.Free = x.out.free
	}
	m.Paid = int(max(0, x.out.reserved.Swap(0)))
	x.entry.table.freeID(x)
	if !x.send(m, true) {
		m.Free = nil // others may still refer to it
		m.Payer = x.Caller.ID
		output.Settle(x.edge.budget, m)
	}
}

func (x *Exchange) send(m output.Message, last bool) bool {
	m.Payer = x.Caller.ID
	logSent(x.edge.log, x.session, m)
	return x.out.outlet.Send(&x.out.lane, m, last)
}
