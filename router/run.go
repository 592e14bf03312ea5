package router

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// routerOf returns the router as the caller of an exchange has it.
func routerOf(f *Frontend, x *edge.Exchange) *Router { return f.router.As(x.Caller.Login) }

// run serves the tool run. The call and its result pass through as raw bytes.
func (f *Frontend) run(ctx context.Context, x *edge.Exchange) {
	args := jsonrpc.Get(x.Message.Params, "arguments")
	name := jsonrpc.Text(jsonrpc.Get(args, "tool"))
	parameters := jsonrpc.Get(args, "parameters")
	if parameters == nil || string(parameters) == "null" {
		parameters = []byte("{}")
	}
	dry := jsonrpc.Get(args, "dry_run")
	unknown := f.parameters.check(ToolRun, args)
	problem := ""
	switch {
	case name == "":
		problem = "Invalid argument: tool is required and must be a string"
	case unknown != nil:
		problem = unknown.Error()
	case parameters[0] != '{':
		problem = "Invalid argument: parameters must be an object"
	case dry != nil && string(dry) != "true" && string(dry) != "false" && string(dry) != "null":
		problem = "Invalid argument: dry_run must be true or false"
	}
	if problem != "" {
		refused(ctx, f, x, name, parameters, &plan.Error{Reason: reason.InvalidArguments, Message: problem})
		replyError(x, problem)
		return
	}
	server, tool, err := routerOf(f, x).directory.resolve(ctx, name, x.Visible)
	full := catalog.FullName(server, tool)
	switch {
	case err != nil:
		f.refuse(ctx, x, name, parameters, err)
	case f.Limited(x, ToolRun, full):
		refused(ctx, f, x, full, parameters, downstream.ErrRateLimited)
	case string(dry) == "true":
		f.dryRun(ctx, x, server, tool, parameters)
	default:
		f.forward(ctx, x, server, tool, parameters)
	}
}

// hidden calls a server's tool by its full name or alias, whether or not it is listed.
func (f *Frontend) hidden(ctx context.Context, x *edge.Exchange, name string) {
	server, tool, known := routerOf(f, x).directory.findAlias(ctx, name, x.Visible)
	arguments := jsonrpc.Get(x.Message.Params, "arguments")
	if arguments == nil {
		arguments = []byte("{}")
	}
	if full := catalog.FullName(server, tool); f.Limited(x, name, full) {
		if known {
			name = full
		}
		refused(ctx, f, x, name, arguments, downstream.ErrRateLimited)
		return
	}
	var err error
	if full := false; !known {
		if server, tool, full = catalog.SplitFull(name); full {
			known, err = routerOf(f, x).servers.Has(ctx, server, "", tool, x.Visible)
		}
	}
	if known && err == nil {
		err = routerOf(f, x).directory.quarantined(server, tool)
	}
	if !known && err == nil {
		err = &downstream.UnknownError{What: "tool", Name: name}
	}
	if err != nil {
		f.refuse(ctx, x, name, arguments, err)
		return
	}
	f.forward(ctx, x, server, tool, arguments)
}

// refuse answers a call of a tool that cannot be made, and records it.
func (f *Frontend) refuse(ctx context.Context, x *edge.Exchange, name string, arguments []byte, err error) {
	refused(ctx, f, x, name, arguments, err)
	ReplyRPCError(x, err)
}

// refused records a call that is not made, if it names a tool.
func refused(ctx context.Context, f *Frontend, x *edge.Exchange, name string, arguments []byte, err error) {
	server, tool, full := catalog.SplitFull(name)
	if !full {
		server, tool = "", name
	}
	if name == "" {
		return
	}
	f.router.servers.Refused(ctx, &downstream.Request{
		Server: server, Tool: tool, Method: "tools/call",
		Params:     catalog.Params(tool, arguments, jsonrpc.Get(x.Message.Params, "_meta")),
		Provenance: downstream.Provenance{Rights: &x.Caller, Profile: profileOf(x), Surface: x.Surface},
		Visible:    x.Visible, Caller: x.Caller.ID, Login: x.Caller.Login, Hooks: downstream.Hooks{Header: x.Header},
	}, err)
}

// forward calls a tool for the client. Arguments, _meta, progress, the server's requests and the result or error pass
// through unchanged.
func (f *Frontend) forward(ctx context.Context, x *edge.Exchange, server, tool string, arguments []byte) {
	params := catalog.Params(tool, arguments, jsonrpc.Get(x.Message.Params, "_meta"))
	reply, err := f.router.servers.Call(ctx, &downstream.Request{
		Server: server, Tool: tool, Method: "tools/call", Params: params,
		Provenance: downstream.Provenance{Rights: &x.Caller, Profile: profileOf(x), Surface: x.Surface},
		Visible:    x.Visible, Client: clientOf(x), Caller: x.Caller.ID, Login: x.Caller.Login,
		Hooks: downstream.Hooks{
			Confirm: Confirm(x, server, tool, params),
			Ask:     asker(x), Gone: x.Gone, Yield: edge.Yield(x), Sent: x.ReleaseWaiting, Reserve: x.Reserve, Header: x.Header,
			Logins:   edge.Logins(x, f.router.servers.Sessions().PerCaller(server)),
			Notify:   func(m jsonrpc.Message) bool { return !x.Wants(m) || x.Notify(m.Raw) },
			Progress: x.RelayProgress(),
		},
	})
	if err == nil {
		reply, err = downstream.Attributed(server, reply)
	}
	switch {
	case err != nil:
		ReplyRPCError(x, err)
	case reply.Err != nil:
		x.FailRaw(reply.Err)
	default:
		x.OnWritten(reply.Free)
		x.ReplyWithNames(reply.Result, reply.Names)
	}
}

// profileOf returns the profile of a request to the router's own tools, as rules name it.
func profileOf(x *edge.Exchange) string { return cmp.Or(x.Caller.ScopeName(), "router") }

// dryRun describes the call that run would make.
func (f *Frontend) dryRun(ctx context.Context, x *edge.Exchange, server, tool string, arguments []byte) {
	problem, err := routerOf(f, x).servers.Validate(ctx, server, tool, arguments)
	if err != nil {
		ReplyRPCError(x, err)
		return
	}
	described := map[string]any{"tool": tool, "server": server, "arguments": json.RawMessage(arguments),
		"valid": problem == nil}
	if problem != nil {
		described["error"] = problem.Message
	}
	x.Reply(result(encode(described, "  "), described))
}
