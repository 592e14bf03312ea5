package downstream

import (
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/server"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

// IsTask reports whether a reply names a task instead of being the result (MCP 2026-07-28, tasks extension).
func IsTask(r link.Reply) bool {
	return r.Names.Has(jsonrpc.NameResultType) &&
		jsonrpc.Text(jsonrpc.Get(r.Result, "resultType")) == protocol.ResultTask
}

// takesTasks reports whether the request may be answered with a task.
func (r *Request) takesTasks() bool {
	return r.Modern && r.Method == "tools/call" &&
		jsonrpc.Get(r.Params, "_meta", mcp.MetaKeyClientCapabilities, "extensions", protocol.ExtensionTasks) != nil
}

// taskFailed reports whether the task in a reply has failed.
func taskFailed(task []byte) bool {
	return jsonrpc.Get(task, "error") != nil || string(jsonrpc.Get(task, "result", "isError")) == "true"
}

// asks returns the methods of the requests to the client in a reply, see [server.Asked].
func (r *Request) asks(reply link.Reply) []string {
	methods := server.Asked(reply)
	if r.Task != "" {
		methods = append(methods, server.Asked(link.Reply{Err: jsonrpc.Get(reply.Result, "error")})...)
	}
	return methods
}
