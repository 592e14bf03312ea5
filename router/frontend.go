package router

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/lru"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// FrontendOptions of a Frontend.
type FrontendOptions struct {
	Router *Router
	Tools  ToolsConfig
	Rate   *limit.Rate // nil = no limit

	// SeesAll reports whether a caller may see what other callers do. nil = none may.
	SeesAll func(caller auth.Caller) bool
}

// Frontend is an MCP server with the router's own tools. All other tools are reached through run or by their full
// names. It implements edge.Handler.
type Frontend struct {
	router *Router
	opts   FrontendOptions
	mcp    *server.MCPServer

	exposed     *lru.Cache[string, []string] // session to the tools found by its last search
	sessionless *lru.Cache[string, []string] // the same for callers without sessions
	searchTool  []byte                       // the raw definition of search_available_tools
	parameters  parameters
}

// NewFrontend returns a Frontend. The error names the invalid option.
func NewFrontend(opts FrontendOptions) (*Frontend, error) {
	f := &Frontend{
		router: opts.Router, opts: opts, parameters: parameters{},
		exposed:     lru.New[string, []string](maxExposed, maxExposedBytes),
		sessionless: lru.New[string, []string](maxSessionless, maxExposedBytes),
	}
	f.mcp = server.NewMCPServer(Name, opts.Router.opts.Version, server.WithToolCapabilities(f.offers(ToolSearchTools)),
		server.WithInstructions(instructions(opts.Tools.Tools)))
	for _, name := range opts.Tools.Tools {
		if _, known := presentations[name]; !known {
			return nil, fmt.Errorf("router.tools: unknown tool %s", name)
		}
	}
	for name := range presentations {
		tool := define(name)
		f.parameters.add(name, tool.RawInputSchema)
		if name == ToolSearchTools {
			f.searchTool = []byte(encode(tool, ""))
		}
		if f.offers(name) {
			f.mcp.AddTool(tool, nil) // mcp-go lists the tools, and Serve calls them
		}
	}
	return f, nil
}

// Serve implements edge.Handler.
func (f *Frontend) Serve(ctx context.Context, x *edge.Exchange) {
	switch {
	case x.Message.IsNotification(): // the router itself needs none; servers behind run are not notified
	case x.Message.Method == "tools/call":
		f.call(ctx, x)
	case protocol.OfTasks(x.Message.Method) && makesTasks(f, x):
		edge.ServeTask(x)
	case x.Message.Method == protocol.MethodListen && makesTasks(f, x) &&
		jsonrpc.Get(x.Message.Params, "notifications", protocol.MemberTasks) != nil:
		edge.ListenTasks(ctx, x)
	default:
		f.protocol(ctx, x)
	}
}

// call serves a call of a tool: one of the router's own, or a server's by its full name or alias.
func (f *Frontend) call(ctx context.Context, x *edge.Exchange) {
	name := jsonrpc.Text(jsonrpc.Get(x.Message.Params, "name"))
	switch {
	case x.Version.AtLeast(protocol.V20260728) && x.Message.Names.Has(jsonrpc.NameRequestState) &&
		jsonrpc.Get(x.Message.Params, "requestState") != nil: // the edge continues what waits for it
		x.Fail(edge.ErrNoRoundTrip)
		return
	case !f.offers(name):
		f.hidden(ctx, x, name)
		return
	case name == ToolRun:
		f.run(ctx, x)
		return
	case f.Limited(x, name):
		return
	case name == ToolSearchTools:
		f.ServeSearch(ctx, x)
		return
	}
	x.ReleaseWaiting() // later messages need not wait for the call
	args, err := f.parameters.read(name, x.Message.Params)
	var result []byte
	if err == nil {
		switch name {
		case ToolProcessQuery:
			result, err = f.processQuery(ctx, x, args)
		case ToolListTools:
			result, err = f.listAvailableTools(ctx, x, args)
		case ToolHealthCheck:
			result, err = f.healthCheck(x, args)
		}
	}
	if err != nil {
		replyToolError(x, err)
		return
	}
	x.Reply(result)
}

