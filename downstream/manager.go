// Package downstream runs what plans and clients ask of the downstream servers.
//
// A Manager owns the sessions with all servers. Manager.Call is the only way to a server: authorization,
// time limits, tracing and retries stand there once. All methods may be called from any goroutine. Start
// returns at once; a server that is down delays nobody. Apply replaces the configuration of the servers
// while calls are in flight. Stop waits for every goroutine and child process.
package downstream

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/link/http1"
	"github.com/agenticnexus/agenticnexus/planner/plan"
)

// ProtocolVersion is what the router offers downstream servers in the handshake.
const ProtocolVersion = "2025-11-25"

// Options of a Manager. Zero durations and counts take the documented defaults.
type Options struct {
	Servers       []ServerConfig
	Execution     ExecutionConfig
	Health        HealthConfig
	NameConflicts string
	ListDeadline  time.Duration   // for the lists of one server
	ProxyTimeout  time.Duration   // idle limit of calls that are no steps of a plan
	MaxMessage    int             // bytes of one message from a server
	Version       string          // ours, for the handshake
	Validator     *plan.Validator // nil makes one; sharing it shares compiled schemas
	Logger        *slog.Logger
	Tracer        trace.Tracer
	Observe       func(Observation)                                                                 // after each call; may be nil
	Embedded      map[string]DialFunc                                                               // servers that live in this process, by name
	OnMessage     func(Message)                                                                     // what servers say of their own accord; may be nil
	OnReturn      func(server string)                                                               // a server that lists had to do without can be reached again; must not block; may be nil
	OnRequest     func(ctx context.Context, server, client string, q Question) (result, err []byte) // asks a client that no call leads to, as an Asker; nil = nobody
}

// DialFunc connects to a server in this process.
type DialFunc func(ctx context.Context) (io.ReadWriteCloser, error)

// Observation is what metrics learn of a call.
type Observation struct {
	Server, Outcome string // outcome: ok, error, cancelled or a failure's reason
	Duration        time.Duration
	Attempts        int
}

