package router

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// Serve implements edge.Handler for the router profile.
func (r *Router) Serve(ctx context.Context, x *edge.Exchange) {
	if x.Message.IsNotification() {
		return // none concerns the router itself; servers behind run are not told
	}
	if x.Message.Method != "tools/call" {
		r.protocol(ctx, x)
		return
	}
	name := jsonrpc.Text(jsonrpc.Get(x.Message.Params, "name"))
	switch {
	case name == ToolRun && r.offers(ToolRun):
		r.run(ctx, x)
	case !r.offers(name):
		r.hidden(ctx, x, name)
	case r.Limited(x, name):
	case name == ToolSearchTools:
		r.ServeSearch(ctx, x)
	default:
		r.protocol(ctx, x)
	}
}

// Limited counts a call against the caller's rate limit if any of the tool's names says that it counts. It
// reports whether the limit is reached; then the client has been answered.
func (r *Router) Limited(x *edge.Exchange, names ...string) bool {
	if r.opts.Rate == nil || !slices.ContainsFunc(names, r.opts.Rate.Applies) {
		return false
	}
	ok, wait := r.opts.Rate.Allow(x.Caller.ID)
	if !ok {
		replyError(x, limit.Message(wait))
	}
	return !ok
}

// Ended implements edge.Handler.
func (r *Router) Ended(session string) { r.exposed.forget(session) }

// hidden calls a tool of a server by its full name or its alias, listed or not.
func (r *Router) hidden(ctx context.Context, x *edge.Exchange, name string) {
	server, tool, known := r.aliased(ctx, name, x.Caller.Filter())
	if r.Limited(x, name, downstream.FullName(server, tool)) {
		return
	}
	var err error
	if full := false; !known {
		if server, tool, full = downstream.SplitFull(name); full {
			known, err = r.servers.Has(ctx, server, "", tool, x.Caller.Filter())
		}
	}
	switch {
	case err != nil:
		Fail(x, err)
	case !known:
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Unknown tool: " + name})
	default:
		arguments := jsonrpc.Get(x.Message.Params, "arguments")
		if arguments == nil {
			arguments = []byte("{}")
		}
		r.forward(ctx, x, server, tool, arguments)
	}
}

// protocol lets mcp-go answer: the handshake, ping, lists, and the tools registered with it.
func (r *Router) protocol(ctx context.Context, x *edge.Exchange) {
	x.Sent() // nothing that follows has to wait for it
	message := x.Message.Raw
	if x.Message.Method == "initialize" { // mcp-go refuses params of types it does not know; the edge has read what counts
		message = jsonrpc.Set(message, "params", []byte(`{"protocolVersion":`+jsonrpc.StringID(string(x.Version))+`,"capabilities":{},"clientInfo":{"name":"","version":""}}`))
	}
	reply := r.mcp.HandleMessage(context.WithValue(ctx, exchangeKey{}, x), json.RawMessage(message))
	switch m := reply.(type) {
	case nil:
	case mcp.JSONRPCError:
		x.Fail(&jsonrpc.Error{Code: m.Error.Code, Message: m.Error.Message})
	case mcp.JSONRPCResponse:
		raw := encodeResult(m.Result)
		switch x.Message.Method {
		case "initialize":
			raw = jsonrpc.Set(raw, "protocolVersion", []byte(jsonrpc.StringID(string(x.Version)))) // the one that is in force
		case "server/discover":
			raw = jsonrpc.Set(raw, "capabilities", edge.WithoutSubscriptions(jsonrpc.Get(raw, "capabilities")))
		case "tools/list":
			raw = r.withExposed(ctx, x, raw)
		}
		x.Reply(raw)
	default:
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: fmt.Sprintf("Internal error: unexpected answer %T", m)})
	}
}

// encodeResult writes a result. mcp-go would escape &, < and > in the bytes of tools and plans, which
// have to stay as they are: a plan that is replayed makes the same calls.
func encodeResult(v any) []byte {
	if r, ok := v.(*mcp.CallToolResult); ok {
		v = struct {
			ResultType mcp.ResultType `json:"resultType,omitempty"`
			Content    []mcp.Content  `json:"content"`
			Structured any            `json:"structuredContent,omitempty"`
			IsError    bool           `json:"isError,omitempty"`
		}{r.ResultType, r.Content, r.StructuredContent, r.IsError}
	}
	return []byte(encode(v, ""))
}

func rawJSON(b []byte) json.RawMessage { return b }

func replyError(x *edge.Exchange, text string) { x.Reply(encodeResult(mcp.NewToolResultError(text))) }

// clientOf tells clients apart: by session or, without one, by who they are.
func clientOf(x *edge.Exchange) string {
	if x.Session != "" {
		return x.Session
	}
	return x.Caller.ID
}

// asker passes requests of servers on to the client.
func asker(x *edge.Exchange) downstream.Asker {
	return func(ctx context.Context, q downstream.Question) (result, rpcErr []byte) {
		if q.Input && !x.Client.Supports(q.Method) {
			return nil, nil
		}
		return edge.Answered(x.Request(ctx, q.Method, q.Params))
	}
}
