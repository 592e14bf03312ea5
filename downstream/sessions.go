package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/safe"
)

const unsubscribeTimeout = time.Second // for the subscriptions of a client that has left

// Sessions are the sessions with servers of clients on the proxy surfaces: their own, or the router's with shared
// servers.
type Sessions struct {
	servers *servers
	clients *clients
	calls   *calls
	logger  *slog.Logger
}

// Enter adds a client with the raw params of its initialize. Its sessions with servers open on first use.
func (ss *Sessions) Enter(client string, params []byte) { ss.clients.enter(client, params) }

// Leave closes the client's sessions with servers and ends its subscriptions.
func (ss *Sessions) Leave(client string) {
	slots, subscribed, entered := ss.clients.leave(client)
	var wg sync.WaitGroup
	for _, sl := range slots {
		wg.Go(func() {
			defer sl.s.rescue("closing a client's session", nil)
			sl.close(stopTime)
		})
	}
	subscribed = slices.DeleteFunc(subscribed, func(of resource) bool { return entered && !ss.Shared(of.server) })
	ss.endSubscriptions(client, subscribed)
	wg.Wait()
	ss.clients.forget(client)
}

// endSubscriptions unsubscribes a client that has left from resources on sessions it shared.
func (ss *Sessions) endSubscriptions(client string, of []resource) {
	ctx, cancel := context.WithTimeoutCause(ss.servers.ctx, unsubscribeTimeout, errors.New("its client has left"))
	defer cancel()
	var g errgroup.Group
	g.SetLimit(restoring)
	for _, of := range of {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			defer safe.Recover(ss.logger, "ending a subscription", nil)
			_, err := ss.calls.chain(ctx, &Request{
				Server: of.server, Client: client, Proxied: true,
				Method: "resources/unsubscribe", Params: jsonrpc.Set(nil, "uri", []byte(jsonrpc.StringID(of.uri))),
			})
			if err != nil {
				ss.logger.Debug("cannot unsubscribe", "server", of.server, "error", err)
			}
			return nil // continue with the others
		})
	}
	_ = g.Wait() // always nil
}

// Initialized returns a server's raw result of initialize in the client's session, connecting if necessary.
func (ss *Sessions) Initialized(ctx context.Context, name, client string) (answer []byte, err error) {
	err = ss.servers.use(name, func(s *server) error {
		session, err := s.slot(client).connectUnlessDown(ctx)
		if err == nil {
			answer = session.Initialized
		}
		return err
	})
	return answer, err
}

// Introduce starts to open the client's session with a server and returns the server's raw result of initialize. If
// the session does not open before ctx ends, it returns the result of the router's own session. It fails without
// either.
func (ss *Sessions) Introduce(ctx context.Context, name, client string) (answer []byte, err error) {
	answer, err = ss.Initialized(ctx, name, client)
	if err == nil {
		return answer, nil
	}
	if s := ss.servers.server(name); s != nil {
		if own := s.own.current(); own != nil {
			return own.Initialized, nil
		}
	}
	return nil, err
}

// Notify relays a client's notification to a server. Shared sessions ignore notifications/initialized, which was sent
// when they were opened.
func (ss *Sessions) Notify(ctx context.Context, name, client, method string, params []byte) error {
	return ss.servers.use(name, func(s *server) error {
		if method == "notifications/initialized" {
			if ss.clients.initialized(client); client == "" || !s.perClient() {
				return nil
			}
		}
		sl := s.slot(client)
		for again := false; ; again = true {
			session, err := sl.connectUnlessDown(ctx)
			if err != nil {
				return err
			}
			err = session.Notify(ctx, method, params)
			if again || !isLost(err) || mayHaveArrived(err) {
				return err
			}
		}
	})
}

// List returns the raw items of a list in the client's session, all pages. They are nil if the server does not know
// the method. Tools hidden by the server's filter are left out. Equal lists are the same slice.
func (ss *Sessions) List(ctx context.Context, name, client, method string) ([]json.RawMessage, error) {
	var items []json.RawMessage
	err := ss.servers.use(name, func(s *server) error {
		l, err := s.slot(client).lists.get(ctx, method, forClient)
		if err == nil {
			items = l.items
		}
		return err
	})
	if errors.As(err, new(*UnknownError)) {
		return nil, nil
	}
	return items, err
}

// Held returns the result of List if that needs no request to the server; else ok is false.
func (ss *Sessions) Held(name, client, method string) (items []json.RawMessage, ok bool) {
	s := ss.servers.enabled(name)
	if s == nil {
		return nil, false
	}
	sl := s.own
	if client != "" && s.perClient() {
		if sl = ss.clients.existing(client, s.endpoint); sl == nil {
			return nil, false
		}
	}
	l, ok := sl.lists.cached(method, forClient)
	if !ok {
		return nil, false
	}
	return l.items, true
}

// LeftOut logs that a client was answered without a server that should have contributed.
func (ss *Sessions) LeftOut(server, method string, err error) {
	if s := ss.servers.server(server); s != nil {
		s.health.leftOut(method, err)
	}
}

// Shared reports whether clients share one session with the server.
func (ss *Sessions) Shared(server string) bool {
	s := ss.servers.server(server)
	return s != nil && !s.perClient()
}

// Own reports whether a client has, or will get, its own session with the server.
func (ss *Sessions) Own(server, client string) bool {
	s := ss.servers.server(server)
	if s == nil || !s.perClient() {
		return false
	}
	params, _ := ss.clients.initialize(client)
	return params != nil
}

// Filters reports whether the configuration may hide some of the server's tools.
func (ss *Sessions) Filters(server string) bool {
	s := ss.servers.server(server)
	return s != nil && len(s.config.Tools.Allow)+len(s.config.Tools.Deny) > 0
}

// Subscribers returns the clients subscribed, on the router's own session, to a resource of a server or to one that
// contains it, because servers may announce changes of parts.
func (ss *Sessions) Subscribers(server, uri string) []string {
	return ss.clients.subscribers(server, uri, !ss.Shared(server))
}

// CheckParamHeaders compares the headers of a client's call with the arguments that they repeat, using the tool's
// last listed definition. It returns nil if they agree.
func (ss *Sessions) CheckParamHeaders(server, client, tool string, h http.Header, params []byte) *jsonrpc.Error {
	s := ss.servers.server(server)
	if s == nil {
		return nil
	}
	return s.slot(client).lists.tool(tool).CheckParamHeaders(h, params)
}
