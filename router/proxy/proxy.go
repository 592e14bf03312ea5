// Package proxy serves all downstream servers as one transparent MCP server, or each of them alone. It changes names,
// ids and progress tokens and nothing else.
//
// A Proxy serves any number of surfaces and is safe for concurrent use. It keeps bounded state for each client
// session until Ended.
package proxy

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/lru"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// Options of a Proxy.
type Options struct {
	Config  Config
	Name    string // serverInfo of the surface of all servers
	Version string
	Fail    func(x *edge.Exchange, err error)
	Confirm func(x *edge.Exchange, server, tool string, params []byte) downstream.Confirm
	Logger  *slog.Logger
}

// Parts are what a Proxy uses. Servers and Clients are required.
type Parts struct {
	Servers *downstream.Manager
	Clients Clients
	Search  Search                                       // nil = search_above is off
	Limited func(x *edge.Exchange, names ...string) bool // counts a call; true = refused and answered; nil = no limit
}

// Search is search_available_tools, which joins the surface of all servers if search_above is set.
type Search interface {
	ServeSearch(ctx context.Context, x *edge.Exchange)
	SearchTool() []byte                // its raw definition
	Exposed(x *edge.Exchange) []string // full names that the caller's last search found
	Ended(session string)              // forgets what its searches found
	Restore(session string, state []byte)
}

// Clients sends messages to client sessions outside of any request.
type Clients interface {
	Send(session string, message []byte) bool
	Request(ctx context.Context, session, method string, params []byte) (jsonrpc.Message, error)
}

// Proxy is the shared state of all transparent surfaces.
type Proxy struct {
	opts    Options
	parts   Parts
	log     *slog.Logger
	servers *downstream.Manager
	merged  mergedLists
	names   atomic.Pointer[naming] // for the current servers

	requests  clientRequests
	returned  returned
	anonymous atomic.Int64 // clients without a session so far

	mu      sync.RWMutex
	clients map[string]*client // by client session, with the listeners
}

// New returns a Proxy. Attach must precede its use; servers can be made that send to it.
func New(o Options) *Proxy {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	p := &Proxy{opts: o, log: o.Logger, clients: map[string]*client{}}
	p.merged.lists = lru.New[mergedKey, mergedList](maxMerged, maxMergedBytes)
	return p
}

// Attach connects the Proxy with the other parts. It is called once, before the servers start and the surfaces serve.
func (p *Proxy) Attach(parts Parts) {
	p.parts, p.servers = parts, parts.Servers
	p.nameServers()
}

// serversOf returns the servers as the caller of an exchange has them.
func serversOf(s *Surface, x *edge.Exchange) *downstream.Manager {
	return downstream.As(s.p.servers, x.Caller.Login)
}

// Surface is one endpoint, for all servers or for one. It implements edge.Handler.
type Surface struct {
	p    *Proxy
	only string // the one server; empty for all
	peer bool   // the clients are other replicas, which have decided on what they forward
}

// All returns the surface of all servers as one.
func (p *Proxy) All() *Surface { return &Surface{p: p} }

// Single returns the surface of one server, which uses the server's own names.
func (p *Proxy) Single(server string) *Surface { return &Surface{p: p, only: server} }

// Peer returns the surface of one server for other replicas. They have applied access, limits and policy.
func (p *Proxy) Peer(server string) *Surface { return &Surface{p: p, only: server, peer: true} }

// names returns the naming of the surface.
func (s *Surface) names() *naming {
	if s.only != "" {
		return &ownNames
	}
	return s.p.names.Load()
}

// Ended implements edge.Handler.
func (s *Surface) Ended(session string) {
	s.p.leave(session)
	if s.p.parts.Search != nil {
		s.p.parts.Search.Ended(session)
	}
}

// Restore implements edge.Restorer.
func (s *Surface) Restore(session string, state []byte) {
	if s.p.parts.Search != nil {
		s.p.parts.Search.Restore(session, state)
	}
}

