package router

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/agenticnexus/agenticnexus/router/edge"
)

//go:embed schemas/*.json
var schemas embed.FS

// shown is how a router tool presents itself.
type shown struct{ title, description string }

var tools = map[string]shown{
	ToolProcessQuery: {"Ask all servers", "Answer a question or do a task in plain language: plans which tools of the connected servers to call, calls them and composes one answer."},
	ToolListTools:    {"List tools", "List the tools of all connected servers with their input schemas."},
	ToolHealthCheck:  {"Check health", "Show the health of the connected servers and of the models."},
	ToolSearchTools:  {"Search tools", "Find tools of the connected servers by what they should do. The tools found can then be called by their names."},
	ToolRun:          {"Run a tool", "Call one tool of a connected server and return its result unchanged."},
}

// instructions tell a client's model how to use the router's own tools.
const instructions = "This router gives access to the tools of all connected MCP servers. " +
	"For a question or a task in plain language call process_query: it plans, calls the tools that are needed and returns one answer with the result of each step. " +
	"To call tools yourself, find them with search_available_tools or list_available_tools and call each with run, or by its server__tool name; health_check shows which servers are up."

// toolFunc serves one router tool: it returns what the result says as text and as structured content.
type toolFunc func(ctx context.Context, x *edge.Exchange, args arguments) (*mcp.CallToolResult, error)

// newMCP registers the router's own tools. run and search_available_tools have no handler here: they
// answer on the wire themselves (see Serve).
func (r *Router) newMCP() (*server.MCPServer, error) {
	s := server.NewMCPServer(Name, r.opts.Version, server.WithToolCapabilities(r.offers(ToolSearchTools)), server.WithInstructions(instructions))
	handlers := map[string]toolFunc{
		ToolProcessQuery: r.processQuery,
		ToolListTools:    r.listAvailableTools,
		ToolHealthCheck:  r.healthCheck,
	}
	for _, name := range r.opts.Tools.Tools {
		if _, known := tools[name]; !known {
			return nil, fmt.Errorf("router.tools: unknown tool %s", name)
		}
		tool, err := define(name)
		if err != nil {
			return nil, err
		}
		var handler server.ToolHandlerFunc
		if f := handlers[name]; f != nil {
			handler = r.handle(f)
		}
		s.AddTool(tool, handler)
	}
	return s, nil
}

// define makes the definition of a router tool.
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
		return tool, nil // its result is the server's own
	}
	if tool.RawOutputSchema, err = schemas.ReadFile("schemas/" + name + ".out.json"); err != nil {
		return mcp.Tool{}, fmt.Errorf("reading the schema of %s: %w", name, err)
	}
	return tool, nil
}

// offers reports whether name is a router tool that is offered.
func (r *Router) offers(name string) bool { return slices.Contains(r.opts.Tools.Tools, name) }

type exchangeKey struct{}

// handle adapts a tool to mcp-go. The arguments are read from the raw message, so that numbers stay exact.
func (r *Router) handle(f toolFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		x := ctx.Value(exchangeKey{}).(*edge.Exchange)
		args, err := argumentsOf(x.Message.Params)
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

func (r *Router) listAvailableTools(ctx context.Context, x *edge.Exchange, args arguments) (*mcp.CallToolResult, error) {
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
	tools, err := r.Tools(ctx, x.Visible, name)
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

func (r *Router) healthCheck(_ context.Context, x *edge.Exchange, args arguments) (*mcp.CallToolResult, error) {
	name, err := args.text("server")
	if err != nil {
		return nil, err
	}
	health, err := r.Health(x.Visible, name)
	if err != nil {
		return nil, err
	}
	states := make(map[string]string, len(health.Servers))
	for name, st := range health.Servers {
		states[name] = st.Status
	}
	return result(encode(states, ""), health), nil
}
