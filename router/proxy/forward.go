package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// forward relays a request to a server and the response back. tool is the tool's own name for tools/call and for
// requests about its tasks, else empty.
func (s *Surface) forward(ctx context.Context, x *edge.Exchange, server, tool string, params []byte) {
	s.p.inOrder(ctx, x.Session, x.Order, server)
	r := &downstream.Request{
		Server: server, Tool: tool, Method: x.Message.Method, Params: params, Provenance: provenance(s, x),
		Visible: x.Visible, Client: s.p.clientOf(x), Caller: x.Caller.ID, Login: x.Caller.Login, Proxied: x.Session != "",
		Modern: x.Version.AtLeast(protocol.V20260728),
		Hooks: downstream.Hooks{
			Gone: x.Gone, Yield: edge.Yield(x), Sent: x.ReleaseWaiting, Streams: x.PreferStream,
			Reserve: x.Reserve, Hold: x.Hold, Header: x.Header,
			Logins:   edge.Logins(x, s.p.servers.Sessions().PerCaller(server)),
			Confirm:  s.p.opts.Confirm(x, server, tool, params),
			Progress: x.RelayProgress(),
			Notify: func(m jsonrpc.Message) bool { // true = handled, even if the client does not want it
				return !x.Wants(m) || x.Notify(s.rename(server, m))
			},
			Ask: func(ctx context.Context, q downstream.ServerRequest) (result, rpcErr []byte) {
				if refusal, refused := edge.Refused(x, q.Server, q.Method, q.Params, q.Input); refused {
					return nil, refusal
				}
				return s.p.relay(ctx, s, x.Session, q, func(params []byte) (jsonrpc.Message, error) {
					return x.Request(ctx, q.Method, params)
				})
			},
		},
	}
	if protocol.OfTasks(r.Method) {
		r.Tool, r.Task = "", tool
	}
	reply, err := s.p.servers.Call(ctx, r)
	if err == nil && attributes(s) {
		reply, err = downstream.Attributed(server, reply)
	}
	if err == nil && reply.Err == nil && x.Version.AtLeast(protocol.V20260728) && !s.peer {
		reply, err = ofServers{s}.renamed(x, server, tool, reply)
	}
	switch {
	case err != nil:
		s.p.opts.Fail(x, asNamed(x, err))
	case reply.Err != nil:
		x.FailRaw(reply.Err)
	case reply.Modern && downstream.NeedsInput(reply):
		x.ReplyWithNames(reply.Result, reply.Names) // the client answers and retries
	default:
		if tool != "" { // only results of tools have no other reader
			x.OnWritten(reply.Free)
		}
		result := s.names().rewriteURIs(server, x.Message.Method, reply.Result, reply.Names)
		if x.Version.AtLeast(protocol.V20260728) && (downstream.Member(x.Message.Method) != "" ||
			x.Message.Method == "resources/read") {
			result = cacheable(result)
		}
		x.ReplyWithNames(result, reply.Names)
	}
}

// asNamed returns an error about a forbidden resource, prompt or reference with the name that the client has sent.
func asNamed(x *edge.Exchange, err error) error {
	unknown, ok := errors.AsType[*downstream.UnknownError](err)
	if !ok {
		return err
	}
	own := *unknown
	switch params := x.Message.Params; unknown.What {
	case "resource":
		own.Name = jsonrpc.Text(jsonrpc.Get(params, "uri"))
	case "prompt":
		own.Name = jsonrpc.Text(jsonrpc.Get(params, "name"))
	case "reference":
		ref := jsonrpc.Get(params, "ref")
		own.Name = cmp.Or(jsonrpc.Text(jsonrpc.Get(ref, "name")), jsonrpc.Text(jsonrpc.Get(ref, "uri")))
	}
	return &own
}

// clientOf identifies the source of a request: the client session, or the request itself without a session. Clients
// without sessions may share an address and must be kept apart.
func (p *Proxy) clientOf(x *edge.Exchange) string {
	if x.Session != "" {
		return x.Session
	}
	return "request " + strconv.FormatInt(p.anonymous.Add(1), 10)
}

// unknown answers with an unknown-name error, and records the request.
func unknown(ctx context.Context, s *Surface, x *edge.Exchange, what, name string) {
	refused(ctx, s, x, name, &downstream.UnknownError{What: what, Name: name})
	x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Unknown " + what + ": " + name})
}