// Serve implements edge.Handler.
func (s *Surface) Serve(ctx context.Context, x *edge.Exchange) {
	if s.only != "" && len(s.reach(x)) == 0 {
		if x.Message.IsRequest() {
			unknown(ctx, s, x, "server", s.only)
		}
		return
	}
	if x.Session != "" {
		s.p.enter(x.Session, s, x.Caller)
	}
	if x.Message.IsNotification() {
		s.notify(ctx, x)
		return
	}
	switch method := x.Message.Method; method {
	case "initialize":
		s.initialize(ctx, x)
	case "server/discover":
		s.discover(ctx, x)
	case "ping":
		x.Reply([]byte("{}"))
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		lister{s}.serve(ctx, x)
	case "tools/call":
		s.callTool(ctx, x)
	case "prompts/get":
		s.getPrompt(ctx, x)
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		s.resource(ctx, x)
	case "completion/complete":
		s.complete(ctx, x)
	case "logging/setLevel":
		s.setLevel(ctx, x)
	case protocol.MethodListen:
		listening{s}.serve(ctx, x)
	default:
		refusal := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + method}
		switch {
		case protocol.OfTasks(method) && x.Version.AtLeast(protocol.V20260728):
			ofServers{s}.serve(ctx, x)
			return
		case protocol.Imitates(method): // a lenient server could take it for that method
		case strings.HasPrefix(method, "tasks/") && !s.ownTasks(x):
			refusal.Message += "; tasks need a server with session: per_client, its own path, and a caller without lists of tools"
		case s.only != "":
			s.forward(ctx, x, s.only, "", x.Message.Params)
			return
		}
		refuse(ctx, s, x, "", refusal)
	}
}

// provenance returns what requests of a surface are decided on.
func provenance(s *Surface, x *edge.Exchange) downstream.Provenance {
	profile := "proxy"
	if s.only != "" {
		profile = "server:" + s.only
	}
	return downstream.Provenance{
		Rights: &x.Caller, Profile: cmp.Or(x.Caller.ScopeName(), profile), Surface: x.Surface,
		Decided: s.peer,
	}
}

// reach returns the servers of the surface that the caller may see.
func (s *Surface) reach(x *edge.Exchange) []string {
	servers := s.names().servers
	switch {
	case s.only == "":
	case s.p.servers.Configured(s.only):
		servers = []string{s.only}
	default:
		return nil
	}
	if x.Visible == nil {
		return servers
	}
	var out []string
	for _, name := range servers {
		if x.Visible(name, "") {
			out = append(out, name)
		}
	}
	return out
}

// mayAll reports whether the caller may use everything of a server.
func mayAll(x *edge.Exchange, server string) bool { return x.Visible == nil || x.Caller.MayAll(server) }

// ownTasks reports whether a client may use the tasks of the server. On a shared session it could read and cancel the
// tasks of other clients, and a task does not name its tool.
func (s *Surface) ownTasks(x *edge.Exchange) bool {
	return s.only != "" && mayAll(x, s.only) && x.Session != "" && !s.p.servers.Sessions().Filters(s.only) &&
		serversOf(s, x).Sessions().Own(s.only, x.Session)
}

// setLevel relays the level to every server that logs. It succeeds if any server accepts it.
func (s *Surface) setLevel(ctx context.Context, x *edge.Exchange) {
	if s.only != "" {
		s.forward(ctx, x, s.only, "", x.Message.Params)
		return
	}
	servers := s.reach(x)
	replies := make([]link.Reply, len(servers))
	failed := make([]error, len(servers))
	// Failures are handled below.
	_ = s.p.within(ctx, s.p.opts.Config.ListDeadline, x, servers, func(ctx context.Context, i int) error {
		hello, err := serversOf(s, x).Sessions().Initialized(ctx, servers[i], x.Session)
		if err == nil && jsonrpc.Get(hello, "capabilities", "logging") != nil {
			replies[i], err = s.p.servers.Call(ctx, &downstream.Request{
				Server: servers[i], Method: x.Message.Method, Params: x.Message.Params,
				Client: s.p.clientOf(x), Caller: x.Caller.ID, Login: x.Caller.Login, Proxied: x.Session != "",
				Visible: x.Visible, Provenance: provenance(s, x),
			})
		}
		failed[i] = failureOf(servers[i], err)
		return err
	})
	for _, reply := range replies {
		if reply.Result != nil {
			x.Reply(reply.Result)
			return
		}
	}
	for i, err := range failed {
		switch {
		case err != nil:
			s.p.opts.Fail(x, err)
			return
		case replies[i].Err != nil:
			x.FailRaw(replies[i].Err)
			return
		}
	}
	x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "No server supports logging/setLevel"})
}