// protocol lets mcp-go answer the handshake, ping and lists.
func (f *Frontend) protocol(ctx context.Context, x *edge.Exchange) {
	x.ReleaseWaiting()
	message := x.Message.Raw
	switch x.Message.Method {
	case "subscriptions/listen": // mcp-go knows it, but fails
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: subscriptions/listen"})
		return
	case "tools/list":
		if err := edge.OnePage(x.Message.Params); err != nil {
			x.Fail(err)
			return
		}
	case "initialize": // mcp-go rejects params with unknown types; the edge has already validated them
		message = jsonrpc.Set(message, "params", []byte(`{"protocolVersion":`+jsonrpc.StringID(string(x.Version))+
			`,"capabilities":{},"clientInfo":{"name":"","version":""}}`))
	}
	switch m := f.mcp.HandleMessage(ctx, json.RawMessage(message)).(type) {
	case mcp.JSONRPCError:
		x.Fail(&jsonrpc.Error{Code: m.Error.Code, Message: m.Error.Message})
	case mcp.JSONRPCResponse:
		raw := []byte(encode(m.Result, ""))
		switch x.Message.Method {
		case "initialize":
			raw = jsonrpc.Set(raw, "protocolVersion", []byte(jsonrpc.StringID(string(x.Version)))) // the negotiated version
		case "server/discover":
			capabilities := edge.WithoutSubscriptions(jsonrpc.Get(raw, "capabilities"))
			if makesTasks(f, x) {
				tasks := jsonrpc.Set(nil, protocol.ExtensionTasks, []byte("{}"))
				capabilities = jsonrpc.Set(capabilities, "extensions", tasks)
			}
			raw = jsonrpc.Set(raw, "capabilities", capabilities)
		case "tools/list":
			raw = f.withExposed(ctx, x, raw)
		}
		x.Reply(raw)
	}
}

// makesTasks reports whether calls of process_query can become tasks for a client of x's protocol version.
func makesTasks(f *Frontend, x *edge.Exchange) bool {
	return x.Version.AtLeast(protocol.V20260728) && f.offers(ToolProcessQuery)
}

// Limited counts a call against the caller's rate limit if one of the tool's names is rate limited. It reports
// whether the limit is reached; the client then has its response.
func (f *Frontend) Limited(x *edge.Exchange, names ...string) bool {
	if f.opts.Rate == nil || !slices.ContainsFunc(names, f.opts.Rate.Applies) {
		return false
	}
	ok, wait := f.opts.Rate.Allow(x.Caller.ID)
	if !ok {
		replyError(x, limit.Message(wait))
	}
	return !ok
}

// Ended implements edge.Handler.
func (f *Frontend) Ended(session string) { f.exposed.Remove(session) }

// clientOf identifies a client: by its session or, without one, by its caller and address.
func clientOf(x *edge.Exchange) string {
	if x.Session != "" {
		return x.Session
	}
	return x.Caller.ScopedID()
}

// asker relays requests of servers to the client, in the servers' names.
func asker(x *edge.Exchange) downstream.Asker {
	return func(ctx context.Context, q downstream.ServerRequest) (result, rpcErr []byte) {
		if refusal, refused := edge.Refused(x, q.Server, q.Method, q.Params, q.Input); refused {
			return nil, refusal
		}
		own, refused := q.Attributed()
		if refused != nil {
			return nil, refused.Encode()
		}
		return edge.Answered(x.Request(ctx, own.Method, own.Params))
	}
}

// presentation is the title and description of a router tool.
type presentation struct{ title, description string }

