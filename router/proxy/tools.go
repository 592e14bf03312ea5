package proxy

import (
	"context"
	"slices"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

func (s *Surface) callTool(ctx context.Context, x *edge.Exchange) {
	params := x.Message.Params
	name, place, ok := text(x, params, "name")
	if !ok {
		return
	}
	if s.searches() && name == searchTool {
		if !s.limited(x, searchTool) {
			s.p.opts.Search.ServeSearch(ctx, x)
		}
		return
	}
	server, tool, err := s.findTool(ctx, x, name)
	switch {
	case err != nil:
		s.p.opts.Fail(x, err)
	case server == "":
		unknown(x, "tool", name)
	case s.limited(x, downstream.FullName(server, tool)):
	case tool == name:
		s.forward(ctx, x, server, tool, params)
	default:
		s.forward(ctx, x, server, tool, with(params, place, tool))
	}
}

// limited counts a call of a tool; if it is true the client has been refused.
func (s *Surface) limited(x *edge.Exchange, tool string) bool {
	return s.p.opts.Limited != nil && s.p.opts.Limited(x, tool)
}

// findTool returns the server and the tool's own name; an empty server if there is none.
func (s *Surface) findTool(ctx context.Context, x *edge.Exchange, name string) (server, tool string, err error) {
	session := x.Session
	if s.only != "" {
		known, err := s.p.servers.Has(ctx, s.only, session, name, x.Caller.Filter())
		if err != nil || !known {
			return "", "", err
		}
		return s.only, name, nil
	}
	if server, tool, ok := downstream.SplitFull(name); ok {
		known, err := s.p.servers.Has(ctx, server, session, tool, x.Caller.Filter())
		if known || err != nil {
			return server, tool, err
		}
	}
	server, tool, err = s.findAlias(ctx, x, "tools/list", name)
	if see := x.Caller.Filter(); server != "" && see != nil && !see(server, tool) {
		return "", "", nil
	}
	return server, tool, err
}

// findAlias looks for what is listed under an alias, at the servers that it could be of.
func (s *Surface) findAlias(ctx context.Context, x *edge.Exchange, method, alias string) (server, own string, err error) {
	for _, server := range s.reach(x) {
		if !mayBeAlias(alias, server) {
			continue
		}
		items, failed := s.p.servers.List(ctx, server, x.Session, method)
		if failed != nil && err == nil {
			err = failed
		}
		for _, item := range items {
			if own := jsonrpc.Text(jsonrpc.Get(item, "name")); own != "" && s.names().name(server, own) == alias {
				return server, own, nil
			}
		}
	}
	return "", "", err
}

func (s *Surface) getPrompt(ctx context.Context, x *edge.Exchange) {
	params := x.Message.Params
	name, place, ok := text(x, params, "name")
	if !ok {
		return
	}
	if s.only != "" {
		s.forward(ctx, x, s.only, "", params)
		return
	}
	server, own, ok := s.findPrompt(ctx, x, name)
	if !ok {
		unknown(x, "prompt", name)
		return
	}
	s.forward(ctx, x, server, "", with(params, place, own))
}

func (s *Surface) findPrompt(ctx context.Context, x *edge.Exchange, name string) (server, own string, ok bool) {
	if server, own, err := s.findAlias(ctx, x, "prompts/list", name); err == nil && server != "" {
		return server, own, true
	}
	server, own, ok = downstream.SplitFull(name)
	return server, own, ok && slices.Contains(s.reach(x), server)
}

func (s *Surface) complete(ctx context.Context, x *edge.Exchange) {
	params := x.Message.Params
	if s.only != "" {
		s.forward(ctx, x, s.only, "", params)
		return
	}
	place, ambiguous := jsonrpc.Find(params, "ref")
	ref := place.Of(params)
	key := "name"
	if jsonrpc.Text(jsonrpc.Get(ref, "type")) == "ref/resource" {
		key = "uri"
	}
	at, twice := jsonrpc.Find(ref, key)
	raw := at.Of(ref)
	if ambiguous || twice || len(raw) == 0 || raw[0] != '"' {
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: ref." + key + " must stand once and be a string"})
		return
	}
	name := jsonrpc.Text(raw)
	var server, own string
	var ok bool
	if key == "uri" {
		server, own, ok = s.names().splitURI(name)
		ok = ok && slices.Contains(s.reach(x), server)
	} else {
		server, own, ok = s.findPrompt(ctx, x, name)
	}
	if !ok {
		unknown(x, "reference", name)
		return
	}
	s.forward(ctx, x, server, "", with(params, jsonrpc.At(params, raw), own))
}
