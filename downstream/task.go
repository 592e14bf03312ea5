package downstream

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/server"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

// IsTask reports whether a reply names a task instead of being the result (MCP 2026-07-28, tasks extension).
func IsTask(r link.Reply) bool { return isTask(resultType(r)) }

func isTask(kind []byte) bool { return jsonrpc.Text(kind) == protocol.ResultTask }

// takesTasks reports whether the request may be answered with a task.
func (r *Request) takesTasks() bool {
	return r.Modern && r.Method == "tools/call" &&
		jsonrpc.Get(r.Params, "_meta", mcp.MetaKeyClientCapabilities, "extensions", protocol.ExtensionTasks) != nil
}

// taskFailed reports whether the task in a reply has failed.
func taskFailed(task []byte) bool {
	return jsonrpc.Get(task, "error") != nil || string(jsonrpc.Get(task, "result", "isError")) == "true"
}

// ListenTasks lets a server of 2026-07-28 announce its tasks with these ids to the caller that has them. It returns
// when ctx ends, or when the announcements end, as with the server. accepted is called with the raw list of ids that
// the server accepts, and then heard with each raw task. Both must not block.
func (ss *Sessions) ListenTasks(
	ctx context.Context, name, caller string, ids []string, accepted, heard func(raw []byte),
) error {
	var session *link.Session
	var config server.Config
	err := ss.servers.use(name, func(s *server.Server) (err error) {
		session, err = s.Own.ConnectUnlessDown(ctx)
		config = s.Config
		return err
	})
	if err != nil {
		return err
	}
	list, _ := json.Marshal(ids) // strings always marshal
	extension := jsonrpc.Set(nil, "extensions", jsonrpc.Set(nil, protocol.ExtensionTasks, []byte("{}")))
	meta := jsonrpc.Set(nil, mcp.MetaKeyClientCapabilities, extension)
	meta = jsonrpc.Set(meta, mcp.MetaKeyProtocolVersion, []byte(jsonrpc.StringID(string(protocol.V20260728))))
	params := jsonrpc.Set(nil, "notifications", jsonrpc.Set(nil, protocol.MemberTasks, list))
	return session.ListenTasks(ctx, caller, jsonrpc.Set(params, "_meta", meta), accepted, func(task []byte) {
		reply := link.Reply{Result: task, Names: jsonrpc.AnyName}
		for _, method := range askedByTask(reply) {
			if !config.MayAsk(method) {
				return
			}
		}
		if taskFailed(task) {
			reply = ss.calls.masked(reply)
		}
		heard(reply.Result)
	})
}

// askedByTask returns the methods of the requests to the client in a task, also in its error, see [server.Asked].
func askedByTask(task link.Reply) []string {
	return append(server.Asked(task), server.Asked(link.Reply{Err: jsonrpc.Get(task.Result, "error")})...)
}