var presentations = map[string]presentation{
	ToolProcessQuery: {"Ask all servers", "Answer a question or do a task in plain language: plans which tools of the connected servers to call, calls them and composes one answer."},
	ToolListTools:    {"List tools", "List the tools of all connected servers with their input schemas."},
	ToolHealthCheck:  {"Check health", "Show the health of the connected servers and of the models."},
	ToolSearchTools:  {"Search tools", "Find tools of the connected servers by what they should do. The tools found can then be called by their names."},
	ToolRun:          {"Run a tool", "Call one tool of a connected server and return its result unchanged."},
}

// offers reports whether name is a router tool that is offered.
func (f *Frontend) offers(name string) bool { return slices.Contains(f.opts.Tools.Tools, name) }

//go:embed schemas/*.json
var schemas embed.FS

// define returns the definition of a router tool.
func define(name string) mcp.Tool {
	in, _ := schemas.ReadFile("schemas/" + name + ".in.json")
	tool := mcp.NewToolWithRawSchema(name, presentations[name].description, in)
	tool.Title = presentations[name].title
	readOnly := name != ToolProcessQuery && name != ToolRun
	tool.Annotations = mcp.ToolAnnotation{Title: tool.Title, ReadOnlyHint: &readOnly}
	tool.RawOutputSchema, _ = schemas.ReadFile("schemas/" + name + ".out.json") // run has none: its result comes from the server
	return tool
}

// instructions tell a client's model how to use the router's own tools, as far as they are offered.
func instructions(offered []string) string {
	has := func(name string) bool { return slices.Contains(offered, name) }
	text := "This router gives access to the tools of all connected MCP servers. "
	if has(ToolProcessQuery) {
		text += "For a question or a task in plain language call process_query: it plans, calls the tools that are needed " +
			"and returns one answer with the result of each step. "
	}
	text += "To call tools yourself, "
	finders := slices.DeleteFunc([]string{ToolSearchTools, ToolListTools}, func(name string) bool { return !has(name) })
	if len(finders) > 0 {
		text += "find them with " + strings.Join(finders, " or ") + " and "
	}
	text += "call each "
	if has(ToolRun) {
		text += "with run, or "
	}
	text += "by its server__tool name"
	if has(ToolHealthCheck) {
		text += "; health_check shows which servers are up"
	}
	return text + "."
}

// ToolInfo is an entry of list_available_tools.
type ToolInfo struct {
	Name        string          `json:"name"`
	Server      string          `json:"server"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// toolName is an entry of list_available_tools with detail: names.
type toolName struct {
	Name   string `json:"name"`
	Server string `json:"server"`
}

func (f *Frontend) listAvailableTools(ctx context.Context, x *edge.Exchange, args arguments) ([]byte, error) {
	name, err := args.text("server")
	if err != nil {
		return nil, err
	}
	detail, err := args.text("detail")
	if err != nil {
		return nil, err
	}
	if detail != "" && detail != "names" && detail != "full" {
		return nil, refuse("Invalid argument: detail must be names or full")
	}
	tools, err := routerOf(f, x).Tools(ctx, x.Visible, name)
	if err != nil {
		return nil, err
	}
	if detail == "names" {
		names := make([]toolName, len(tools))
		for i, t := range tools {
			names[i] = toolName{t.Name, t.Server}
		}
		return result(encode(names, "  "), map[string]any{"tools": names}), nil
	}
	return result(encode(tools, "  "), map[string]any{"tools": tools}), nil
}

func (f *Frontend) healthCheck(x *edge.Exchange, args arguments) ([]byte, error) {
	name, err := args.text("server")
	if err != nil {
		return nil, err
	}
	health, err := f.router.Health(x.Visible, name)
	if err != nil {
		return nil, err
	}
	if st, ok := health.Servers[name]; ok && f.opts.SeesAll != nil && f.opts.SeesAll(x.Caller) {
		st.Stderr = downstream.Stderr(f.router.servers, name)
		health.Servers[name] = st
	}
	states := make(map[string]string, len(health.Servers))
	for name, st := range health.Servers {
		states[name] = st.Status
	}
	return result(encode(states, ""), health), nil
}
