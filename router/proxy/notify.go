package proxy

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// notify relays a client's notification: progress to the server that asked for it, all others to all servers in
// parallel. Notifications of a session keep their order per server; a slow server does not delay the others.
func (s *Surface) notify(ctx context.Context, x *edge.Exchange) {
	servers, method, params := s.reach(x), x.Message.Method, x.Message.Params
	tell := func(ctx context.Context, server string) error {
		return serversOf(s, x).Sessions().Notify(ctx, server, x.Session, method, params)
	}
	if isRequest(method) {
		s.p.log.Warn("dropped a request without an id", "method", method)
		return
	}
	if !slices.Contains(notifications[:], method) {
		servers = slices.DeleteFunc(slices.Clone(servers), func(name string) bool { return !mayAll(x, name) })
		if len(servers) == 0 && x.Visible != nil {
			s.p.log.Warn("dropped a notification that the caller may not send", "method", method, "caller", x.Caller.Name)
			return
		}
	}
	if method == "notifications/progress" {
		request, ok := s.p.requests.find(x.Session, params)
		if !ok {
			s.p.log.Debug("dropped progress with an unknown token", "session", edge.SessionLabel(x.Session))
			return
		}
		servers, params = []string{request.server}, request.progress(params)
		tell = func(ctx context.Context, _ string) error { return request.notify(ctx, method, params) }
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	c := s.p.client(x.Session)
	for _, server := range servers {
		failed := func(err error) {
			s.p.log.Warn("cannot relay a notification", "server", server, "method", method, "error", err)
		}
		send := func(ctx context.Context) error { return tell(ctx, server) }
		if c != nil {
			release, ok := x.Hold(len(x.Message.Raw))
			switch {
			case !ok:
				failed(errQueueFull)
			case !c.post(server, x.Order, func(ctx context.Context) error {
				defer release()
				edge.AwaitEarlier(ctx, x)
				return send(ctx)
			}, failed):
				release()
			}
			continue
		}
		wg.Go(func() {
			if err := s.p.deliver(ctx, server, send); err != nil {
				failed(err)
			}
		})
	}
}

// notifications are those of clients that the protocol defines. Others may mean anything to a server.
var notifications = [...]string{
	"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed",
}

// isRequest reports whether the protocol defines a method, in any case, as a request. Without an id, such a message
// could bypass names, allow-lists and limits at a lenient server.
func isRequest(method string) bool {
	family, _, _ := strings.Cut(method, "/")
	switch strings.ToLower(family) {
	case "initialize", "ping", "server", "tools", "prompts", "resources", "completion", "logging", "tasks",
		"subscriptions", "sampling", "elicitation", "roots":
		return true
	}
	return false
}

// rename returns a server's notification with the surface's form of its URI.
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

// Deliver relays a server's notification to the clients that have not received it with a call. A session of one client
// delivers to that client. On the router's own session, resource updates go to subscribers; all others go to all
// clients that may see the server, or to those of one caller. With `session: per_client`, these others go only to
// clients that listen (2026-07-28), which have no session with the server.
func (p *Proxy) Deliver(n downstream.Notification) {
	var to []*client
	named := func(sessions ...string) {
		for _, session := range sessions {
			if c := p.client(session); c != nil {
				to = append(to, c)
			}
		}
	}
	switch {
	case n.Client != "":
		named(n.Client)
	case n.Message.Method == "notifications/resources/updated":
		sessions := downstream.As(p.servers, n.Login).Sessions()
		named(sessions.Subscribers(n.Server, jsonrpc.Text(jsonrpc.Get(n.Message.Params, "uri")))...)
	case !p.servers.Sessions().Shared(n.Server):
		to = slices.DeleteFunc(p.all(), func(c *client) bool { return c.listener == nil })
	default:
		to = p.all()
	}
	renamed := map[*naming][]byte{}
	for _, c := range to {
		if c.session == n.DeliveredTo || !c.hears(n.Server, n.Message) || n.Caller != "" && n.Caller != c.user().ID ||
			n.Login != "" && n.Login != c.user().Login {
			continue
		}
		names := c.surface.names()
		if renamed[names] == nil {
			renamed[names] = c.surface.rename(n.Server, n.Message)
		}
		c.send(renamed[names])
	}
}

// Ask relays a server's request that belongs to no call to the client that owns the session.
func (p *Proxy) Ask(ctx context.Context, server, client string, q downstream.ServerRequest) (result, rpcErr []byte) {
	var surface *Surface
	if c := p.client(client); c != nil {
		surface = c.surface
	}
	return p.relay(ctx, surface, client, q, func(params []byte) (jsonrpc.Message, error) {
		return p.parts.Clients.Request(ctx, client, q.Method, params)
	})
}

// attributes reports whether requests of servers get their names: unless the surface is one server's. Without a
// surface they do.
func attributes(s *Surface) bool { return s == nil || s.only == "" && s.p.opts.Config.Attribute }

// relay sends a server's request to a client of a surface. It returns the response after the server has received the
// client's earlier notifications.
func (p *Proxy) relay(ctx context.Context, s *Surface, session string, q downstream.ServerRequest,
	request func(params []byte) (jsonrpc.Message, error)) (result, rpcErr []byte) {
	if attributes(s) {
		own, refused := q.Attributed()
		if refused != nil {
			return nil, refused.Encode()
		}
		q = own
	}
	params, end := p.requests.begin(session, q)
	defer end()
	m, err := request(params)
	if err == nil && !p.inOrder(ctx, session, math.MaxUint64, q.Server) {
		err = context.Cause(ctx) // never overtake the client's earlier notifications
	}
	return edge.Answered(m, err)
}

// clientRequests are the requests of servers that clients are answering and may report progress on. Each has a token of
// the router's own, because servers may choose equal tokens. The zero value is ready.
type clientRequests struct {
	mu     sync.Mutex
	last   int64
	byOurs map[string]clientRequest
}

type clientRequest struct {
	session, server string
	token           []byte // the server's own, raw
	notify          func(ctx context.Context, method string, params []byte) error
}

// begin returns the params of a request with the router's own token, if they have a token, and a function that ends
// it. Clients without a session, as since 2026-07-28, report no progress: one could guess the tokens of others.
func (r *clientRequests) begin(session string, q downstream.ServerRequest) (_ []byte, end func()) {
	token := jsonrpc.Get(q.Params, "_meta", "progressToken")
	if session == "" || !jsonrpc.ValidID(token) {
		return q.Params, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byOurs == nil {
		r.byOurs = map[string]clientRequest{}
	}
	r.last++
	ours := string(jsonrpc.IntID(r.last))
	r.byOurs[ours] = clientRequest{session, q.Server, token, q.Notify}
	return jsonrpc.Splice(q.Params, jsonrpc.Edit{Span: jsonrpc.At(q.Params, token), With: []byte(ours)}), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.byOurs, ours)
	}
}

// find returns the request that a client reports progress on.
func (r *clientRequests) find(session string, params []byte) (found clientRequest, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok = r.byOurs[string(jsonrpc.Get(params, "progressToken"))]
	return found, ok && found.session == session
}

// progress returns the params of a client's progress notification with the server's own token.
func (r clientRequest) progress(params []byte) []byte {
	token := jsonrpc.Get(params, "progressToken")
	return jsonrpc.Splice(params, jsonrpc.Edit{Span: jsonrpc.At(params, token), With: r.token})
}
