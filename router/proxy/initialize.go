package proxy

import (
	"context"
	"errors"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// initializeTimeout limits how long initialize waits for servers that are not connected or that have no session for
// the client yet.
const initializeTimeout = time.Second

// initialize answers with the combined capabilities of the servers that respond in time. The client's sessions with
// servers open in the background.
func (s *Surface) initialize(ctx context.Context, x *edge.Exchange) {
	version := []byte(jsonrpc.StringID(string(x.Version)))
	s.p.servers.Sessions().Enter(x.Session, jsonrpc.Set(x.Message.Params, "protocolVersion", version))
	answer, err := s.introduce(ctx, x)
	if err != nil {
		s.p.servers.Sessions().Leave(x.Session)
		s.p.opts.Fail(x, err)
		return
	}
	x.Reply(jsonrpc.Set(answer, "protocolVersion", version))
}

// introduce returns the result of initialize: that of the single server, or the union of all. Missing servers cause
// no error; when they connect, the client receives list_changed.
func (s *Surface) introduce(ctx context.Context, x *edge.Exchange) ([]byte, error) {
	servers := s.reach(x)
	answers := make([][]byte, len(servers))
	err := s.p.within(ctx, min(initializeTimeout, s.p.opts.Config.ListDeadline), x, servers,
		func(ctx context.Context, i int) (err error) {
			answers[i], err = s.p.servers.Sessions().Introduce(ctx, servers[i], x.Session)
			return err
		})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case s.only != "" && len(answers) == 0:
		return nil, &downstream.UnknownError{What: "server", Name: s.only}
	case s.only != "" && errors.As(err, new(*downstream.UnknownError)):
		return nil, err
	}
	for i, a := range answers {
		answers[i] = withoutSubscribe(a)
	}
	if s.only != "" && answers[0] != nil {
		return s.offered(x, answers[0]), nil
	}
	capabilities := []byte("{}")
	for _, a := range answers {
		if a == nil {
			capabilities = mergeCapabilities(capabilities, []byte(assumedCapabilities))
		} else if c := jsonrpc.Get(a, "capabilities"); len(c) > 0 && c[0] == '{' {
			capabilities = mergeCapabilities(capabilities, c)
		}
	}
	if s.searches() && !x.Version.AtLeast(protocol.V20260728) { // where the list does not vary by client
		capabilities = mergeCapabilities(capabilities, []byte(`{"tools":{"listChanged":true}}`))
	}
	info := jsonrpc.Set(jsonrpc.Set(nil, "version", []byte(jsonrpc.StringID(s.p.opts.Version))), "name",
		[]byte(jsonrpc.StringID(s.p.opts.Name)))
	return s.offered(x, jsonrpc.Set(jsonrpc.Set(nil, "serverInfo", info), "capabilities", capabilities)), nil
}

// assumedCapabilities are the capabilities assumed for a server that is not connected, so that the client lists its
// items later.
const assumedCapabilities = `{"resources":{"listChanged":true},"prompts":{"listChanged":true},"tools":{"listChanged":true}}`

// withoutSubscribe removes from the answer of a server of 2026-07-28 the capability to subscribe to resources, because
// the router does not.
func withoutSubscribe(answer []byte) []byte {
	if jsonrpc.Text(jsonrpc.Get(answer, "protocolVersion")) != string(protocol.V20260728) {
		return answer
	}
	return without(answer, "capabilities", "resources", "subscribe")
}

// offered removes the capabilities for tasks if the surface does not relay those of this client.
func (s *Surface) offered(x *edge.Exchange, answer []byte) []byte {
	if s.ownTasks(x) {
		return answer
	}
	return without(without(answer, "capabilities", "tasks"), "capabilities", "extensions", "io.modelcontextprotocol/tasks")
}

// without removes the member at a path from an object.
func without(object []byte, path ...string) []byte {
	value := jsonrpc.Get(object, path[0])
	switch {
	case len(value) == 0:
		return object
	case len(path) == 1:
		return jsonrpc.Remove(object, path[0])
	case value[0] != '{':
		return object
	}
	return jsonrpc.Splice(object, jsonrpc.Edit{Span: jsonrpc.At(object, value), With: without(value, path[1:]...)})
}

// discover answers server/discover; clients of the modern era have no handshake.
func (s *Surface) discover(ctx context.Context, x *edge.Exchange) {
	answer, err := s.introduce(ctx, x)
	if err != nil {
		s.p.opts.Fail(x, err)
		return
	}
	answer = jsonrpc.Remove(answer, "protocolVersion")
	if info := jsonrpc.Get(answer, "serverInfo"); info != nil {
		meta := jsonrpc.Set(jsonrpc.Get(answer, "_meta"), "io.modelcontextprotocol/serverInfo", info)
		answer = jsonrpc.Set(jsonrpc.Remove(answer, "serverInfo"), "_meta", meta)
	}
	x.Reply(cacheable(jsonrpc.Set(answer, "supportedVersions", protocol.JSON(protocol.Versions()))))
}
