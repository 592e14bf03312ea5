package router

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

//go:embed schemas/*.json
var schemas embed.FS

var descriptions = map[string]string{
	ToolProcessQuery: "Answer a question or do a task in plain language: plans which tools of the connected servers to call, calls them and composes one answer.",
	ToolListTools:    "List the tools of all connected servers with their input schemas.",
	ToolHealthCheck:  "Tell how the connected servers are.",
	ToolSearchTools:  "Find tools of the connected servers by what they should do. The tools found can then be called by their names.",
	ToolRun:          "Call one tool of a connected server and return its result unchanged.",
}

// toolFunc serves one router tool: it returns what the result says as text and as structured content.
type toolFunc func(ctx context.Context, x *edge.Exchange, args arguments) (*mcp.CallToolResult, error)

// newMCP registers the router's own tools. run and search_available_tools have no handler here: they
// answer on the wire themselves (see Serve).
func (r *Router) newMCP() (*server.MCPServer, error) {
	s := server.NewMCPServer(Name, r.opts.Version, server.WithToolCapabilities(true))
	handlers := map[string]toolFunc{
		ToolProcessQuery: r.processQuery,
		ToolListTools:    r.listAvailableTools,
		ToolHealthCheck:  r.healthCheck,
	}
	for _, name := range r.opts.Tools.Tools {
		if descriptions[name] == "" {
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
	tool := mcp.NewToolWithRawSchema(name, descriptions[name], in)
	readOnly := name != ToolProcessQuery && name != ToolRun
	tool.Annotations = mcp.ToolAnnotation{ReadOnlyHint: &readOnly}
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
		var cancelled *edge.Cancelled
		switch text, refused := refusalText(err); {
		case err == nil:
			return result, nil
		case refused:
			return mcp.NewToolResultError(text), nil
		case errors.As(err, &cancelled):
			return nil, err // nobody waits for the answer
		}
		return mcp.NewToolResultError(err.Error()), nil
	}
}

// ToolInfo is an entry of list_available_tools.
type ToolInfo struct {
	Name        string          `json:"name"`
	Server      string          `json:"server"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

func (r *Router) listAvailableTools(ctx context.Context, x *edge.Exchange, args arguments) (*mcp.CallToolResult, error) {
	name, err := args.text("server")
	if err != nil {
		return nil, err
	}
	tools, err := r.Tools(ctx, x.Caller.Filter(), name)
	if err != nil {
		return nil, err
	}
	return result(encode(tools, "  "), map[string]any{"tools": tools}), nil
}

func (r *Router) healthCheck(_ context.Context, x *edge.Exchange, args arguments) (*mcp.CallToolResult, error) {
	name, err := args.text("server")
	if err != nil {
		return nil, err
	}
	health, err := r.Health(x.Caller.Filter(), name)
	if err != nil {
		return nil, err
	}
	states := make(map[string]string, len(health.Servers))
	for name, st := range health.Servers {
		states[name] = st.Status
	}
	return result(encode(states, ""), health), nil
}

// result makes a tool result of a text and of structured content.
func result(text string, structured any) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Content:           []mcp.Content{mcp.NewTextContent(text)},
		StructuredContent: json.RawMessage(encode(structured, "")),
	}
}

// encode writes JSON for people to read: &, < and > as they are.
func encode(v any, indent string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return jsonrpcText(err)
	}
	return string(bytes.TrimRight(b.Bytes(), "\n"))
}

func jsonrpcText(err error) string { return string(jsonrpc.StringID(err.Error())) }
