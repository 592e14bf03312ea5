package proxy

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

const (
	maxListened = 1000 // resources of one subscriptions/listen
	subscribing = 16   // concurrent requests that subscribe for it
)

// listener is a subscriptions/listen request of 2026-07-28. It receives what the router's own sessions with servers
// receive, because its client has no session.
type listener struct {
	x *edge.Exchange

	mu      sync.Mutex
	methods []string // of the notifications to send; nil until the request is acknowledged
}

// send sends a notification if the client has asked for it, with the id of the request.
func (l *listener) send(message []byte) {
	method := jsonrpc.Text(jsonrpc.Get(message, "method"))
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.methods, method) {
		l.x.Notify(edge.Subscribed(l.x, method, jsonrpc.Get(message, "params")))
	}
}

// acknowledge sends the accepted filter, which must precede all other notifications. It reports false if the caller's
// memory limit forbids that.
func (l *listener) acknowledge(filter []byte, methods []string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !edge.Acknowledge(l.x, filter) {
		return false
	}
	l.methods = methods
	return true
}

// listening serves subscriptions/listen on a surface.
type listening struct{ *Surface }

// serve serves a subscriptions/listen request until the client ends it or the router stops.
func (s listening) serve(ctx context.Context, x *edge.Exchange) {
	if !x.Version.AtLeast(protocol.V20260728) {
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + x.Message.Method})
		return
	}
	asked := jsonrpc.Get(x.Message.Params, "notifications")
	uris, problem := listened(asked)
	if problem != "" {
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: " + problem})
		return
	}
	tasks, refusal := edge.ListenedTasks(x)
	if refusal != nil {
		x.Fail(refusal)
		return
	}
	answer, err := s.introduce(ctx, x)
	if err != nil {
		s.p.opts.Fail(x, err)
		return
	}
	if !edge.OpenStream(x) {
		return
	}
	c := newClient("listen "+strconv.FormatInt(s.p.anonymous.Add(1), 10), s.Surface, x.Caller)
	c.listener = &listener{x: x}
	s.p.mu.Lock()
	s.p.clients[c.session] = c
	s.p.mu.Unlock()
	defer s.p.leave(c.session)
	filter, methods := []byte("{}"), []string{}
	for _, of := range protocol.Announcements {
		value := jsonrpc.Get(asked, of.Member)
		if string(jsonrpc.Get(answer, "capabilities", of.Kind, of.Capability)) != "true" || value == nil {
			continue
		}
		if of == protocol.ResourceUpdates {
			value, _ = json.Marshal(s.subscribe(ctx, x, c.session, uris)) // strings always marshal
		} else if string(value) != "true" {
			continue
		}
		filter, methods = jsonrpc.Set(filter, of.Member, value), append(methods, of.Method)
	}
	heard := s.listenTasks(ctx, x, tasks)
	defer heard.end()
	if len(heard.accepted) > 0 {
		value, _ := json.Marshal(heard.accepted) // strings always marshal
		filter = jsonrpc.Set(filter, protocol.MemberTasks, value)
	}
	x.ReleaseWaiting() // later messages need not wait for it
	if !c.listener.acknowledge(filter, methods) {
		s.p.opts.Fail(x, &downstream.Failure{Reason: reason.Overloaded,
			Message: "the caller holds too many bytes; read the pending responses"})
		return
	}
	heard.acknowledged()
	edge.Listen(heard.ctx, x)
	edge.Listened(x)
}

// listened returns the URIs of a filter, or what is wrong with the filter.
func listened(filter []byte) (uris []string, problem string) {
	if len(filter) == 0 || filter[0] != '{' {
		return nil, "notifications must be an object"
	}
	for _, l := range protocol.Announcements {
		value := jsonrpc.Get(filter, l.Member)
		switch {
		case value == nil:
		case l != protocol.ResourceUpdates:
			if v := string(value); v != "true" && v != "false" {
				return nil, l.Member + " must be true or false"
			}
		case value[0] != '[':
			return nil, l.Member + " must be a list of URIs"
		default:
			for _, uri := range jsonrpc.Elements(value) {
				if len(uri) == 0 || uri[0] != '"' {
					return nil, l.Member + " must be a list of URIs"
				}
				uris = append(uris, jsonrpc.Text(uri))
			}
		}
	}
	if len(uris) > maxListened {
		return nil, "resourceSubscriptions must have at most " + strconv.Itoa(maxListened) + " URIs"
	}
	return uris, ""
}

// subscribe subscribes a listener to resources and returns the URIs of those that their servers accept in time.
func (s listening) subscribe(ctx context.Context, x *edge.Exchange, listener string, uris []string) []string {
	ctx, cancel := context.WithTimeout(ctx, s.p.opts.Config.ListDeadline)
	defer cancel()
	servers := s.reach(x)
	accepted := make([]bool, len(uris))
	var warned atomic.Bool
	var g errgroup.Group
	g.SetLimit(subscribing)
	for i, uri := range uris {
		server, own, ok := s.only, uri, true
		if server == "" {
			server, own, ok = s.names().splitURI(uri)
		}
		if !ok {
			continue
		}
		r := &downstream.Request{
			Server: server, Method: "resources/subscribe",
			Params: jsonrpc.Set(nil, "uri", []byte(jsonrpc.StringID(own))), Visible: x.Visible,
			Client: listener, Caller: x.Caller.ID, Login: x.Caller.Login, Proxied: true, Provenance: provenance(s.Surface, x),
			Hooks: downstream.Hooks{Hold: x.Hold, Gone: func() bool { return true }}, // nobody is asked
		}
		if !slices.Contains(servers, server) {
			s.p.servers.Refused(ctx, r, &downstream.UnknownError{What: "server", Name: server})
			continue
		}
		g.Go(func() error {
			defer safe.Recover(s.p.log, "subscribing", nil)
			reply, err := s.p.servers.Call(ctx, r)
			if accepted[i] = err == nil && reply.Err == nil; !accepted[i] {
				level := slog.LevelDebug
				if !warned.Swap(true) { // one line for a request, whatever its length
					level = slog.LevelWarn
				}
				s.p.log.Log(ctx, level, "cannot subscribe to a resource", "server", server, "uri", own, "error", err,
					"answer", jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
			}
			return nil // continue with the others
		})
	}
	_ = g.Wait() // always nil
	kept := []string{}
	for i, uri := range uris {
		if accepted[i] {
			kept = append(kept, uri)
		}
	}
	return kept
}
