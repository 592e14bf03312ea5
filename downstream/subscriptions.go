package downstream

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/safe"
)

const (
	restoring = 16          // requests at once that restore the subscriptions of a session, or end them
	farewell  = time.Second // for ending the subscriptions of a client that has left
)

// resource is a resource of a server.
type resource struct{ server, uri string }

// resource returns the resource that a request names.
func (r *Request) resource() resource {
	return resource{r.Server, jsonrpc.Text(jsonrpc.Get(r.Params, "uri"))}
}

// subscriptions keeps log levels and subscriptions, to replay them on reconnect. A server on a shared session
// hears of each resource once.
func (m *Manager) subscriptions(next caller) caller {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		switch {
		case r.Method == "resources/unsubscribe":
			return m.inTurn(ctx, r, next, m.unsubscribe)
		case !r.Proxied: // there is no session to keep it for
		case r.Method == "resources/subscribe":
			return m.inTurn(ctx, r, next, m.subscribe)
		case r.Method == "logging/setLevel":
			undo, err := m.clients.setLevel(r.Server, r.Client, r.Params)
			if err != nil {
				return link.Reply{}, err
			}
			return kept(ctx, r, next, undo)
		}
		return next(ctx, r)
	}
}

// inTurn makes a call about a resource. On a shared session, calls about the same one wait for each other.
func (m *Manager) inTurn(ctx context.Context, r *Request, next caller, call func(context.Context, *Request, caller) (link.Reply, error)) (link.Reply, error) {
	if !r.server.perClient() {
		end, err := m.clients.begin(ctx, r.resource())
		if err != nil {
			return link.Reply{}, err
		}
		defer end()
	}
	return call(ctx, r, next)
}

func (m *Manager) subscribe(ctx context.Context, r *Request, next caller) (link.Reply, error) {
	undo, err := m.clients.subscribe(r.resource(), r.Client, !r.server.perClient(), r.Params, r.Hold)
	if err != nil {
		return link.Reply{}, err
	}
	return kept(ctx, r, next, undo)
}

func (m *Manager) unsubscribe(ctx context.Context, r *Request, next caller) (link.Reply, error) {
	if others := m.clients.unsubscribe(r.resource(), r.Client); others > 0 && !r.server.perClient() {
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

// begin waits for the turn to talk about a resource; end gives it back.
func (cs *clients) begin(ctx context.Context, of resource) (end func(), err error) {
	cs.mu.Lock()
	w := cs.watch(of)
	w.users++
	cs.mu.Unlock()
	leave := func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		w.users--
		cs.release(of, w)
	}
	select {
	case w.turn <- struct{}{}:
		return func() { <-w.turn; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// interested returns the clients that have asked a server for something.
func (cs *clients) interested(server string) (ids []string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if in := cs.interest[server]; in != nil {
		for c := range in.clients {
			ids = append(ids, c.id)
		}
	}
	return ids
}

// replay returns the requests that restore a session: what its client has asked for or, on a shared session,
// what all have.
func (cs *clients) replay(server, id string, shared bool) (calls []*link.Call) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var newest logLevel
	subscribe := func(params []byte) {
		calls = append(calls, &link.Call{Method: "resources/subscribe", Params: params})
	}
	if !shared {
		if c := cs.byID[id]; c != nil {
			newest = c.record.Levels[server]
			for _, params := range c.record.Subscriptions[server] {
				subscribe(params)
			}
		}
	} else if in := cs.interest[server]; in != nil {
		for c := range in.clients {
			if l := c.record.Levels[server]; l.Turn > newest.Turn {
				newest = l
			}
		}
		for uri, w := range in.watches {
			for c := range w.clients {
				subscribe(c.record.Subscriptions[server][uri])
				break
			}
		}
	}
	if newest.Params != nil {
		calls = append(calls, &link.Call{Method: "logging/setLevel", Params: newest.Params})
	}
	return calls
}

// Subscribers returns the clients that are subscribed to a resource of a server, or to what it is a part of:
// servers may tell of something below what was subscribed to.
func (m *Manager) Subscribers(server, uri string) []string { return m.clients.subscribers(server, uri) }

func (cs *clients) subscribers(server, uri string) []string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	in := cs.interest[server]
	if in == nil {
		return nil
	}
	of := func(uri string) (ids []string) {
		if w := in.watches[uri]; w != nil {
			for c := range w.clients {
				ids = append(ids, c.id)
			}
		}
		return ids
	}
	out := of(uri)
	for end := len(uri); len(out) == 0 && end > 0; {
		end = strings.LastIndexAny(uri[:end], "/?#")
		if end < 0 {
			break
		}
		if out = of(uri[:end+1]); len(out) == 0 {
			out = of(uri[:end])
		}
	}
	return out
}

// endSubscriptions tells the servers whose sessions a client shared that it has left.
func (m *Manager) endSubscriptions(client string, of []resource) {
	ctx, cancel := context.WithTimeoutCause(m.ctx, farewell, errors.New("its client has left"))
	defer cancel()
	var g errgroup.Group
	g.SetLimit(restoring)
	for _, of := range of {
		if ctx.Err() != nil {
			break
		}
		if !m.Shared(of.server) {
			continue
		}
		g.Go(func() error {
			defer safe.Recover(m.opts.Logger, "ending a subscription", nil)
			_, err := m.Call(ctx, &Request{
				Server: of.server, Method: "resources/unsubscribe", Params: jsonrpc.Set(nil, "uri", []byte(jsonrpc.StringID(of.uri))),
				Client: client, Proxied: true,
			})
			if err != nil {
				m.opts.Logger.Debug("cannot unsubscribe", "server", of.server, "error", err)
			}
			return nil // the others may fare better
		})
	}
	_ = g.Wait() // it has no error
}

// resume opens the sessions with a new server that have something to restore from the server of the same name
// before it. The router's own is opened anyway.
func (m *Manager) resume(s *server) {
	for _, client := range m.clients.interested(s.config.Name) {
		s.slot(client).keep()
	}
}

// restore asks a new session for what was asked of those before it.
func (sl *slot) restore(ctx context.Context, session *link.Session) {
	ctx, cancel := context.WithTimeout(ctx, sl.s.deadline)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(restoring)
	for _, call := range sl.s.clients.replay(sl.s.config.Name, sl.client, !sl.s.perClient()) {
		g.Go(func() error {
			defer sl.s.rescue("restoring a session", nil)
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
