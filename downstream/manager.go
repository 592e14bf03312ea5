// Package downstream sends requests to the downstream servers.
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
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"golang.org/x/time/rate"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/link/http1"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

// ProtocolVersion is what the router offers downstream servers in the handshake.
const ProtocolVersion = string(protocol.V20251125)

// Options of a Manager. Zero durations and counts take the documented defaults.
type Options struct {
	Servers       []ServerConfig
	Execution     ExecutionConfig
	Health        HealthConfig
	NameConflicts string
	NameLimit     int             // of names in lists of tools: longer ones get an alias; 0 = none
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
	clients   *clients
	refreshes *rate.Limiter

	snapshot atomic.Pointer[snapshot] // the last catalog
	building sync.Mutex               // one catalog after the other; guards writes of snapshot

	mu      sync.Mutex
	retired []*server // replaced, but with calls in flight

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
	m := &Manager{opts: opts, validator: opts.Validator, clients: newClients(), refreshes: rate.NewLimiter(1, refreshBurst)}
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
	m.chain = m.authorize(m.observe(m.limitTime(m.bridge(m.subscriptions(m.admit(m.retry(m.send)))))))
	return m
}

func (m *Manager) newServer(c ServerConfig) *server {
	s := newServer(c, &m.opts)
	s.clients = m.clients
	s.open, s.returned = m.open, func() { m.opts.OnReturn(c.Name) }
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
		m.wg.Go(func() {
			defer s.rescue("supervising it", nil)
			s.own.supervise(m.ctx, s.watch, s.rest)
		})
	}
}

// open connects a session for a slot.
func (m *Manager) open(ctx context.Context, sl *slot) (*link.Session, error) {
	c := sl.s.config
	target := link.Target{Env: c.Env, Dir: c.Cwd, URL: c.URL, Headers: c.Headers, SSE: c.Type == TransportSSE, Dial: m.opts.Embedded[c.Name]}
	if c.Command != "" {
		target.Command = append([]string{c.Command}, c.Args...)
	}
	params, initialized := m.introduction(sl.client)
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

// Configured reports whether there is a server of that name.
func (m *Manager) Configured(name string) bool { return m.server(name) != nil }

// Catalog returns the tools of all servers, asking those that were not listed since they changed, all at
// once. Servers that do not answer within their deadline are named in Missing.
func (m *Manager) Catalog(ctx context.Context) (*Catalog, error) {
	for {
		f := m.fleet.Load()
		if s := m.snapshot.Load(); s.fresh(f) {
			return s.catalog, nil
		}
		lists, failed := f.list(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if m.fleet.Load() == f {
			return m.catalogOf(f, lists, f.missing(lists, failed)), nil
		}
		// A new configuration: some of what was asked may not have answered for that reason.
	}
}

// list returns the list of tools of each server, or else the error why there is none in time.
func (f *fleet) list(ctx context.Context) (lists []*listing, failed []error) {
	lists, failed = make([]*listing, len(f.order)), make([]error, len(f.order))
	var wg sync.WaitGroup
	now := time.Now()
	for i, s := range f.order {
		if l := s.own.holding(); s.own.fresh(l, now) {
			lists[i] = l
			continue
		}
		wg.Go(func() {
			defer s.rescue("listing its tools", func(f *link.Failure) { failed[i] = f })
			switch l, err := s.own.list(ctx, "tools/list", true); {
			case err == nil:
				lists[i] = l
			case ctx.Err() == nil && !errors.Is(err, admission.ErrRetired):
				failed[i] = err
				s.leftOut("tools/list", err)
			}
		})
	}
	wg.Wait()
	return lists, failed
}

// missing returns the servers without a list, and why each has none.
func (f *fleet) missing(lists []*listing, failed []error) (missing []Missing) {
	for i, l := range lists {
		if l != nil {
			continue
		}
		lost := Missing{f.order[i].config.Name, link.ReasonUnavailable, "its tools cannot be listed"}
		failure := f.order[i].own.starting() // how long by now
		if failure != nil || errors.As(failed[i], &failure) {
			lost.Reason, lost.Message = failure.Reason, failure.Message
		} else if failed[i] != nil {
			lost.Message = failed[i].Error()
		}
		missing = append(missing, lost)
	}
	return missing
}

// snapshot is a catalog and what it was made of.
type snapshot struct {
	catalog *Catalog
	fleet   *fleet
	lists   []*listing
}

// fresh reports whether no server's list has changed, as far as its server would have said so.
func (s *snapshot) fresh(f *fleet) bool {
	if s == nil || s.fleet != f {
		return false
	}
	now := time.Now()
	for i, l := range s.lists {
		if !f.order[i].own.fresh(l, now) {
			return false
		}
	}
	return true
}

// catalogOf returns the catalog of the lists, or of later ones where another caller has them: the one before if they
// are the same. Only servers whose tools have changed are looked at.
func (m *Manager) catalogOf(f *fleet, lists []*listing, missing []Missing) *Catalog {
	m.building.Lock()
	defer m.building.Unlock()
	var former *Catalog
	if s := m.snapshot.Load(); s != nil && s.fleet == f {
		former = s.catalog
		for i, l := range lists {
			if last := s.lists[i]; l != nil && last != nil && last.turn > l.turn {
				lists[i] = last
			}
		}
	} else {
		former = newCatalog(f.configs(), m.opts.NameConflicts)
		former.nameLimit = m.opts.NameLimit
	}
	catalog := former.with(lists, missing)
	m.snapshot.Store(&snapshot{catalog, f, lists})
	for _, c := range catalog.conflicts {
		if !slices.ContainsFunc(former.conflicts, func(old Conflict) bool { return old.Tool == c.Tool && slices.Equal(old.Servers, c.Servers) }) {
			m.opts.Logger.Warn("tool quarantined", "tool", c.Tool, "server", c.Servers[len(c.Servers)-1], "error", c.Error())
		}
	}
	return catalog
}

func (f *fleet) configs() []ServerConfig {
	configs := make([]ServerConfig, len(f.order))
	for i, s := range f.order {
		configs[i] = s.config
	}
	return configs
}

// Listed reports whether a server had a tool when it was last listed.
func (m *Manager) Listed(server, client, tool string) bool {
	s := m.server(server)
	return s != nil && !s.config.Disabled && s.slot(client).tool(tool) != nil
}

// Has reports whether a server has a tool that the caller may use, in the session of a client if one is
// named. A tool that is missing from the last list is looked up at its server. Where it cannot be listed the answer
// is yes: the call itself will tell. The error is the cause of ctx or, for a tool that is quarantined, a *Failure.
func (m *Manager) Has(ctx context.Context, server, client, tool string, visible Visible) (bool, error) {
	s := m.server(server)
	if s == nil || s.config.Disabled || !s.config.Tools.allows(tool) || visible != nil && !visible(server, tool) {
		return false, nil
	}
	sl := s.slot(client)
	if sl.tool(tool) != nil {
		return true, nil
	}
	l, err := sl.look(ctx, "tools/list", time.Now(), func(l *listing) bool {
		_, useless := l.quarantined[tool]
		return useless || l.tool(tool) != nil
	})
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil || l.tool(tool) != nil:
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
	if l == nil {
		return nil, nil
	}
	t := l.tool(tool)
	if t == nil {
		return nil, nil
	}
	return m.validator.Validate(t.InputSchema, arguments), nil
}

// Conflicts lists every server's tools and returns the equal names that name_conflicts: error forbids.
func (m *Manager) Conflicts(ctx context.Context) ([]Conflict, error) {
	catalog, err := m.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Clone(catalog.conflicts), nil
}
