package downstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/internal/plan"
)

const maxToolDef = 256 << 10 // bytes of one definition; larger ones are quarantined

// Tool is a tool of a downstream server.
type Tool struct {
	plan.Tool
	Raw json.RawMessage // the definition, unchanged

	mirrored *mcp.Tool // arguments repeated in headers; nil if none
}

// Full is the tool's name on the proxy surface.
func (t *Tool) Full() string { return FullName(t.Server, t.Tool.Tool) }

// Visible reports whether a caller may see a tool, or any tool of the server if tool is empty. nil allows everything.
type Visible func(server, tool string) bool

// readTool reads the parts of a definition that the router uses. The error tells why the tool is quarantined.
func readTool(server string, raw json.RawMessage) (Tool, error) {
	if len(raw) > maxToolDef {
		return Tool{}, fmt.Errorf("its definition has %d bytes, %d are allowed", len(raw), maxToolDef)
	}
	var def struct {
		Name         string           `json:"name"`
		Title        string           `json:"title"`
		Description  string           `json:"description"`
		InputSchema  json.RawMessage  `json:"inputSchema"`
		OutputSchema json.RawMessage  `json:"outputSchema"`
		Annotations  plan.Annotations `json:"annotations"`
	}
	if err := json.Unmarshal(raw, &def); err != nil {
		return Tool{}, fmt.Errorf("its definition cannot be read: %w", err)
	}
	switch {
	case def.Name == "":
		return Tool{}, errors.New("it has no name")
	case len(def.InputSchema) == 0 || def.InputSchema[0] != '{':
		return Tool{}, errors.New("its inputSchema is not an object")
	case len(def.OutputSchema) > 0 && def.OutputSchema[0] != '{':
		def.OutputSchema = nil
	}
	return Tool{Raw: raw, mirrored: mirrored(def.InputSchema), Tool: plan.Tool{
		Name: def.Name, Server: server, Tool: def.Name, Title: def.Title, Description: def.Description,
		InputSchema: def.InputSchema, OutputSchema: def.OutputSchema, Annotations: def.Annotations,
	}}, nil
}

// allows reports whether the filter admits a tool. The config loader has checked the patterns.
func (f ToolFilter) allows(tool string) bool {
	return (len(f.Allow) == 0 || matches(f.Allow, tool)) && !matches(f.Deny, tool)
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, name)
		return ok
	})
}

// mirrored returns the arguments that are repeated in HTTP headers (x-mcp-header, MCP 2026-07-28). It is nil if there
// are none, or if the schema names an invalid header.
func mirrored(schema json.RawMessage) *mcp.Tool {
	if !bytes.Contains(schema, []byte(`"x-mcp-header"`)) {
		return nil
	}
	t := &mcp.Tool{RawInputSchema: schema}
	if mcp.ValidateParamHeaderAnnotations(t) != nil || len(mcp.ExtractParamHeaderBindings(t)) == 0 {
		return nil
	}
	return t
}

// paramHeaders returns others with the headers for a call of the tool added; t may be nil.
func (t *Tool) paramHeaders(others http.Header, params []byte) http.Header {
	if t == nil || t.mirrored == nil {
		return others
	}
	h := http.Header{}
	maps.Copy(h, others)
	for name, value := range mcp.GenerateParamHeaders(t.mirrored, params) {
		h.Set(name, value)
	}
	return h
}
