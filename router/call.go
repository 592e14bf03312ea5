package router

import (
	"context"
	"encoding/json"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Call calls one tool by any of its names, on behalf of a user of this process. It returns the raw result. A JSON-RPC
// error of the server is returned as a *jsonrpc.Error.
func (r *Router) Call(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error) {
	server, tool, err := r.tools.resolve(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	reply, err := r.calls.Call(ctx, &downstream.Request{
		Server: server, Tool: tool, Method: "tools/call", Params: catalog.Params(tool, arguments, nil),
	})
	if err != nil {
		return nil, err
	}
	if reply.Err != nil {
		e := &jsonrpc.Error{Message: string(reply.Err)}
		_ = json.Unmarshal(reply.Err, e) // on failure, the message set above remains
		return nil, e
	}
	return reply.Result, nil
}
