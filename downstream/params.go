package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// mirrored returns what says which arguments of a tool are repeated in HTTP headers (x-mcp-header, MCP 2026-07-28);
// nil if there are none, or if the schema asks for what is no header.
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

// paramHeaders returns the headers that go with a call of the tool; t may be nil.
func (t *Tool) paramHeaders(params []byte) http.Header {
	if t == nil || t.mirrored == nil {
		return nil
	}
	h := http.Header{}
	for name, value := range mcp.GenerateParamHeaders(t.mirrored, params) {
		h.Set(name, value)
	}
	return h
}

// callMirrored calls a tool of a server that checks the headers of params. Their names are in the tool's definition,
// which is listed if that has not been done; where the server refuses the headers, and so has not run the tool, it is
// listed again.
func (sl *slot) callMirrored(ctx context.Context, session *link.Session, call *link.Call, tool string) (link.Reply, error) {
	if sl.tool(tool) == nil {
		if _, err := sl.list(ctx, "tools/list", true); err != nil && ctx.Err() != nil {
			return link.Reply{}, context.Cause(ctx)
		}
	}
	call.Header = sl.tool(tool).paramHeaders(call.Params)
	reply, err := session.Call(ctx, call)
	if err != nil || string(jsonrpc.Get(reply.Err, "code")) != "-32020" {
		return reply, err
	}
	if _, err := sl.list(ctx, "tools/list", false); err != nil {
		return reply, nil
	}
	again := *call
	again.Header = sl.tool(tool).paramHeaders(call.Params)
	if maps.EqualFunc(call.Header, again.Header, slices.Equal) {
		return reply, nil
	}
	return session.Call(ctx, &again)
}

// CheckParamHeaders reports how the headers of a client's call differ from the arguments that they repeat, by the
// tool's definition as it was last listed; nil if they do not.
func (m *Manager) CheckParamHeaders(server, client, tool string, h http.Header, params []byte) *jsonrpc.Error {
	s := m.server(server)
	if s == nil {
		return nil
	}
	t := s.slot(client).tool(tool)
	if t == nil || t.mirrored == nil {
		return nil
	}
	err := mcp.ValidateParamHeadersLookup(func(name string) (string, bool) {
		sent := h.Values(name)
		return strings.Join(sent, ", "), len(sent) > 0
	}, t.mirrored, params)
	var mismatch mcp.HeaderMismatchError
	if !errors.As(err, &mismatch) {
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeHeaderMismatch, Message: "Header mismatch: " + mismatch.Header + ": " + mismatch.Reason}
}
