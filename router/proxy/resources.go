package proxy

import (
	"context"
	"errors"
	"slices"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// resource serves the requests that name a resource.
func (s *Surface) resource(ctx context.Context, x *edge.Exchange) {
	params := x.Message.Params
	uri, place, ok := text(x, params, "uri")
	if !ok {
		return
	}
	server, own := s.only, uri
	if s.only == "" {
		if server, own, ok = s.names().splitURI(uri); !ok || !slices.Contains(s.reach(x), server) {
			unknown(x, "resource", uri)
			return
		}
		params = with(params, place, own)
	}
	shared := s.p.servers.Shared(server) && x.Session != ""
	switch {
	case shared && x.Message.Method == "resources/subscribe":
		s.subscribe(ctx, x, watched{server, own}, params)
	case shared && x.Message.Method == "resources/unsubscribe":
		s.unsubscribe(ctx, x, watched{server, own}, params)
	default:
		s.forward(ctx, x, server, "", params)
	}
}

// subscribe passes on a subscription on a shared session.
func (s *Surface) subscribe(ctx context.Context, x *edge.Exchange, thing watched, params []byte) {
	end, err := s.p.watches.begin(ctx, thing)
	if err != nil {
		s.p.opts.Fail(x, err)
		return
	}
	defer end()
	// Before the server knows: its first update may follow its answer at once.
	added, full := s.p.watches.add(x.Session, thing)
	if full {
		s.p.opts.Fail(x, &downstream.Failure{Server: thing.server, Reason: link.ReasonOverloaded, Message: "there are too many subscriptions"})
		return
	}
	if !s.forward(ctx, x, thing.server, "", params) && added {
		s.p.watches.remove(x.Session, thing)
	}
}

// unsubscribe ends a subscription on a shared session. The server hears of it with the last.
func (s *Surface) unsubscribe(ctx context.Context, x *edge.Exchange, thing watched, params []byte) {
	end, err := s.p.watches.begin(ctx, thing)
	if err != nil {
		s.p.opts.Fail(x, err)
		return
	}
	defer end()
	if s.p.watches.remove(x.Session, thing) > 0 {
		x.Reply([]byte("{}"))
		return
	}
	s.forward(ctx, x, thing.server, "", params)
}

// unsubscribeAll ends the subscriptions of a session that is over.
func (p *Proxy) unsubscribeAll(session string) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), farewell, errors.New("its client has left"))
	defer cancel()
	for _, thing := range p.watches.things(session) {
		end, err := p.watches.begin(ctx, thing)
		others := p.watches.remove(session, thing)
		if err == nil {
			if others == 0 {
				_, err = p.servers.Call(ctx, &downstream.Request{
					Server: thing.server, Method: "resources/unsubscribe", Params: jsonrpc.Set(nil, "uri", []byte(jsonrpc.StringID(thing.uri))),
				})
			}
			end()
		}
		if err != nil {
			p.log.Debug("cannot unsubscribe", "server", thing.server, "error", err)
		}
	}
}
