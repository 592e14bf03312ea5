package router

import (
	"context"
	"slices"

	"github.com/mark3labs/mcp-go/server"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/lru"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// ProfileOptions of a Profile.
type ProfileOptions struct {
	Router *Router
	Tools  ToolsConfig
	Rate   *limit.Rate // nil = no limit
}

// Profile is an MCP server with the router's own tools. All other tools are reached through run or by their full
// names. It implements edge.Handler.
type Profile struct {
	router *Router
	opts   ProfileOptions
	mcp    *server.MCPServer

	exposed    *lru.Cache[string, []string] // session to the tools found by its last search
	loose      *lru.Cache[string, []string] // the same for callers without sessions
	searchTool []byte                       // the raw definition of search_available_tools
	parameters parameters
}

// NewProfile returns a Profile. The error names the invalid option.
func NewProfile(opts ProfileOptions) (*Profile, error) {
	p := &Profile{
		router: opts.Router, opts: opts,
		exposed: lru.New[string, []string](maxExposed, maxExposedBytes),
		loose:   lru.New[string, []string](maxLoose, maxExposedBytes), parameters: parameters{},
	}
	for name := range tools {
		tool, err := define(name)
		if err != nil {
			return nil, err
		}
		jsonrpc.Members(jsonrpc.Get(tool.RawInputSchema, "properties"), func(parameter []byte, _ jsonrpc.Span) bool {
			p.parameters[name] = append(p.parameters[name], string(parameter))
			return true
		})
	}
	var err error
	if p.mcp, err = p.newMCP(); err != nil {
		return nil, err
	}
	tool, err := define(ToolSearchTools)
	if err != nil {
		return nil, err
	}
	p.searchTool = encodeResult(tool)
	return p, nil
}

// Serve implements edge.Handler for the router profile.
func (p *Profile) Serve(ctx context.Context, x *edge.Exchange) {
	if x.Message.IsNotification() {
		return // the router itself needs none; servers behind run are not notified
	}
	switch x.Message.Method {
	case "tools/call":
	case "subscriptions/listen": // mcp-go knows it, but fails
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: subscriptions/listen"})
		return
	case "tools/list":
		if err := edge.OnePage(x.Message.Params); err != nil {
			x.Fail(err)
			return
		}
		fallthrough
	default:
		p.protocol(ctx, x)
		return
	}
	name := jsonrpc.Text(jsonrpc.Get(x.Message.Params, "name"))
	switch {
	case name == ToolRun && p.offers(ToolRun):
		p.run(ctx, x)
	case !p.offers(name):
		p.hidden(ctx, x, name)
	case p.Limited(x, name):
	case name == ToolSearchTools:
		p.ServeSearch(ctx, x)
	default:
		p.protocol(ctx, x)
	}
}

// Limited counts a call against the caller's rate limit if one of the tool's names is rate limited. It reports
// whether the limit is reached; the client then has its response.
func (p *Profile) Limited(x *edge.Exchange, names ...string) bool {
	if p.opts.Rate == nil || !slices.ContainsFunc(names, p.opts.Rate.Applies) {
		return false
	}
	ok, wait := p.opts.Rate.Allow(x.Caller.ID)
	if !ok {
		replyError(x, limit.Message(wait))
	}
	return !ok
}

// Ended implements edge.Handler.
func (p *Profile) Ended(session string) { p.exposed.Remove(session) }

// hidden calls a server's tool by its full name or alias, whether or not it is listed.
func (p *Profile) hidden(ctx context.Context, x *edge.Exchange, name string) {
	server, tool, known := p.router.tools.aliased(ctx, name, x.Visible)
	if p.Limited(x, name, downstream.FullName(server, tool)) {
		return
	}
	var err error
	if full := false; !known {
		if server, tool, full = downstream.SplitFull(name); full {
			known, err = p.router.servers.Has(ctx, server, "", tool, x.Visible)
		}
	}
	if known && err == nil {
		err = p.router.tools.displaced(server, tool)
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
		p.forward(ctx, x, server, tool, arguments)
	}
}

// clientOf identifies a client: by its session or, without one, by its caller and address.
func clientOf(x *edge.Exchange) string {
	if x.Session != "" {
		return x.Session
	}
	return x.Caller.ScopedID()
}

// asker relays requests of servers to the client.
func asker(x *edge.Exchange) downstream.Asker {
	return func(ctx context.Context, q downstream.ServerRequest) (result, rpcErr []byte) {
		if q.Input && !x.Client.Supports(q.Method) {
			return nil, nil
		}
		return edge.Answered(x.Request(ctx, q.Method, q.Params))
	}
}