// Ways to write resource URIs of a server on the proxy surface.
const (
	ResourcePrefix = "prefix" // server__uri
	ResourceScheme = "scheme" // server+uri
)

// Config controls the transparent surfaces.
type Config struct {
	SearchAbove   int           `yaml:"search_above"`   // 0 = never narrow the list
	ResourceNames string        `yaml:"resource_names"` // prefix or scheme
	NameLimit     int           `yaml:"name_limit"`     // longest listed name; 0 = off
	Timeout       time.Duration `yaml:"timeout"`        // idle limit of a forwarded request
	ListDeadline  time.Duration `yaml:"list_deadline"`  // for one server's part of a list
	Attribute     bool          `yaml:"attribute"`      // requests of servers get their names
}

// Default returns the documented defaults.
func Default() Config {
	return Config{ResourceNames: ResourcePrefix, NameLimit: 46, Timeout: 10 * time.Minute, ListDeadline: 5 * time.Second,
		Attribute: true}
}

// nameServers updates the names to the current servers. Disabled servers are left out.
func (p *Proxy) nameServers() {
	n := newNaming(p.opts.Config, p.servers.Enabled())
	p.names.Store(&n)
}

// ServersChanged applies the server changes of a new configuration and notifies the clients whose lists change.
func (p *Proxy) ServersChanged(c downstream.Changes) {
	p.nameServers()
	concerned := slices.Concat(c.Added, c.Removed, c.Changed)
	p.listsChanged(func(c *client) bool { return slices.ContainsFunc(concerned, c.concerns) })
}

// returnTime is the time in which servers that return are announced together.
const returnTime = time.Second

// returned are servers to announce.
type returned struct {
	mu      sync.Mutex
	servers []string
}

// Returned notifies the clients of a server whose lists may differ from those that they have, together with those of
// other servers that return shortly after, as at the start of the router.
func Returned(p *Proxy, server string) {
	r := &p.returned
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.servers = append(r.servers, server); len(r.servers) > 1 {
		return
	}
	time.AfterFunc(returnTime, func() {
		defer safe.Recover(p.log, "announcing servers", nil)
		r.mu.Lock()
		servers := r.servers
		r.servers = nil
		r.mu.Unlock()
		p.ServersChanged(downstream.Changes{Changed: servers})
	})
}

// ToolsChanged tells the clients that see a server that its listed tools have changed.
func (p *Proxy) ToolsChanged(server string) {
	for _, c := range p.all() {
		if c.concerns(server) {
			c.send(jsonrpc.Notification("notifications/tools/list_changed", nil))
		}
	}
}

// LoggedIn sends list_changed to the clients of a caller (auth.Caller.Login) who has logged in to a server.
func LoggedIn(p *Proxy, caller string) {
	p.listsChanged(func(c *client) bool { return c.user().Login == caller })
}

// RightsChanged sends list_changed to the clients of these callers (IDs), whose rights have changed.
func (p *Proxy) RightsChanged(callers []string) {
	p.listsChanged(func(c *client) bool { return slices.Contains(callers, c.user().ID) })
}

func (p *Proxy) listsChanged(concerned func(*client) bool) {
	for _, c := range p.all() {
		if !concerned(c) {
			continue
		}
		for _, kind := range []string{"tools", "prompts", "resources"} {
			c.send(jsonrpc.Notification("notifications/"+kind+"/list_changed", nil))
		}
	}
}
