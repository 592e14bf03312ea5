package proxy

import (
	"context"
	"slices"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
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
	server, tool, err := finder{s}.tool(ctx, x, name)
	switch {
	case err != nil:
		s.p.opts.Fail(x, err)
	case server == "":
		unknown(x, "tool", name)
	case s.mismatched(x, server, tool):
	case s.limited(x, catalog.FullName(server, tool)):
	case tool == name:
		s.forward(ctx, x, server, tool, params)
	default:
		s.forward(ctx, x, server, tool, with(params, place, tool))
	}
}

// mismatched compares the headers of a modern client's call with its arguments. If it returns true, the client has
// received an error.
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

// limited counts a call of a tool. If it returns true, the client has received an error.
func (s *Surface) limited(x *edge.Exchange, tool string) bool {
	return s.p.opts.Limited != nil && s.p.opts.Limited(x, tool)
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
	server, own, ok := finder{s}.prompt(ctx, x, name)
	if !ok {
		unknown(x, "prompt", name)
		return
	}
	s.forward(ctx, x, server, "", with(params, place, own))
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
			Message: "Invalid params: ref." + key + " must be a string and appear once"})
		return
	}
	name := jsonrpc.Text(raw)
	var server, own string
	var ok bool
	if key == "uri" {
		server, own, ok = s.names().splitURI(name)
		ok = ok && slices.Contains(s.reach(x), server)
	} else {
		server, own, ok = finder{s}.prompt(ctx, x, name)
	}
	if !ok {
		unknown(x, "reference", name)
		return
	}
	s.forward(ctx, x, server, "", with(params, jsonrpc.At(params, raw), own))
}
