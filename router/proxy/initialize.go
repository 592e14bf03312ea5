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

// moment is how long initialize waits for servers that are not connected, or for which the client's own session
// is not open yet.
const moment = time.Second

// initialize answers at once with what the servers that are there can do together. The client's sessions with
// them open in the background.
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

// introduce returns the answer to initialize: that of the one server, or the union of all. Servers that are not
// there fail nothing; the client is told to list anew when they are.
func (s *Surface) introduce(ctx context.Context, x *edge.Exchange) ([]byte, error) {
	servers := s.reach(x)
	answers := make([][]byte, len(servers))
	err := s.p.within(ctx, min(moment, s.p.opts.Config.ListDeadline), x, servers,
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
	case s.only != "" && answers[0] != nil:
		return s.offered(x, answers[0]), nil
	}
	capabilities := []byte("{}")
	for _, a := range answers {
		if a == nil {
			capabilities = mergeCapabilities(capabilities, []byte(absent))
		} else if c := jsonrpc.Get(a, "capabilities"); len(c) > 0 && c[0] == '{' {
			capabilities = mergeCapabilities(capabilities, c)
		}
	}
	if s.searches() {
		capabilities = mergeCapabilities(capabilities, []byte(`{"tools":{"listChanged":true}}`))
	}
	info := jsonrpc.Set(jsonrpc.Set(nil, "version", []byte(jsonrpc.StringID(s.p.opts.Version))), "name",
		[]byte(jsonrpc.StringID(s.p.opts.Name)))
	return s.offered(x, jsonrpc.Set(jsonrpc.Set(nil, "serverInfo", info), "capabilities", capabilities)), nil
}

// absent are the capabilities assumed of a server that is not there: whatever it has can be listed once it is.
const absent = `{"resources":{"listChanged":true},"prompts":{"listChanged":true},"tools":{"listChanged":true}}`

// offered returns an answer to initialize without the capabilities that the surface does not pass on to this
// client: of tasks, and in the modern era those that need subscriptions.
func (s *Surface) offered(x *edge.Exchange, answer []byte) []byte {
	capabilities := jsonrpc.Get(answer, "capabilities")
	if len(capabilities) == 0 || capabilities[0] != '{' {
		return answer
	}
	kept := capabilities
	if !s.ownTasks(x) {
		kept = jsonrpc.Remove(kept, "tasks")
		kept = without(kept, "extensions", "io.modelcontextprotocol/tasks")
	}
	if x.Version.AtLeast(protocol.V20260728) {
		kept = edge.WithoutSubscriptions(kept)
	}
	if len(kept) == len(capabilities) {
		return answer // byte for byte
	}
	return jsonrpc.Splice(answer, jsonrpc.Edit{Span: jsonrpc.At(answer, capabilities), With: kept})
}

// without returns an object with one member less in the object that a member is.
func without(object []byte, member, inner string) []byte {
	value := jsonrpc.Get(object, member)
	if len(value) == 0 || value[0] != '{' || jsonrpc.Get(value, inner) == nil {
		return object
	}
	return jsonrpc.Splice(object, jsonrpc.Edit{Span: jsonrpc.At(object, value), With: jsonrpc.Remove(value, inner)})
}

// discover answers a client of the modern era, which has no handshake.
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
