package proxy

import (
	"context"
	"strconv"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// forward relays a request to a server and the response back. tool is the tool's own name for tools/call, else empty.
func (s *Surface) forward(ctx context.Context, x *edge.Exchange, server, tool string, params []byte) {
	if tool == "" && x.Visible != nil && !x.Visible(server, "") {
		s.p.opts.Fail(x, &downstream.UnknownError{What: "server", Name: server})
		return
	}
	s.p.inOrder(ctx, x.Session, server)
	reply, err := s.p.servers.Call(ctx, &downstream.Request{
		Server: server, Tool: tool, Method: x.Message.Method, Params: params,
		Visible: x.Visible, Client: s.p.clientOf(x), Caller: x.Caller.ID, Proxied: x.Session != "",
		Modern: x.Version.AtLeast(protocol.V20260728),
		Hooks: downstream.Hooks{
			Gone: x.Gone, Sent: x.Sent, Streams: x.PreferStream, Reserve: x.Reserve, Hold: x.Hold,
			Header:   x.Header,
			Progress: x.RelayProgress(),
			Notify: func(m jsonrpc.Message) bool { // true = handled, even if the client does not want it
				return !x.Wants(m) || x.Notify(s.rename(server, m))
			},
			Ask: func(ctx context.Context, q downstream.ServerRequest) (result, rpcErr []byte) {
				if q.Input && !x.Client.Supports(q.Method) {
					return nil, nil
				}
				return s.p.relay(ctx, x.Session, server, q, func(params []byte) (jsonrpc.Message, error) {
					return x.Request(ctx, q.Method, params)
				})
			},
		},
	})
	switch {
	case err != nil:
		s.p.opts.Fail(x, err)
	case reply.Err != nil:
		x.FailRaw(reply.Err)
	case reply.Modern && downstream.NeedsInput(reply):
		x.Relay(reply.Result, reply.Names) // the client answers and retries
	default:
		if tool != "" { // only results of tools have no other reader
			x.Reuse(reply.Free)
		}
		result := s.names().rewriteURIs(server, x.Message.Method, reply.Result, reply.Names)
		if x.Version.AtLeast(protocol.V20260728) && (downstream.Member(x.Message.Method) != "" ||
			x.Message.Method == "resources/read") {
			result = cacheable(result)
		}
		x.Relay(result, reply.Names)
	}
}

// clientOf identifies the source of a request: the client session, or the request itself without a session. Clients
// without sessions may share an address and must be kept apart.
func (p *Proxy) clientOf(x *edge.Exchange) string {
	if x.Session != "" {
		return x.Session
	}
	return "request " + strconv.FormatInt(p.loose.Add(1), 10)
}

// unknown answers with an unknown-name error.
func unknown(x *edge.Exchange, what, name string) {
	x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Unknown " + what + ": " + name})
}

// text reads a string from params. If ok is false, the client has received an error.
func text(x *edge.Exchange, params []byte, name string) (value string, place jsonrpc.Span, ok bool) {
	place, ambiguous := jsonrpc.Find(params, name)
	raw := place.Of(params)
	if ambiguous || len(raw) == 0 || raw[0] != '"' {
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: "Invalid params: " + name + " must be a string and appear once"})
		return "", place, false
	}
	return jsonrpc.Text(raw), place, true
}

// with returns params with the value at place replaced.
func with(params []byte, place jsonrpc.Span, value string) []byte {
	return jsonrpc.Splice(params, jsonrpc.Edit{Span: place, With: []byte(jsonrpc.StringID(value))})
}
