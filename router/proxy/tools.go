package proxy

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
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
	case s.mismatched(x, server, tool):
	case s.limited(x, downstream.FullName(server, tool)):
	case tool == name:
		s.forward(ctx, x, server, tool, params)
	default:
		s.forward(ctx, x, server, tool, with(params, place, tool))
	}
}

// mismatched compares the headers of a modern client's call with its arguments; if it is true the client has been
// refused.
func (s *Surface) mismatched(x *edge.Exchange, server, tool string) bool {
	if !x.Version.AtLeast(protocol.V20260728) || x.Header == nil {
		return false
	}
	err := s.p.servers.Sessions().CheckParamHeaders(server, x.Session, tool, x.Header, x.Message.Params)
	if err != nil {
		x.Fail(err)
	}
	return err != nil
}

// limited counts a call of a tool; if it is true the client has been refused.
func (s *Surface) limited(x *edge.Exchange, tool string) bool {
	return s.p.opts.Limited != nil && s.p.opts.Limited(x, tool)
}

// findTool returns the server and the tool's own name; an empty server if there is none. A listed full name comes
// first, then an alias, then a full name that the server has to be asked for, then an alias in lists that are
// fetched anew.
func (s *Surface) findTool(ctx context.Context, x *edge.Exchange, name string) (server, tool string, err error) {
	session, began := x.Session, time.Now()
	if s.only != "" {
		known, err := s.p.servers.Has(ctx, s.only, session, name, x.Visible)
		if err != nil || !known {
			return "", "", err
		}
		return s.only, name, nil
	}
	server, tool, full := downstream.SplitFull(name)
	if !full || !s.p.servers.Listed(server, session, tool) { // a tool's own name comes before an alias
		server, tool, err := s.findToolAlias(ctx, x, name, time.Time{})
		if server != "" {
			return server, tool, err
		}
	}
	if full {
		known, err := s.p.servers.Has(ctx, server, session, tool, x.Visible)
		if known || err != nil {
			return server, tool, err
		}
	}
	return s.findToolAlias(ctx, x, name, began)
}

func (s *Surface) findToolAlias(ctx context.Context, x *edge.Exchange, name string, since time.Time) (server,
	tool string, err error) {
	server, tool, err = s.findAlias(ctx, x, "tools/list", name, since)
	if server != "" && x.Visible != nil && !x.Visible(server, tool) {
		return "", "", nil
	}
	return server, tool, err
}

// findAlias looks for what is listed under an alias, at the servers that it could be of. Lists older than
// since are fetched again where it is missing; the zero time fetches none.
func (s *Surface) findAlias(
	ctx context.Context, x *edge.Exchange, method, alias string, since time.Time,
) (server, own string, err error) {
	for _, server := range s.reach(x) {
		if !downstream.MayBeAlias(alias, server) {
			continue
		}
		item, ok, failed := s.p.servers.Find(ctx, server, x.Session, method, since, func(item json.RawMessage) bool {
			own := jsonrpc.Text(jsonrpc.Get(item, "name"))
			return own != "" && s.names().name(server, own) == alias
		})
		switch {
		case ok:
			return server, jsonrpc.Text(jsonrpc.Get(item, "name")), nil
		case failed != nil && err == nil:
			err = failed
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

// findPrompt returns the server and the prompt's own name. What no alias stands for goes to the server that the
// name begins with, which knows its prompts.
func (s *Surface) findPrompt(ctx context.Context, x *edge.Exchange, name string) (server, own string, ok bool) {
	if server, own, err := s.findAlias(ctx, x, "prompts/list", name, time.Time{}); err == nil && server != "" {
		return server, own, true
	}
	server, own, ok = downstream.SplitFull(name)
	ok = ok && slices.Contains(s.reach(x), server)
	if ok && !downstream.MayBeAlias(name, server) || ok && s.hasPrompt(ctx, x, server, own) {
		return server, own, true
	}
	if server, own, err := s.findAlias(ctx, x, "prompts/list", name, time.Now()); err == nil && server != "" {
		return server, own, true
	}
	return server, own, ok
}

// hasPrompt reports whether a prompt is in the list of its server that is held.
func (s *Surface) hasPrompt(ctx context.Context, x *edge.Exchange, server, own string) bool {
	_, ok, _ := s.p.servers.Find(ctx, server, x.Session, "prompts/list", time.Time{}, func(item json.RawMessage) bool {
		return jsonrpc.Text(jsonrpc.Get(item, "name")) == own
	})
	return ok
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
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: "Invalid params: ref." + key + " must stand once and be a string"})
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