// refuse answers a request with an error, and records it. name is what it names, as the client knows it; empty for
// none.
func refuse(ctx context.Context, s *Surface, x *edge.Exchange, name string, err *jsonrpc.Error) {
	refused(ctx, s, x, name, err)
	x.Fail(err)
}

// refused records a request that is not forwarded, if it names a server or something of one.
func refused(ctx context.Context, s *Surface, x *edge.Exchange, name string, err error) {
	server, own, full := s.only, name, false
	if server == "" {
		if server, own, full = catalog.SplitFull(name); !full {
			server, own = "", name
		}
	}
	if server+own != "" {
		record(ctx, s, x, server, own, err)
	}
}

// record records a request that is not forwarded. own is the server's own name of what it names.
func record(ctx context.Context, s *Surface, x *edge.Exchange, server, own string, err error) {
	r := &downstream.Request{Server: server, Method: x.Message.Method, Params: x.Message.Params, Visible: x.Visible,
		Caller: x.Caller.ID, Login: x.Caller.Login, Provenance: provenance(s, x), Hooks: downstream.Hooks{Header: x.Header}}
	if r.Method == "tools/call" {
		r.Tool = own
	}
	s.p.servers.Refused(ctx, r, err)
}

// text reads a string from an object, the params or what is at path in them. If ok is false, the client has received an
// error.
func text(
	ctx context.Context, s *Surface, x *edge.Exchange, object []byte, path, name string,
) (value string, span jsonrpc.Span, ok bool) {
	span, ambiguous := jsonrpc.Find(object, name)
	raw := span.Of(object)
	if ambiguous || len(raw) == 0 || raw[0] != '"' {
		refuse(ctx, s, x, "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: "Invalid params: " + path + name + " must be a string and appear once"})
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
	name, span, ok := text(ctx, s, x, params, "", "name")
	if !ok {
		return
	}
	if s.searches() && name == searchTool {
		if !s.p.parts.limited(x, searchTool) {
			s.p.parts.Search.ServeSearch(ctx, x)
		}
		return
	}
	server, tool, err := finder{s}.tool(ctx, x, name)
	switch {
	case err != nil:
		refused(ctx, s, x, name, err)
		s.p.opts.Fail(x, err)
	case server == "":
		unknown(ctx, s, x, "tool", name)
	case s.mismatched(ctx, x, server, tool):
	case !s.peer && s.p.parts.limited(x, catalog.FullName(server, tool)):
		record(ctx, s, x, server, tool, downstream.ErrRateLimited)
	case tool == name:
		s.forward(ctx, x, server, tool, params)
	default:
		s.forward(ctx, x, server, tool, with(params, span, tool))
	}
}

// mismatched compares the headers of a modern client's call with its arguments. If it returns true, the client has
// received an error.
func (s *Surface) mismatched(ctx context.Context, x *edge.Exchange, server, tool string) bool {
	if !x.Version.AtLeast(protocol.V20260728) || x.Header == nil {
		return false
	}
	err := serversOf(s, x).Sessions().CheckParamHeaders(server, x.Session, tool, x.Header, x.Message.Params)
	if err != nil {
		record(ctx, s, x, server, tool, err)
		x.Fail(err)
	}
	return err != nil
}

// limited counts a call of a tool. If it returns true, the client has received an error.
func (p *Parts) limited(x *edge.Exchange, tool string) bool {
	return p.Limited != nil && p.Limited(x, tool)
}

func (s *Surface) getPrompt(ctx context.Context, x *edge.Exchange) {
	params := x.Message.Params
	name, span, ok := text(ctx, s, x, params, "", "name")
	if !ok {
		return
	}
	if s.only != "" {
		s.forward(ctx, x, s.only, "", params)
		return
	}
	server, own, ok := finder{s}.prompt(ctx, x, name)
	if !ok {
		unknown(ctx, s, x, "prompt", name)
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
	if ambiguous {
		ref = nil
	}
	key := "name"
	if jsonrpc.Text(jsonrpc.Get(ref, "type")) == "ref/resource" {
		key = "uri"
	}
	name, at, ok := text(ctx, s, x, ref, "ref.", key)
	if !ok {
		return
	}
	var server, own string
	if key == "uri" {
		server, own, ok = s.names().splitURI(name)
		ok = ok && slices.Contains(s.reach(x), server)
	} else {
		server, own, ok = finder{s}.prompt(ctx, x, name)
	}
	if !ok {
		unknown(ctx, s, x, "reference", name)
		return
	}
	s.forward(ctx, x, server, "", with(params, jsonrpc.At(params, at.Of(ref)), own))
}

// resource serves the requests that name a resource.
func (s *Surface) resource(ctx context.Context, x *edge.Exchange) {
	params := x.Message.Params
	uri, span, ok := text(ctx, s, x, params, "", "uri")
	if !ok {
		return
	}
	if x.Session == "" && x.Message.Method != "resources/read" {
		refuse(ctx, s, x, uri, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: x.Message.Method +
			" needs a session: send initialize first, then its Mcp-Session-Id with every request"})
		return
	}
	server := s.only
	if server == "" {
		var own string
		if server, own, ok = s.names().splitURI(uri); !ok || !slices.Contains(s.reach(x), server) {
			unknown(ctx, s, x, "resource", uri)
			return
		}
		params = with(params, span, own)
	}
	s.forward(ctx, x, server, "", params)
}

// finder resolves the names on a surface.
type finder struct{ *Surface }

// tool returns the server and the tool's own name; the server is empty if the name is unknown. The order is: a
// listed full name, an alias, a full name confirmed by its server, an alias in freshly fetched lists.
func (s finder) tool(ctx context.Context, x *edge.Exchange, name string) (server, tool string, err error) {
	began := time.Now()
	if err := s.awaitStart(ctx, x, name); err != nil {
		return "", "", err
	}
	if s.only != "" {
		known, err := serversOf(s.Surface, x).Has(ctx, s.only, x.Session, name, x.Visible)
		if err != nil || !known {
			return "", "", err
		}
		return s.only, name, nil
	}
	server, tool, full := catalog.SplitFull(name)
	if !full || !serversOf(s.Surface, x).Listed(server, x.Session, tool) { // a tool's own name comes before an alias
		server, tool, err := s.alias(ctx, x, "tools/list", name, time.Time{})
		if server != "" {
			return server, tool, err
		}
	}
	if full {
		known, err := serversOf(s.Surface, x).Has(ctx, server, x.Session, tool, x.Visible)
		if known || err != nil {
			return server, tool, err
		}
	}
	return s.alias(ctx, x, "tools/list", name, began)
}

// awaitStart waits for the first connection of a server that has the tool of a name, which the client may know from an
// earlier process. It does not wait where clients have sessions of their own. The error is that of a server.
func (s finder) awaitStart(ctx context.Context, x *edge.Exchange, name string) error {
	var owners []string
	for _, server := range s.reach(x) {
		may := s.only != "" || strings.HasPrefix(name, catalog.FullName(server, "")) || catalog.MayBeAlias(name, server)
		if may && serversOf(s.Surface, x).Sessions().Shared(server) {
			owners = append(owners, server)
		}
	}
	_, err := serversOf(s.Surface, x).AwaitStart(ctx, owners...)
	return err
}

// alias finds an aliased tool or prompt at the servers that may have it. If it is missing, lists older than since
// are fetched again; the zero time fetches none.
func (s finder) alias(
	ctx context.Context, x *edge.Exchange, method, alias string, since time.Time,
) (server, own string, err error) {
	for _, server := range s.reach(x) {
		if !catalog.MayBeAlias(alias, server) || !s.p.servers.Owns(server, alias) {
			continue
		}
		match := func(item json.RawMessage) bool {
			own := jsonrpc.Text(jsonrpc.Get(item, "name"))
			return own != "" && s.names().name(server, own) == alias && permits(x, method)(server, own)
		}
		item, ok, failed := serversOf(s.Surface, x).Find(ctx, server, x.Session, method, since, match)
		switch {
		case ok:
			return server, jsonrpc.Text(jsonrpc.Get(item, "name")), nil
		case failed != nil && err == nil:
			err = failed
		}
	}
	return "", "", err
}

// prompt returns the server and the prompt's own name. A name that is not an alias goes to the server in its
// prefix, which knows its prompts.
func (s finder) prompt(ctx context.Context, x *edge.Exchange, name string) (server, own string, ok bool) {
	full, rest, ok := catalog.SplitFull(name)
	ok = ok && slices.Contains(s.reach(x), full)
	for _, since := range []time.Time{{}, time.Now()} {
		server, own, err := s.alias(ctx, x, "prompts/list", name, since)
		switch {
		case err == nil && server != "":
			return server, own, true
		case ok && !catalog.MayBeAlias(name, full):
			return full, rest, true
		}
	}
	return full, rest, ok
}
