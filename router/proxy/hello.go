package proxy

import (
	"context"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// supported are the protocol versions of our surfaces, the newest first.
const supported = `["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`

// initialize opens the client's sessions with the servers, and answers with what they can do together.
func (s *Surface) initialize(ctx context.Context, x *edge.Exchange) {
	version := []byte(jsonrpc.StringID(x.Version))
	s.p.servers.Enter(x.Session, jsonrpc.Set(x.Message.Params, "protocolVersion", version))
	hello, err := s.hello(ctx, x)
	if err != nil {
		s.p.servers.Leave(x.Session)
		s.p.opts.Fail(x, err)
		return
	}
	x.Reply(jsonrpc.Set(hello, "protocolVersion", version))
}

// hello returns the answer to initialize: that of the one server, or the union of all.
func (s *Surface) hello(ctx context.Context, x *edge.Exchange) ([]byte, error) {
	servers := s.reach(x)
	answers := make([][]byte, len(servers))
	err := s.each(ctx, x, servers, func(ctx context.Context, i int) (err error) {
		answers[i], err = s.p.servers.Initialized(ctx, servers[i], x.Session)
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.only != "" {
		if len(answers) == 0 {
			return nil, &downstream.UnknownError{What: "server", Name: s.only}
		}
		return answers[0], nil
	}
	capabilities := []byte("{}")
	for _, a := range answers {
		if c := jsonrpc.Get(a, "capabilities"); len(c) > 0 && c[0] == '{' {
			capabilities = mergeCapabilities(capabilities, c)
		}
	}
	capabilities = jsonrpc.Remove(capabilities, "tasks") // a task's id does not tell its server
	if s.searches() {
		capabilities = mergeCapabilities(capabilities, []byte(`{"tools":{"listChanged":true}}`))
	}
	info := jsonrpc.Set(jsonrpc.Set(nil, "version", []byte(jsonrpc.StringID(s.p.opts.Version))), "name", []byte(jsonrpc.StringID(s.p.opts.Name)))
	return jsonrpc.Set(jsonrpc.Set(nil, "serverInfo", info), "capabilities", capabilities), nil
}

// discover answers a client of the modern era, which has no handshake.
func (s *Surface) discover(ctx context.Context, x *edge.Exchange) {
	hello, err := s.hello(ctx, x)
	if err != nil {
		s.p.opts.Fail(x, err)
		return
	}
	hello = jsonrpc.Remove(hello, "protocolVersion")
	if info := jsonrpc.Get(hello, "serverInfo"); info != nil {
		meta := jsonrpc.Set(jsonrpc.Get(hello, "_meta"), "io.modelcontextprotocol/serverInfo", info)
		hello = jsonrpc.Set(jsonrpc.Remove(hello, "serverInfo"), "_meta", meta)
	}
	x.Reply(cacheable(jsonrpc.Set(hello, "supportedVersions", []byte(supported))))
}
