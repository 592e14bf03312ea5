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

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// The path of a call of process_query, list_available_tools or health_check through mcp-go:
//
//	Profile.Serve      reads the tool's name
//	Profile.protocol   hands the whole message to MCPServer.HandleMessage, with the exchange in the context
//	MCPServer          finds the handler that newMCP registered under that name
//	Profile.handle     takes the exchange out of the context again, reads the arguments from the raw message and calls
//	                   processQuery (answer.go), listAvailableTools or healthCheck (tools.go)
//	Profile.protocol   writes the result that comes back to the exchange
//
// mcp-go thus handles schemas and results only; numbers and progress never pass through its types.

//go:embed schemas/*.json
var schemas embed.FS

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

// toolFunc serves one router tool. It returns the result as text and as structured content.
type toolFunc func(ctx context.Context, x *edge.Exchange, args arguments) (*mcp.CallToolResult, error)

// newMCP registers the router's own tools. run and search_available_tools have no handler here: Serve answers them
// without mcp-go.
func (p *Profile) newMCP() (*server.MCPServer, error) {
	s := server.NewMCPServer(Name, p.router.opts.Version, server.WithToolCapabilities(p.offers(ToolSearchTools)),
		server.WithInstructions(instructions(p.opts.Tools.Tools)))
	handlers := map[string]toolFunc{
		ToolProcessQuery: p.processQuery,
		ToolListTools:    p.listAvailableTools,
		ToolHealthCheck:  p.healthCheck,
	}
	for _, name := range p.opts.Tools.Tools {
		if _, known := tools[name]; !known {
			return nil, fmt.Errorf("router.tools: unknown tool %s", name)
		}
		tool, err := define(name)
		if err != nil {
			return nil, err
		}
		var handler server.ToolHandlerFunc
		if f := handlers[name]; f != nil {
			handler = p.handle(name, f)
		}
		s.AddTool(tool, handler)
	}
	return s, nil
}

// define returns the definition of a router tool.
func define(name string) (mcp.Tool, error) {
	in, err := schemas.ReadFile("schemas/" + name + ".in.json")
	if err != nil {
		return mcp.Tool{}, fmt.Errorf("reading the schema of %s: %w", name, err)
	}
	tool := mcp.NewToolWithRawSchema(name, tools[name].description, in)
	tool.Title = tools[name].title
	readOnly := name != ToolProcessQuery && name != ToolRun
	tool.Annotations = mcp.ToolAnnotation{Title: tool.Title, ReadOnlyHint: &readOnly}
	if name == ToolRun {
		return tool, nil // its result comes from the server
	}
	if tool.RawOutputSchema, err = schemas.ReadFile("schemas/" + name + ".out.json"); err != nil {
		return mcp.Tool{}, fmt.Errorf("reading the schema of %s: %w", name, err)
	}
	return tool, nil
}

type exchangeKey struct{}

// handle adapts a tool to mcp-go. It reads the arguments from the raw message, which keeps numbers exact.
func (p *Profile) handle(name string, f toolFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		x := ctx.Value(exchangeKey{}).(*edge.Exchange)
		args, err := p.parameters.arguments(name, x.Message.Params)
		var result *mcp.CallToolResult
		if err == nil {
			result, err = f(ctx, x, args)
		}
		if err != nil {
			return failed(err)
		}
		return result, nil
	}
}

// protocol lets mcp-go answer the handshake, ping, lists and the tools registered with it.
func (p *Profile) protocol(ctx context.Context, x *edge.Exchange) {
	x.Sent() // later messages need not wait for it
	message := x.Message.Raw
	if x.Message.Method == "initialize" { // mcp-go rejects params with unknown types; the edge has already validated them
		message = jsonrpc.Set(message, "params", []byte(`{"protocolVersion":`+jsonrpc.StringID(string(x.Version))+`,"capabilities":{},"clientInfo":{"name":"","version":""}}`))
	}
	reply := p.mcp.HandleMessage(context.WithValue(ctx, exchangeKey{}, x), json.RawMessage(message))
	switch m := reply.(type) {
	case nil:
	case mcp.JSONRPCError:
		x.Fail(&jsonrpc.Error{Code: m.Error.Code, Message: m.Error.Message})
	case mcp.JSONRPCResponse:
		raw := encodeResult(m.Result)
		switch x.Message.Method {
		case "initialize":
			raw = jsonrpc.Set(raw, "protocolVersion", []byte(jsonrpc.StringID(string(x.Version)))) // the negotiated version
		case "server/discover":
			raw = jsonrpc.Set(raw, "capabilities", edge.WithoutSubscriptions(jsonrpc.Get(raw, "capabilities")))
		case "tools/list":
			raw = p.withExposed(ctx, x, raw)
		}
		x.Reply(raw)
	default:
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: fmt.Sprintf("Internal error: unexpected answer %T", m)})
	}
}
