package downstream

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// questions are the requests of a server during one attempt of a call.
type questions struct {
	*Request
	answered atomic.Bool                // at least one
	refused  atomic.Pointer[InputError] // the last that nobody could be asked
	missing  atomic.Pointer[[]byte]     // the error of a call of a client without the capability
}

// ask is an Asker that notes what became of the requests.
func (qs *questions) ask(ctx context.Context, q ServerRequest) (result, rpcErr []byte) {
	result, rpcErr = qs.Ask(ctx, q)
	switch {
	case codeOf(rpcErr) == jsonrpc.CodeMissingCapability: // not known to servers of earlier versions
		missing := rpcErr
		qs.missing.Store(&missing)
		return nil, nil
	case result == nil && rpcErr == nil:
		qs.refuse(q.Method, clientNotAsked)
	case result != nil:
		qs.answered.Store(true)
	}
	return result, rpcErr
}

func (qs *questions) refuse(method, why string) {
	qs.refused.Store(&InputError{Server: qs.Server, Method: texts.Line(method, 100), Why: why})
}

// crowded notes a request that may belong to calls of several clients, see link.Call.
func (qs *questions) crowded(method string) {
	qs.refuse(method, "it does not name its call, and several clients have calls in flight. "+qs.server.Config.WhatHelps())
	if qs.Yield != nil {
		qs.Yield(qs.Server)
	}
}

// outcome returns the outcome of the call. If it fails because a request was refused, the reply or the error tells why:
// a server may pass on the code of the refusal as that of the call. Go-sdk asks clients with a handshake only once;
// what it wants to know after that is in a result of 2026-07-28 without its type.
func (qs *questions) outcome(reply link.Reply, err error) (link.Reply, error) {
	missing, refused := qs.missing.Load(), qs.refused.Load()
	switch {
	case err != nil:
	case missing != nil && errorType(reply, nil) != "":
		return link.Reply{Err: *missing, Modern: reply.Modern}, nil
	case refused != nil && codeOf(reply.Err) == jsonrpc.CodeMethodNotFound:
		return link.Reply{}, refused
	case qs.answered.Load() && !reply.Modern && jsonrpc.Get(reply.Result, "resultType") == nil &&
		jsonrpc.Get(reply.Result, "inputRequests") != nil:
		reply.Result = jsonrpc.Set(reply.Result, "resultType", []byte(`"`+inputRequired+`"`))
		reply.Names |= jsonrpc.NameResultType
		reply.Modern = true
	}
	return reply, err
}

// codeOf returns the code of a raw error; 0 for none.
func codeOf(rpcErr []byte) int {
	code, _ := strconv.Atoi(string(jsonrpc.Get(rpcErr, "code")))
	return code
}
