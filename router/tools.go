package router

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/router/edge"
)

// shown is the presentation of a router tool.
type shown struct{ title, description string }

var tools = map[string]shown{
	ToolProcessQuery: {"Ask all servers", "Answer a question or do a task in plain language: plans which tools of the connected servers to call, calls them and composes one answer."},
	ToolListTools:    {"List tools", "List the tools of all connected servers with their input schemas."},
	ToolHealthCheck:  {"Check health", "Show the health of the connected servers and of the models."},
	ToolSearchTools:  {"Search tools", "Find tools of the connected servers by what they should do. The tools found can then be called by their names."},
	ToolRun:          {"Run a tool", "Call one tool of a connected server and return its result unchanged."},
}

// offers reports whether name is a router tool that is offered.
func (p *Profile) offers(name string) bool { return slices.Contains(p.opts.Tools.Tools, name) }

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

func (p *Profile) listAvailableTools(ctx context.Context, x *edge.Exchange, args arguments) (*mcp.CallToolResult,
	error) {
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
	tools, err := p.router.Tools(ctx, x.Visible, name)
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

func (p *Profile) healthCheck(_ context.Context, x *edge.Exchange, args arguments) (*mcp.CallToolResult, error) {
	name, err := args.text("server")
	if err != nil {
		return nil, err
	}
	health, err := p.router.Health(x.Visible, name)
	if err != nil {
		return nil, err
	}
	states := make(map[string]string, len(health.Servers))
	for name, st := range health.Servers {
		states[name] = st.Status
	}
	return result(encode(states, ""), health), nil
}
