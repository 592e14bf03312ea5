package proxy

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// forward relays a request to a server and the response back. tool is the tool's own name for tools/call, else empty.
func (s *Surface) forward(ctx context.Context, x *edge.Exchange, server, tool string, params []byte) {
	if tool == "" && x.Visible != nil && !x.Visible(server, "") {
		s.p.opts.Fail(x, &downstream.UnknownError{What: "server", Name: server})
		return
	}
	s.p.inOrder(ctx, x.Session, x.Order, server)
	reply, err := s.p.servers.Call(ctx, &downstream.Request{
		Server: server, Tool: tool, Method: x.Message.Method, Params: params,
		Visible: x.Visible, Client: s.p.clientOf(x), Caller: x.Caller.ID, Proxied: x.Session != "",
		Modern: x.Version.AtLeast(protocol.V20260728),
		Hooks: downstream.Hooks{
			Gone: x.Gone, Sent: x.Sent, Streams: x.PreferStream, Reserve: x.Reserve, Hold: x.Hold,
			Header:   x.Header,
			Progress: x.RelayProgress(),
			Notify: func(m jsonrpc.Message) bool { // true = handled, even if the client does not want it
				return !x.Wants(m) || x.Notify(s.rename(server, m))
			},
			Ask: func(ctx context.Context, q downstream.ServerRequest) (result, rpcErr []byte) {
				if q.Input && !x.Client.Supports(q.Method) {
					return nil, nil
				}
				return s.p.relay(ctx, x.Session, server, q, func(params []byte) (jsonrpc.Message, error) {
					return x.Request(ctx, q.Method, params)
				})
			},
		},
	})
	switch {
	case err != nil:
		s.p.opts.Fail(x, err)
	case reply.Err != nil:
		x.FailRaw(reply.Err)
	case reply.Modern && downstream.NeedsInput(reply):
		x.Relay(reply.Result, reply.Names) // the client answers and retries
	default:
		if tool != "" { // only results of tools have no other reader
			x.Reuse(reply.Free)
		}
		result := s.names().rewriteURIs(server, x.Message.Method, reply.Result, reply.Names)
		if x.Version.AtLeast(protocol.V20260728) && (downstream.Member(x.Message.Method) != "" ||
			x.Message.Method == "resources/read") {
			result = cacheable(result)
		}
		x.Relay(result, reply.Names)
	}
}

// clientOf identifies the source of a request: the client session, or the request itself without a session. Clients
// without sessions may share an address and must be kept apart.
func (p *Proxy) clientOf(x *edge.Exchange) string {
	if x.Session != "" {
		return x.Session
	}
	return "request " + strconv.FormatInt(p.anonymous.Add(1), 10)
}

// unknown answers with an unknown-name error.
func unknown(x *edge.Exchange, what, name string) {
	x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Unknown " + what + ": " + name})
}

// text reads a string from params. If ok is false, the client has received an error.
func text(x *edge.Exchange, params []byte, name string) (value string, span jsonrpc.Span, ok bool) {
	span, ambiguous := jsonrpc.Find(params, name)
	raw := span.Of(params)
	if ambiguous || len(raw) == 0 || raw[0] != '"' {
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: "Invalid params: " + name + " must be a string and appear once"})
		return "", span, false
	}
	return jsonrpc.Text(raw), span, true
}

// with returns params with the value at span replaced.
func with(params []byte, span jsonrpc.Span, value string) []byte {
	return jsonrpc.Splice(params, jsonrpc.Edit{Span: span, With: []byte(jsonrpc.StringID(value))})
}

