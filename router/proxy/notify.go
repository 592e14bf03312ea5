package proxy

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// notify passes a client's notification on: progress to the server that asked for it, all else to all
// servers at once. Those of a session do not wait for each other's servers; they keep their order towards
// each.
func (s *Surface) notify(ctx context.Context, x *edge.Exchange) {
	servers, method, params := s.reach(x), x.Message.Method, x.Message.Params
	tell := func(ctx context.Context, server string) error {
		return s.p.servers.Sessions().Notify(ctx, server, x.Session, method, params)
	}
	if isRequest(method) {
		s.p.log.Warn("a request without an id is not passed on", "method", method)
		return
	}
	if method == "notifications/progress" {
		of, ok := s.p.relays.find(x.Session, params)
		if !ok {
			s.p.log.Debug("progress on what nobody asked for", "session", x.Session)
			return
		}
		servers, params = []string{of.server}, of.progress(params)
		tell = func(ctx context.Context, _ string) error { return of.notify(ctx, method, params) }
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	m := s.p.client(x.Session)
	for _, server := range servers {
		failed := func(err error) {
			s.p.log.Warn("cannot pass on a notification", "server", server, "method", method, "error", err)
		}
		send := func(ctx context.Context) error { return tell(ctx, server) }
		if m != nil {
			release, ok := x.Hold(len(x.Message.Raw))
			switch {
			case !ok:
				failed(errQueueFull)
			case !m.post(server, func(ctx context.Context) error { defer release(); return send(ctx) }, failed):
				release()
			}
			continue
		}
		wg.Go(func() {
			defer safe.Recover(s.p.log, "notifying server "+server, failed)
			ctx, cancel := context.WithTimeoutCause(ctx, courtesy, errors.New("it took too long"))
			defer cancel()
			if err := send(ctx); err != nil {
				failed(err)
			}
		})
	}
}

// isRequest reports whether the protocol knows a method as a request. Sent without an id to a lenient server,
// it would pass by names, lists of allowed tools and limits.
func isRequest(method string) bool {
	family, _, _ := strings.Cut(method, "/")
	switch family {
	case "initialize", "ping", "server", "tools", "prompts", "resources", "completion", "logging", "tasks",
		"subscriptions", "sampling", "elicitation", "roots":
		return true
	}
	return false
}

// rename returns a server's notification with its URI as the surface calls it.
func (s *Surface) rename(server string, m jsonrpc.Message) []byte {
	if !s.names().prefixed || m.Method != "notifications/resources/updated" {
		return m.Raw
	}
	raw := jsonrpc.Get(m.Params, "uri")
	if len(raw) == 0 || raw[0] != '"' {
		return m.Raw
	}
	return with(m.Raw, jsonrpc.At(m.Raw, raw), s.names().uri(server, jsonrpc.Text(raw)))
}

// Deliver passes a notification of a server that belongs to no call on to the clients it concerns: on a
// session of one client to that one; on a shared session updates go to who subscribed and the rest to all
// who may see the server, or to those of one caller.
func (p *Proxy) Deliver(m downstream.Message) {
	var to []*client
	named := func(sessions ...string) {
		for _, session := range sessions {
			if c := p.client(session); c != nil {
				to = append(to, c)
			}
		}
	}
	switch {
	case m.Client != "":
		named(m.Client)
	case !p.servers.Sessions().Shared(m.Server):
		return // the router's own session: clients have their own
	case m.Message.Method == "notifications/resources/updated":
		named(p.servers.Sessions().Subscribers(m.Server, jsonrpc.Text(jsonrpc.Get(m.Message.Params, "uri")))...)
	default:
		to = p.all()
	}
	clients := p.attached()
	renamed := map[*naming][]byte{}
	for _, c := range to {
		if !c.concerns(m.Server) || m.Caller != "" && m.Caller != c.user().ID {
			continue
		}
		names := c.surface.names()
		if renamed[names] == nil {
			renamed[names] = c.surface.rename(m.Server, m.Message)
		}
		clients.Send(c.session, renamed[names])
	}
}

// Ask passes a server's request that belongs to no call on to the client whose session it came on.
func (p *Proxy) Ask(ctx context.Context, server, client string, q downstream.ServerRequest) (result, rpcErr []byte) {
	return p.relay(ctx, client, server, q, func(params []byte) (jsonrpc.Message, error) {
		return p.attached().Request(ctx, client, q.Method, params)
	})
}

// relay puts a server's question to a client and returns the answer once the server has been sent what the
// client said before it.
func (p *Proxy) relay(ctx context.Context, session, server string, q downstream.ServerRequest,
	request func(params []byte) (jsonrpc.Message, error)) (result, rpcErr []byte) {
	params, end := p.relays.begin(session, server, q)
	defer end()
	m, err := request(params)
	if err == nil && !p.inOrder(ctx, session, server) {
		err = context.Cause(ctx) // rather than before what the client said first
	}
	return edge.Answered(m, err)
}
