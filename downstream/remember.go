package downstream

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

const (
	restoring = 16          // requests at once when a session is asked for what was asked of others
	farewell  = time.Second // for the subscriptions of a client that has left
)

// remember keeps what clients ask for once for all time. Of what several of them want on a session that they
// share the server hears once.
func (m *Manager) remember(next caller) caller {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		switch {
		case r.Method == "resources/unsubscribe":
			return m.unsubscribe(ctx, r, next)
		case !r.Proxied: // whoever asks has no session to hear it on
		case r.Method == "resources/subscribe":
			return m.subscribe(ctx, r, next)
		case r.Method == "logging/setLevel":
			undo := m.standing.setLevel(party{r.Server, r.Client}, r.Params)
			return kept(ctx, r, next, undo)
		}
		return next(ctx, r)
	}
}

func (m *Manager) subscribe(ctx context.Context, r *Request, next caller) (link.Reply, error) {
	of, shared := r.resource(), !r.server.perClient()
	if shared {
		end, err := m.standing.begin(ctx, of)
		if err != nil {
			return link.Reply{}, err
		}
		defer end()
	}
	undo, err := m.standing.subscribe(of, r.Client, shared, r.Params)
	if err != nil {
		return link.Reply{}, err
	}
	return kept(ctx, r, next, undo)
}

func (m *Manager) unsubscribe(ctx context.Context, r *Request, next caller) (link.Reply, error) {
	of, shared := r.resource(), !r.server.perClient()
	if shared {
		end, err := m.standing.begin(ctx, of)
		if err != nil {
			return link.Reply{}, err
		}
		defer end()
	}
	if others := m.standing.unsubscribe(of, r.Client); shared && others > 0 {
		return link.Reply{Result: []byte("{}")}, nil
	}
	return next(ctx, r)
}

// kept makes a call whose effect is to last.
func kept(ctx context.Context, r *Request, next caller, undo func()) (link.Reply, error) {
	reply, err := next(ctx, r)
	if err != nil || reply.Err != nil {
		undo()
	} else {
		r.server.slot(r.session()).keep()
	}
	return reply, err
}

// Subscribers returns the clients that watch a resource of a server, or what it is a part of.
func (m *Manager) Subscribers(server, uri string) []string {
	return m.standing.subscribers(server, uri)
}

// forget drops what a client that has left asked for. Servers whose sessions it shared hear of it.
func (m *Manager) forget(client string) {
	ctx, cancel := context.WithTimeoutCause(m.ctx, farewell, errors.New("its client has left"))
	defer cancel()
	for _, of := range m.standing.resources(client) {
		if !m.Shared(of.server) || ctx.Err() != nil {
			continue
		}
		_, err := m.Call(ctx, &Request{
			Server: of.server, Method: "resources/unsubscribe", Params: jsonrpc.Set(nil, "uri", []byte(jsonrpc.StringID(of.uri))),
			Client: client, Proxied: true,
		})
		if err != nil {
			m.opts.Logger.Debug("cannot unsubscribe", "server", of.server, "error", err)
		}
	}
	m.standing.forget(client)
}

// resume opens the sessions in which a server that is new is to be asked for what was asked of another of its
// name. The router's own is opened anyway.
func (m *Manager) resume(s *server) {
	for _, client := range m.standing.of(s.config.Name) {
		s.slot(client).keep()
	}
}

// restore asks a new session for what was asked of those before it.
func (sl *slot) restore(ctx context.Context, session *link.Session) {
	ctx, cancel := context.WithTimeout(ctx, sl.s.deadline)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(restoring)
	for _, call := range sl.s.standing.calls(sl.s.config.Name, sl.client, !sl.s.perClient()) {
		g.Go(func() error {
			reply, err := session.Call(ctx, call)
			if err == nil && reply.Err == nil {
				return nil
			}
			sl.s.logger.Warn("cannot renew what a session was asked for", "server", sl.s.config.Name, "method", call.Method, "error", err,
				"answer", jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
			return nil // the others may fare better
		})
	}
	_ = g.Wait() // it has no error
}
