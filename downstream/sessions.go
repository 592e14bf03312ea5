package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/server"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/safe"
)

const unsubscribeTimeout = time.Second // for the subscriptions of a client that has left

// Sessions are the sessions with servers of clients on the proxy surfaces: their own, or the router's with shared
// servers.
type Sessions struct {
	servers view
	clients *server.Clients
	calls   *callChain
	logger  *slog.Logger
}

// Enter adds a client with the raw params of its initialize. Its sessions with servers open on first use.
func (ss *Sessions) Enter(client string, params []byte) { ss.clients.Enter(client, params) }

// Leave closes the client's sessions with servers and ends its subscriptions.
func (ss *Sessions) Leave(client string) {
	subscribed, entered := ss.clients.Leave(client)
	var wg sync.WaitGroup
	for _, s := range ss.servers.every() {
		wg.Go(func() { s.Leave(client) })
	}
	maps.DeleteFunc(subscribed, func(of server.Resource, _ string) bool { return entered && !ss.Shared(of.Name()) })
	ss.endSubscriptions(client, subscribed)
	wg.Wait()
	ss.clients.Forget(client)
}

// endSubscriptions unsubscribes a client that has left from resources on sessions it shared. Of each, its caller is
// given.
func (ss *Sessions) endSubscriptions(client string, subscribed map[server.Resource]string) {
	ctx, cancel := context.WithTimeoutCause(ss.servers.ctx, unsubscribeTimeout, errors.New("its client has left"))
	defer cancel()
	var g errgroup.Group
	g.SetLimit(server.MaxRestoring)
	for of, caller := range subscribed {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			defer safe.Recover(ss.logger, "ending a subscription", nil)
			_, err := ss.calls.chain(ctx, &Request{
				Server: of.Name(), Login: of.Caller(), Client: client, Caller: caller, Proxied: true,
				Method: "resources/unsubscribe", Params: jsonrpc.Set(nil, "uri", []byte(jsonrpc.StringID(of.URI))),
				Hooks: Hooks{Gone: func() bool { return true }},
			})
			if err != nil {
				ss.logger.Debug("cannot unsubscribe", "server", of.Name(), "error", err)
			}
			return nil // continue with the others
		})
	}
	_ = g.Wait() // always nil
}

// Initialized returns a server's raw result of initialize in the client's session, connecting if necessary.
func (ss *Sessions) Initialized(ctx context.Context, name, client string) (answer []byte, err error) {
	err = ss.servers.use(name, func(s *server.Server) error {
		session, err := s.Connection(client).ConnectUnlessDown(ctx)
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
	if s := ss.servers.named(name); s != nil {
		if own := s.Own.Session(); own != nil {
			return own.Initialized, nil
		}
	}
	return nil, err
}

// Notify relays a client's notification to a server. Shared sessions ignore notifications/initialized, which was sent
// when they were opened.
func (ss *Sessions) Notify(ctx context.Context, name, client, method string, params []byte) error {
	return ss.servers.use(name, func(s *server.Server) error {
		if method == "notifications/initialized" {
			if ss.clients.SetInitialized(client); client == "" || !s.Config.PerClient() {
				return nil
			}
		}
		c := s.Connection(client)
		for again := false; ; again = true {
			session, err := c.ConnectUnlessDown(ctx)
			if err != nil {
				return err
			}
			err = session.Notify(ctx, method, params)
			var f *link.Failure
			if again || !errors.As(err, &f) || !f.Lost || f.MaybeDelivered {
				return err
			}
		}
	})
}

// List returns the raw items of a list in the client's session, all pages. They are nil if the server does not know
// the method. Tools hidden by the server's filter are left out. Equal lists are the same slice.
func (ss *Sessions) List(ctx context.Context, name, client, method string) ([]json.RawMessage, error) {
	var items []json.RawMessage
	err := ss.servers.use(name, func(s *server.Server) error {
		l, err := s.Connection(client).Lists.Get(ctx, method, server.ForClient)
		if err == nil {
			items = l.Items
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
	c := s.Existing(client)
	if c == nil {
		return nil, false
	}
	l, ok := c.Lists.Cached(method, server.ForClient)
	if !ok {
		return nil, false
	}
	return l.Items, true
}

// Remembered returns what a server listed last, in an earlier process, while it starts; else ok is false. It is meant
// for a client's list alone. OnReturn is called if the real list is another one.
func (ss *Sessions) Remembered(name, method string) (items []json.RawMessage, ok bool) {
	if s := ss.servers.enabled(name); s != nil {
		return s.Memory.List(method)
	}
	return nil, false
}

// LeftOut logs that a client was answered without a server that should have contributed.
func (ss *Sessions) LeftOut(name, method string, err error) {
	if s := ss.servers.named(name); s != nil {
		s.LeftOut(method, err)
	}
}

// Shared reports whether clients share one session with the server.
func (ss *Sessions) Shared(name string) bool {
	s := ss.servers.named(name)
	return s != nil && !s.Config.PerClient()
}

// PerCaller reports whether callers log in to the server themselves.
func (ss *Sessions) PerCaller(name string) bool {
	s := ss.servers.named(name)
	return s != nil && s.Config.PerCaller()
}

// Own reports whether a client has, or will get, its own session with the server.
func (ss *Sessions) Own(name, client string) bool {
	s := ss.servers.named(name)
	if s == nil || !s.Config.PerClient() {
		return false
	}
	params, _ := ss.clients.Initialize(client)
	return params != nil
}

// Filters reports whether the configuration may hide some of the server's tools.
func (ss *Sessions) Filters(name string) bool {
	s := ss.servers.named(name)
	return s != nil && len(s.Config.Tools.Allow)+len(s.Config.Tools.Deny) > 0
}

// Quarantines reports whether changed tools of the server are left out of its lists.
func (ss *Sessions) Quarantines(name string) bool {
	s := ss.servers.named(name)
	return s != nil && s.Pins.Enforce()
}

// Subscribers returns the clients subscribed, on the router's own session, to a resource of a server or to one that
// contains it, because servers may announce changes of parts.
func (ss *Sessions) Subscribers(name, uri string) []string {
	s := ss.servers.named(name)
	if s == nil {
		return nil
	}
	return ss.clients.Subscribers(server.Resource{Server: s.Key(), URI: uri}, s.Config.PerClient())
}

// CheckParamHeaders compares the headers of a client's call with the arguments that they repeat, using the tool's
// last listed definition. It returns nil if they agree. A definition with an invalid header is an error, too.
func (ss *Sessions) CheckParamHeaders(name, client, tool string, h http.Header, params []byte) *jsonrpc.Error {
	s := ss.servers.named(name)
	if s == nil {
		return nil
	}
	t := s.Connection(client).Lists.Tool(tool)
	if fault := t.HeaderFault(); fault != nil {
		return Failed(catalog.Quarantine(name, tool, fault.Error()), true)
	}
	return t.CheckParamHeaders(h, params)
}

// Member returns the member of a list result that holds the items; empty for other methods.
func Member(method string) string { return server.Member(method) }