// Manager owns the downstream servers.
type Manager struct {
	opts      Options
	fleet     atomic.Pointer[fleet]
	transport *http1.Transport
	chain     caller
	validator *plan.Validator
	standing  *standing

	mu        sync.Mutex
	catalog   *Catalog // made of lists
	conflicts []Conflict
	lists     []*listing
	listed    *fleet            // whose lists they are
	hellos    map[string]*hello // by client
	retired   []*server         // replaced, but with calls in flight

	applying sync.Mutex // one configuration after the other; guards the next two
	started  bool
	stopped  bool

	ctx    context.Context // ends with Stop
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// New makes a Manager. Names must be unique; the config loader sees to that.
func New(opts Options) *Manager {
	fillDefaults(&opts)
	m := &Manager{opts: opts, hellos: map[string]*hello{}, validator: opts.Validator, standing: newStanding()}
	if m.validator == nil {
		m.validator = plan.NewValidator()
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	// Without this many idle connections a busy router dials anew for every call.
	m.transport = http1.New(&http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 4096, IdleConnTimeout: 90 * time.Second,
		DialContext:        (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		DisableCompression: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
	})
	var order []*server
	for _, c := range opts.Servers {
		order = append(order, m.newServer(c))
	}
	m.fleet.Store(newFleet(order))
	m.chain = m.authorize(m.observe(m.limitTime(m.remember(m.admit(m.retry(m.send))))))
	return m
}

func (m *Manager) newServer(c ServerConfig) *server {
	s := newServer(c, &m.opts)
	s.standing = m.standing
	s.open, s.knows, s.returned = m.open, m.knows, func() { m.opts.OnReturn(c.Name) }
	return s
}

func fillDefaults(o *Options) {
	d, h := DefaultExecution(), DefaultHealth()
	orDuration := func(v *time.Duration, def time.Duration) {
		if *v <= 0 {
			*v = def
		}
	}
	orDuration(&o.Execution.ToolTimeout, d.ToolTimeout)
	orDuration(&o.Execution.ToolTimeoutMax, d.ToolTimeoutMax)
	orDuration(&o.Execution.RetryDelay, d.RetryDelay)
	orDuration(&o.Health.Interval, h.Interval)
	orDuration(&o.Health.Timeout, h.Timeout)
	orDuration(&o.ListDeadline, 5*time.Second)
	orDuration(&o.ProxyTimeout, 10*time.Minute)
	if o.Execution.MaxParallel <= 0 {
		o.Execution.MaxParallel = d.MaxParallel
	}
	if o.Execution.Attempts <= 0 {
		o.Execution.Attempts = d.Attempts
	}
	if o.Execution.ConfirmWrites == "" {
		o.Execution.ConfirmWrites = d.ConfirmWrites
	}
	if o.MaxMessage <= 0 {
		o.MaxMessage = 64 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Tracer == nil {
		o.Tracer = noop.NewTracerProvider().Tracer("")
	}
	if o.Observe == nil {
		o.Observe = func(Observation) {}
	}
	if o.OnMessage == nil {
		o.OnMessage = func(Message) {}
	}
	if o.OnReturn == nil {
		o.OnReturn = func(string) {}
	}
}

// Start begins to connect to every server, all at once, and to watch them. It does not wait.
func (m *Manager) Start() {
	m.applying.Lock()
	defer m.applying.Unlock()
	m.started = true
	for _, s := range m.fleet.Load().order {
		m.watch(s)
	}
}

// watch keeps the router's own session with a server alive.
func (m *Manager) watch(s *server) {
	if !s.config.Disabled {
		m.wg.Go(func() { s.own.supervise(m.ctx, s.watch, s.rest) })
	}
}

// open connects a session for a slot.
func (m *Manager) open(ctx context.Context, sl *slot) (*link.Session, error) {
	c := sl.s.config
	target := link.Target{Env: c.Env, Dir: c.Cwd, URL: c.URL, Headers: c.Headers, SSE: c.Type == TransportSSE, Dial: m.opts.Embedded[c.Name]}
	if c.Command != "" {
		target.Command = append([]string{c.Command}, c.Args...)
	}
	params, initialized := m.helloOf(sl.client)
	return link.Connect(ctx, link.Options{
		Server: c.Name, Target: target, Initialize: params, Handler: handler{m, sl, sl.opened.Add(1)},
		MaxMessage: m.opts.MaxMessage, HTTP: m.transport, Logger: m.opts.Logger, ClientDriven: !initialized,
	})
}

// Servers returns the names of the configured servers, in order.
func (m *Manager) Servers() []string {
	order := m.fleet.Load().order
	names := make([]string, len(order))
	for i, s := range order {
		names[i] = s.config.Name
	}
	return names
}

// Enabled returns the names of the servers that are not disabled, in order.
func (m *Manager) Enabled() []string {
	var names []string
	for _, s := range m.fleet.Load().order {
		if !s.config.Disabled {
			names = append(names, s.config.Name)
		}
	}
	return names
}

// quarantined returns the tools of the lists that cannot be used and that the configuration does not hide.
func (f *fleet) quarantined(lists []*listing) (out []*quarantinedTool) {
	for i, l := range lists {
		if l == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(l.quarantined)) {
			if c := f.order[i].config; c.Tools.allows(name) {
				out = append(out, &quarantinedTool{c.Name, name, l.quarantined[name]})
			}
		}
	}
	return out
}

// Configured reports whether there is a server of that name.
func (m *Manager) Configured(name string) bool { return m.server(name) != nil }

// Catalog returns the tools of all servers, asking those that were not listed since they changed, all at
// once. Servers that do not answer within their deadline are named in Missing.
func (m *Manager) Catalog(ctx context.Context) (*Catalog, error) {
	for {
		f := m.fleet.Load()
		lists := f.list(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if m.fleet.Load() == f {
			return m.catalogOf(f, lists), nil
		}
		// A new configuration: some of what was asked may not have answered for that reason.
	}
}

// list returns the list of tools of each server, nil where there is none in time.
func (f *fleet) list(ctx context.Context) []*listing {
	lists := make([]*listing, len(f.order))
	var wg sync.WaitGroup
	for i, s := range f.order {
		if l := s.own.latest("tools/list"); l != nil && s.own.fresh(l) {
			lists[i] = l
			continue
		}
		wg.Go(func() {
			switch l, err := s.own.list(ctx, "tools/list", true); {
			case err == nil:
				lists[i] = l
			case ctx.Err() == nil && !errors.Is(err, errRetired):
				s.leftOut("tools/list", err)
			}
		})
	}
	wg.Wait()
	return lists
}

// catalogOf returns the catalog of the lists, the one before if they are the same.
func (m *Manager) catalogOf(f *fleet, lists []*listing) *Catalog {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.catalog != nil && m.listed == f && slices.Equal(m.lists, lists) {
		return m.catalog
	}
	tools, missing := f.gather(lists)
	catalog, conflicts := newCatalog(tools, missing, m.opts.NameConflicts)
	catalog.quarantined = f.quarantined(lists)
	for _, c := range conflicts {
		for _, server := range c.Servers[1:] {
			catalog.quarantined = append(catalog.quarantined, &quarantinedTool{server, c.Tool, c.Error()})
		}
		m.opts.Logger.Warn("tool quarantined", "tool", c.Tool, "server", c.Servers[len(c.Servers)-1], "error", c.Error())
	}
	m.catalog, m.conflicts, m.lists, m.listed = catalog, conflicts, lists, f
	return catalog
}

func (f *fleet) gather(lists []*listing) (tools []Tool, missing []string) {
	for i, l := range lists {
		if l == nil {
			missing = append(missing, f.order[i].config.Name)
		} else {
			tools = append(tools, l.tools...)
		}
	}
	return tools, missing
}

// Has reports whether a server has a tool that the caller may use, in the session of a client if one is
// named, listing that one server if need be. Where it cannot be listed the answer is yes: the call itself
// will tell. The error is the cause of ctx or, for a tool that is quarantined, a *Failure.
func (m *Manager) Has(ctx context.Context, server, client, tool string, visible Visible) (bool, error) {
	s := m.server(server)
	if s == nil || s.config.Disabled || !s.config.Tools.allows(tool) || visible != nil && !visible(server, tool) {
		return false, nil
	}
	sl := s.slot(client)
	if sl.tool(tool) != nil {
		return true, nil
	}
	l, err := sl.list(ctx, "tools/list", client == "")
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil || l.byName[tool] != nil:
		return true, nil
	}
	if why, ok := l.quarantined[tool]; ok {
		return false, quarantined(server, tool, why)
	}
	return false, nil
}

// Validate checks arguments against the tool's inputSchema; nil if they fit or nothing is known.
func (m *Manager) Validate(ctx context.Context, server, tool string, arguments []byte) (*plan.Error, error) {
	if known, err := m.Has(ctx, server, "", tool, nil); err != nil || !known {
		return nil, err
	}
	s := m.server(server)
	if s == nil {
		return nil, nil
	}
	l := s.own.latest("tools/list")
	if l == nil || l.byName[tool] == nil {
		return nil, nil
	}
	return m.validator.Validate(l.byName[tool].InputSchema, arguments), nil
}

// Conflicts lists every server's tools and returns the equal names that name_conflicts: error forbids.
func (m *Manager) Conflicts(ctx context.Context) ([]Conflict, error) {
	if _, err := m.Catalog(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.conflicts), nil
}
