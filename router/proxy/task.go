package proxy

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// taskName names a task of a server (tasks extension of 2026-07-28). Clients get it sealed, because a server knows only
// the router, not whose a task is.
type taskName struct {
	Server string
	Tool   string // whose call has become the task
	ID     string // of the server
}

// ofServers are the tasks of servers on a surface.
type ofServers struct{ *Surface }

// serve serves a request about a task: it goes to the server that has the task.
func (s ofServers) serve(ctx context.Context, x *edge.Exchange) {
	if s.peer { // the other replica has opened the id
		s.forward(ctx, x, s.only, "", x.Message.Params)
		return
	}
	id, err := edge.TaskID(x)
	name, known := s.open(x, id)
	if err == nil && !known {
		err = edge.ErrNoTask
	}
	if err != nil {
		refuse(ctx, s.Surface, x, "", err)
		return
	}
	params := x.Message.Params
	s.forward(ctx, x, name.Server, name.Tool, with(params, jsonrpc.At(params, jsonrpc.Get(params, "taskId")), name.ID))
}

// open returns what a client's id of a task names, if it is one of the caller at a server of the surface.
func (s ofServers) open(x *edge.Exchange, id string) (name taskName, known bool) {
	if s.peer {
		return taskName{Server: s.only, ID: id}, true
	}
	text, ok := edge.OpenTask(x, id)
	known = ok && json.Unmarshal([]byte(text), &name) == nil && slices.Contains(s.reach(x), name.Server)
	return name, known
}

// renamed returns a reply for a client of 2026-07-28 with the client's id of the task that it is about, and with the
// surface's form of the URIs in the result of the task. Other replies are unchanged. The error is a *Failure.
func (s ofServers) renamed(x *edge.Exchange, server, tool string, reply link.Reply) (link.Reply, error) {
	switch {
	case downstream.IsTask(reply):
		span, ambiguous := jsonrpc.Find(reply.Result, "taskId")
		id := jsonrpc.Text(span.Of(reply.Result))
		if ambiguous || id == "" {
			return reply, &downstream.Failure{Server: server, Reason: reason.Protocol, MaybeDelivered: true,
				Message: "it answered with a task whose taskId is no string, or appears twice"}
		}
		text, _ := json.Marshal(taskName{server, tool, id}) // strings always marshal
		reply.Result = with(reply.Result, span, edge.SealTask(x, string(text)))
	case protocol.OfTasks(x.Message.Method):
		id := jsonrpc.Text(jsonrpc.Get(x.Message.Params, "taskId"))
		var err error
		reply.Result, err = s.renamedTask(server, id, reply.Result)
		return reply, err
	}
	return reply, nil
}

// renamedTask returns a raw task of a server with the client's id and the surface's form of URIs. The error is a
// *Failure.
func (s ofServers) renamedTask(server, id string, task []byte) ([]byte, error) {
	if failed := jsonrpc.Get(task, "error"); failed != nil && attributes(s.Surface) {
		own, err := downstream.Attributed(server, link.Reply{Err: failed})
		if err != nil {
			return nil, err
		}
		task = jsonrpc.Splice(task, jsonrpc.Edit{Span: jsonrpc.At(task, failed), With: own.Err})
	}
	if result := jsonrpc.Get(task, "result"); result != nil {
		own := s.names().rewriteURIs(server, "tools/call", result, jsonrpc.AnyName)
		task = jsonrpc.Splice(task, jsonrpc.Edit{Span: jsonrpc.At(task, result), With: own})
	}
	if span, _ := jsonrpc.Find(task, "taskId"); span.Found() {
		task = with(task, span, id)
	}
	return task, nil
}
