package router

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

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
	switch {
	case name == "":
		replyError(x, "Invalid argument: tool is required and must be a string")
		return
	case unknown != nil:
		replyError(x, unknown.Error())
		return
	case parameters[0] != '{':
		replyError(x, "Invalid argument: parameters must be an object")
		return
	case dry != nil && string(dry) != "true" && string(dry) != "false" && string(dry) != "null":
		replyError(x, "Invalid argument: dry_run must be true or false")
		return
	}
	server, tool, err := f.router.directory.resolve(ctx, name, x.Visible)
	switch {
	case err != nil:
		f.refuse(ctx, x, name, parameters, err)
	case f.Limited(x, ToolRun, catalog.FullName(server, tool)):
	case string(dry) == "true":
		f.dryRun(ctx, x, server, tool, parameters)
	default:
		f.forward(ctx, x, server, tool, parameters)
	}
}

// hidden calls a server's tool by its full name or alias, whether or not it is listed.
func (f *Frontend) hidden(ctx context.Context, x *edge.Exchange, name string) {
	server, tool, known := f.router.directory.findAlias(ctx, name, x.Visible)
	if f.Limited(x, name, catalog.FullName(server, tool)) {
		return
	}
	var err error
	if full := false; !known {
		if server, tool, full = catalog.SplitFull(name); full {
			known, err = f.router.servers.Has(ctx, server, "", tool, x.Visible)
		}
	}
	if known && err == nil {
		err = f.router.directory.quarantined(server, tool)
	}
	if !known && err == nil {
		err = &downstream.UnknownError{What: "tool", Name: name}
	}
	arguments := jsonrpc.Get(x.Message.Params, "arguments")
	if arguments == nil {
		arguments = []byte("{}")
	}
	if err != nil {
		f.refuse(ctx, x, name, arguments, err)
		return
	}
	f.forward(ctx, x, server, tool, arguments)
}

// refuse answers a call of a tool that cannot be made, and records it.
func (f *Frontend) refuse(ctx context.Context, x *edge.Exchange, name string, arguments []byte, err error) {
	server, tool, full := catalog.SplitFull(name)
	if !full {
		server, tool = "", name
	}
	f.router.servers.Refused(ctx, &downstream.Request{
		Server: server, Tool: tool, Method: "tools/call", Params: catalog.Params(tool, arguments, nil),
		Provenance: downstream.Provenance{Profile: profileOf(x), Surface: x.Surface},
		Visible:    x.Visible, Caller: x.Caller.ID,
	}, err)
	ReplyRPCError(x, err)
}

// forward calls a tool for the client. Arguments, _meta, progress, the server's requests and the result or error pass
// through unchanged.
func (f *Frontend) forward(ctx context.Context, x *edge.Exchange, server, tool string, arguments []byte) {
	params := catalog.Params(tool, arguments, jsonrpc.Get(x.Message.Params, "_meta"))
	reply, err := f.router.servers.Call(ctx, &downstream.Request{
		Server: server, Tool: tool, Method: "tools/call", Params: params,
		Provenance: downstream.Provenance{Rights: &x.Caller, Profile: profileOf(x), Surface: x.Surface},
		Visible:    x.Visible, Client: clientOf(x), Caller: x.Caller.ID,
		Hooks: downstream.Hooks{
			Confirm: Confirm(x, server, tool, params),
			Ask:     asker(x), Gone: x.Gone, Sent: x.ReleaseWaiting, Reserve: x.Reserve, Header: x.Header,
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
	problem, err := f.router.servers.Validate(ctx, server, tool, arguments)
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
