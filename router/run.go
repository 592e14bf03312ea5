package router

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// run serves the tool run: the call goes to the server, and its result comes back, as raw bytes.
func (r *Router) run(ctx context.Context, x *edge.Exchange) {
	args := jsonrpc.Get(x.Message.Params, "arguments")
	name := jsonrpc.Text(jsonrpc.Get(args, "tool"))
	parameters := jsonrpc.Get(args, "parameters")
	if parameters == nil || string(parameters) == "null" {
		parameters = []byte("{}")
	}
	dry := jsonrpc.Get(args, "dry_run")
	switch {
	case name == "":
		replyError(x, "Invalid argument: tool is required and must be a string")
		return
	case parameters[0] != '{':
		replyError(x, "Invalid argument: parameters must be an object")
		return
	case dry != nil && string(dry) != "true" && string(dry) != "false" && string(dry) != "null":
		replyError(x, "Invalid argument: dry_run must be true or false")
		return
	}
	server, tool, err := r.resolve(ctx, name, x.Caller.Filter())
	switch {
	case err != nil:
		Fail(x, err)
	case r.Limited(x, ToolRun, downstream.FullName(server, tool)):
	case string(dry) == "true":
		r.dryRun(ctx, x, server, tool, parameters)
	default:
		r.forward(ctx, x, server, tool, parameters)
	}
}

// resolve finds the server and the tool behind a name. A name that has the server in it needs the list of
// that server alone, and works while others cannot be listed.
func (r *Router) resolve(ctx context.Context, name string, visible downstream.Visible) (server, tool string, err error) {
	began := time.Now()
	if server, tool, ok := r.aliased(ctx, name, visible); ok {
		return server, tool, nil
	}
	for _, separator := range separators {
		server, tool, ok := strings.Cut(name, separator)
		if !ok || tool == "" {
			continue
		}
		known, err := r.servers.Has(ctx, server, "", tool, visible)
		if known || err != nil {
			return server, tool, err
		}
	}
	catalog, err := r.catalog(ctx)
	if err != nil {
		return "", "", err
	}
	t, unknown := catalog.Lookup(name, visible)
	if _, _, asked := r.qualified(name, visible); !asked && unknown != nil && unknown.Reason == plan.ReasonUnknownTool {
		if catalog, err = r.lookAgain(ctx, began, []string{name}, visible); err != nil {
			return "", "", err
		}
		t, unknown = catalog.Lookup(name, visible)
	}
	if unknown != nil {
		if f := catalog.Quarantined(name, visible); f != nil {
			return "", "", f
		}
		return "", "", r.explain(unknown, name, catalog, visible)
	}
	return t.Server, t.Tool.Tool, nil
}

// forward calls a tool for the client and passes everything on as it is: arguments and _meta, progress,
// the server's own requests, and the result or the error.
func (r *Router) forward(ctx context.Context, x *edge.Exchange, server, tool string, arguments []byte) {
	params := append([]byte(`{"name":`), jsonrpc.StringID(tool)...)
	params = append(append(params, `,"arguments":`...), arguments...)
	if meta := jsonrpc.Get(x.Message.Params, "_meta"); meta != nil {
		params = append(append(params, `,"_meta":`...), meta...)
	}
	token := progressToken(x)
	reply, err := r.servers.Call(ctx, &downstream.Request{
		Server: server, Tool: tool, Method: "tools/call", Params: append(params, '}'),
		Visible: x.Caller.Filter(), Client: clientOf(x), Caller: x.Caller.ID, Ask: asker(x), Gone: x.Gone, Sent: x.Sent, Reserve: x.Reserve,
		Notify: func(m jsonrpc.Message) bool { return !x.Wants(m) || x.Notify(m.Raw) },
		Progress: func(params []byte) {
			if token != "" {
				x.Notify(jsonrpc.Notification("notifications/progress", jsonrpc.Set(params, "progressToken", []byte(token))))
			}
		},
	})
	switch {
	case err != nil:
		Fail(x, err)
	case reply.Err != nil:
		x.FailRaw(reply.Err)
	default:
		x.Reuse(reply.Free)
		x.Reply(reply.Result)
	}
}

// dryRun says what run would call.
func (r *Router) dryRun(ctx context.Context, x *edge.Exchange, server, tool string, arguments []byte) {
	problem, err := r.servers.Validate(ctx, server, tool, arguments)
	if err != nil {
		Fail(x, err)
		return
	}
	said := map[string]any{"tool": tool, "server": server, "arguments": rawJSON(arguments), "valid": problem == nil}
	if problem != nil {
		said["error"] = problem.Message
	}
	x.Reply(encodeResult(result(encode(said, "  "), said)))
}

// Fail answers with the error of a call. It is the place where errors become replies.
func Fail(x *edge.Exchange, err error) {
	var unknown *plan.Error
	var cancelled *edge.Cancelled
	switch {
	case errors.As(err, &cancelled), edge.Ended(err):
		// nobody waits for the answer, or the edge gives it
	case errors.As(err, &unknown):
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: unknown.Message})
	default:
		x.Fail(downstream.Failed(err, x.Modern))
	}
}