func (s *Surface) callTool(ctx context.Context, x *edge.Exchange) {
	params := x.Message.Params
	name, span, ok := text(x, params, "name")
	if !ok {
		return
	}
	if s.searches() && name == searchTool {
		if !s.limited(x, searchTool) {
			s.p.parts.Search.ServeSearch(ctx, x)
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
		s.forward(ctx, x, server, tool, with(params, span, tool))
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
	return s.p.parts.Limited != nil && s.p.parts.Limited(x, tool)
}

func (s *Surface) getPrompt(ctx context.Context, x *edge.Exchange) {
	params := x.Message.Params
	name, span, ok := text(x, params, "name")
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
	s.forward(ctx, x, server, "", with(params, span, own))
}

func (s *Surface) complete(ctx context.Context, x *edge.Exchange) {
	params := x.Message.Params
	if s.only != "" {
		s.forward(ctx, x, s.only, "", params)
		return
	}
	span, ambiguous := jsonrpc.Find(params, "ref")
	ref := span.Of(params)
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

// resource serves the requests that name a resource.
func (s *Surface) resource(ctx context.Context, x *edge.Exchange) {
	params := x.Message.Params
	uri, span, ok := text(x, params, "uri")
	if !ok {
		return
	}
	if x.Session == "" && x.Message.Method != "resources/read" {
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: x.Message.Method +
			" needs a session: send initialize first, then its Mcp-Session-Id with every request"})
		return
	}
	server := s.only
	if server == "" {
		var own string
		if server, own, ok = s.names().splitURI(uri); !ok || !slices.Contains(s.reach(x), server) {
			unknown(x, "resource", uri)
			return
		}
		params = with(params, span, own)
	}
	s.forward(ctx, x, server, "", params)
}

// finder resolves the names on a surface.
type finder struct{ s *Surface }

// tool returns the server and the tool's own name; the server is empty if the name is unknown. The order is: a listed
// full name, an alias, a full name confirmed by its server, an alias in freshly fetched lists.
func (f finder) tool(ctx context.Context, x *edge.Exchange, name string) (server, tool string, err error) {
	session, began := x.Session, time.Now()
	if f.s.only != "" {
		known, err := f.s.p.servers.Has(ctx, f.s.only, session, name, x.Visible)
		if err != nil || !known {
			return "", "", err
		}
		return f.s.only, name, nil
	}
	server, tool, full := catalog.SplitFull(name)
	if !full || !f.s.p.servers.Listed(server, session, tool) { // a tool's own name comes before an alias
		server, tool, err := f.toolAlias(ctx, x, name, time.Time{})
		if server != "" {
			return server, tool, err
		}
	}
	if full {
		known, err := f.s.p.servers.Has(ctx, server, session, tool, x.Visible)
		if known || err != nil {
			return server, tool, err
		}
	}
	return f.toolAlias(ctx, x, name, began)
}

func (f finder) toolAlias(ctx context.Context, x *edge.Exchange, name string, since time.Time) (server,
	tool string, err error) {
	server, tool, err = f.alias(ctx, x, "tools/list", name, since)
	if server != "" && x.Visible != nil && !x.Visible(server, tool) {
		return "", "", nil
	}
	return server, tool, err
}

// alias finds an aliased item at the servers that may have it. If it is missing, lists older than since are fetched
// again; the zero time fetches none.
func (f finder) alias(
	ctx context.Context, x *edge.Exchange, method, alias string, since time.Time,
) (server, own string, err error) {
	for _, server := range f.s.reach(x) {
		if !catalog.MayBeAlias(alias, server) {
			continue
		}
		item, ok, failed := f.s.p.servers.Find(ctx, server, x.Session, method, since, func(item json.RawMessage) bool {
			own := jsonrpc.Text(jsonrpc.Get(item, "name"))
			return own != "" && f.s.names().name(server, own) == alias
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

// prompt returns the server and the prompt's own name. A name that is not an alias goes to the server in its prefix,
// which knows its prompts.
func (f finder) prompt(ctx context.Context, x *edge.Exchange, name string) (server, own string, ok bool) {
	if server, own, err := f.alias(ctx, x, "prompts/list", name, time.Time{}); err == nil && server != "" {
		return server, own, true
	}
	server, own, ok = catalog.SplitFull(name)
	ok = ok && slices.Contains(f.s.reach(x), server)
	if ok && !catalog.MayBeAlias(name, server) || ok && f.hasPrompt(ctx, x, server, own) {
		return server, own, true
	}
	if server, own, err := f.alias(ctx, x, "prompts/list", name, time.Now()); err == nil && server != "" {
		return server, own, true
	}
	return server, own, ok
}

// hasPrompt reports whether the held list of a server contains a prompt.
func (f finder) hasPrompt(ctx context.Context, x *edge.Exchange, server, own string) bool {
	_, ok, _ := f.s.p.servers.Find(ctx, server, x.Session, "prompts/list", time.Time{}, func(item json.RawMessage) bool {
		return jsonrpc.Text(jsonrpc.Get(item, "name")) == own
	})
	return ok
}
