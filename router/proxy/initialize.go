package proxy

import (
	"context"
	"errors"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/auth"
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
			answers[i], err = serversOf(s, x).Sessions().Introduce(ctx, servers[i], x.Session)
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
	var capabilities [][]byte
	for i, a := range answers {
		if a == nil {
			a = []byte(assumed)
		}
		modern := protocol.Version(jsonrpc.Text(jsonrpc.Get(a, "protocolVersion"))).AtLeast(protocol.V20260728)
		if modern && !x.Version.AtLeast(protocol.V20260728) {
			a = link.Older(a)
		}
		a = s.offered(x, servers[i], a, modern)
		if s.only != "" && answers[i] != nil {
			return a, nil
		}
		capabilities = append(capabilities, typedCapabilities(jsonrpc.Get(a, "capabilities")))
	}
	if s.searches() && !x.Version.AtLeast(protocol.V20260728) { // where the list does not vary by client
		capabilities = append(capabilities, []byte(`{"tools":{"listChanged":true}}`))
	}
	info := jsonrpc.Set(jsonrpc.Set(nil, "version", []byte(jsonrpc.StringID(s.p.opts.Version))), "name",
		[]byte(jsonrpc.StringID(s.p.opts.Name)))
	return jsonrpc.Set(jsonrpc.Set(nil, "serverInfo", info), "capabilities",
		union(capabilityLevels, capabilities)), nil
}

// assumed is the answer assumed of a server that is not connected, so that the client lists its items later.
const assumed = `{"capabilities":{"resources":{"listChanged":true},"prompts":{"listChanged":true},"tools":{"listChanged":true}}}`

// offered returns the answer of a server without the capabilities that the surface does not relay for this client, and
// those that its caller may not use. modern means that the server speaks 2026-07-28.
func (s *Surface) offered(x *edge.Exchange, server string, answer []byte, modern bool) []byte {
	if !s.ownTasks(x) {
		answer = without(answer, "capabilities", "tasks")
		if !modern || !x.Version.AtLeast(protocol.V20260728) {
			answer = without(answer, "capabilities", "extensions", protocol.ExtensionTasks)
		}
	}
	if mayAll(x, server) {
		return answer
	}
	declared := jsonrpc.Get(answer, "capabilities")
	tasks := jsonrpc.Get(declared, "extensions", protocol.ExtensionTasks)
	declared = jsonrpc.Map(declared, func(name, value []byte) []byte {
		may := false
		switch kind := string(name); kind {
		case auth.Tools, auth.Resources, auth.Prompts:
			may = x.Caller.MaySeeAny(kind, server)
		case "completions":
			may = x.Caller.MaySeeAny(auth.Resources, server) || x.Caller.MaySeeAny(auth.Prompts, server)
		case "logging":
			may = true
		}
		if !may {
			return nil
		}
		return value
	})
	if tasks != nil && x.Caller.MaySeeAny(auth.Tools, server) {
		declared = jsonrpc.Set(declared, "extensions", jsonrpc.Set(nil, protocol.ExtensionTasks, tasks))
	}
	if declared == nil {
		return answer
	}
	return jsonrpc.Set(answer, "capabilities", declared)
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
