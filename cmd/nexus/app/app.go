// Package app is the composition root: it makes a router from a configuration, starts it and stops it.
//
// Several Apps may run in one process. [New] validates and wires everything without I/O on the network; [App.Connect],
// [App.Listen] and [App.ServeStdio] start it; [App.Reload] applies another configuration; [App.Stop] stops everything
// in reverse order and waits for every goroutine and child process.
package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app/logins"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/tape"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/audit"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/history"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/internal/telemetry"
	"github.com/agenticnexus/agenticnexus/internal/trust"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/planner/rules"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
	"github.com/agenticnexus/agenticnexus/router/proxy"
	"github.com/agenticnexus/agenticnexus/synth"
)

// Options of an App.
type Options struct {
	Config  config.Config
	Demo    bool // add the demo servers
	Version string
	Logger  *slog.Logger   // nil discards
	Level   *slog.LevelVar // of Logger; nil = Reload does not change it
	Mask    *redact.Masker // of Logger; the App tells it the secrets of the configuration
	Tape    *tape.Tape     // records or replays; nil does neither
	Cluster *Cluster       // of Join; nil = the App runs alone
	Folder  string         // of the configuration, for operators to change on the page; empty = they cannot
}

// App is a running router, or one that can be started.
type App struct {
	opts      Options
	log       *slog.Logger
	telemetry *telemetry.Telemetry
	meter     *meter
	servers   *downstream.Manager
	router    *router.Router
	frontend  *router.Frontend
	proxy     *proxy.Proxy
	edge      *edge.Edge
	serverSet *serverSet
	models    *models
	web       web
	page      page
	lifecycle lifecycle
	guards
}

// guards decide who may call, how often, and which tools, and record it.
type guards struct {
	keys   *auth.Keys
	rate   *limit.Rate
	audit  *audit.Log             // nil = none
	scopes map[string]*auth.Scope // of the profiles, by name
	pins   *pins.Store
	tokens oauth.Store // for servers

	inForce atomic.Pointer[config.Config] // the configuration; settings that need a restart are those of the start
}

// lifecycle makes sure that each stage of an App runs once.
type lifecycle struct {
	begin     sync.Once // of the servers
	begun     atomic.Bool
	end       sync.Once  // of everything
	stopped   error      // the result of Stop
	reloading sync.Mutex // held while configurations are applied, never while a disk or a network is waited for
}

// New makes an App. The error is about the configuration.
func New(ctx context.Context, opts Options) (*App, error) {
	a := &App{opts: opts, log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))}
	cfg := opts.Config
	if opts.Mask == nil {
		a.opts.Mask = &redact.Masker{}
	}
	a.opts.Mask.Set(cfg.Secrets())
	a.inForce.Store(&cfg)
	var err error
	if a.keys, err = auth.New(cfg.Auth, auth.Options{Logger: a.log}); err != nil {
		return nil, err
	}
	if a.scopes, err = scopesOf(cfg.Profiles); err != nil {
		return nil, err
	}
	trusted, err := auth.ParseProxies(cfg.TrustedProxies)
	if err != nil {
		return nil, err
	}
	if a.telemetry, err = telemetry.Setup(ctx, cfg.Telemetry, opts.Version, a.log, a.opts.Mask); err != nil {
		return nil, err
	}
	a.audit = audit.New(cfg.Audit, a.opts.Mask.Text, a.log)
	a.meter = newMeter(a.telemetry.Registry(), cfg.Prices)
	folder, _ := cfg.StateFolder() // keepState logs what is lost without one
	kept := openKept(a, folder)
	a.tokens = kept.tokens
	a.serverSet = newServerSet(cfg.Servers, opts.Demo, kept.switches)
	warn(&cfg, a.log)
	if opts.Cluster != nil {
		a.serverSet.placed = newPlacement(cfg.Servers)
	}
	a.proxy = proxy.New(proxy.Options{Config: cfg.Proxy, Name: router.Name, Version: opts.Version,
		Fail: router.ReplyRPCError, Confirm: router.Confirm, Logger: a.log})
	a.pins = pins.Open(pins.Options{Folder: folder, Shared: kept.pins, Mode: cfg.Tools.Pin, Logger: a.log,
		Approved: func(server string) {
			a.servers.Relist(server)
			toolsChanged(a, server)
		}})
	policy, err := trust.Compile(cfg.Policy)
	if err != nil {
		return nil, err
	}
	validator := plan.NewValidator()
	a.rate = limit.New(cfg.RateLimit, time.Now)
	a.servers = downstream.New(downstream.Options{
		Servers: a.serverSet.servers(), Execution: cfg.Execution, Health: cfg.Health,
		NameConflicts: cfg.NameConflicts, NameLimit: cfg.Proxy.NameLimit,
		ListDeadline: cfg.Proxy.ListDeadline, ProxyTimeout: cfg.Proxy.Timeout, MaxMessage: int(cfg.Limits.ResultBytes),
		Version: opts.Version, Validator: validator, Logger: a.log, Tracer: a.telemetry.Tracer(), Observe: a.observeCall,
		Access: downstream.Access{Embedded: dialers(opts.Tape, a.serverSet), Tokens: kept.tokens,
			Pins: a.pins, Lists: kept.lists, Mask: a.opts.Mask, Audit: a.audit},
		Events: downstream.Events{
			OnNotification: a.proxy.Deliver, OnRequest: a.proxy.Ask,
			OnQuarantine: func(server string) { toolsChanged(a, server) },
			OnReturn:     func(server string) { proxy.Returned(a.proxy, server) },
		},
	})
	a.servers.SetPolicy(policy)
	observed := router.Observed{Tracer: a.telemetry.Tracer(), Mask: a.opts.Mask, Done: a.meter.model}
	a.models = newModels(cfg.LLM, observed, opts.Tape, a.log)
	if a.router, err = a.newRouter(validator); err != nil {
		return nil, err
	}
	a.frontend, err = router.NewFrontend(router.FrontendOptions{
		Router: a.router, Tools: cfg.Router, Rate: a.rate, SeesAll: seesAll(a)})
	if err != nil {
		return nil, err
	}
	serving := edge.Options{
		Logger: a.log, Name: router.Name, Version: opts.Version, Keys: a.keys, Limits: cfg.Limits,
		AllowedOrigins: cfg.AllowedOrigins, ForwardHeaders: a.servers.ForwardedHeaders,
		TrustedProxies: trusted, Loopback: config.OnLoopback(cfg.Listen), Public: !config.OnLoopback(cfg.Listen),
		Tracer: a.telemetry.Tracer(), Served: a.meter.served(),
	}
	if c := opts.Cluster; c != nil {
		if err := c.prepare(a); err != nil {
			return nil, err
		}
		serving.Directory, serving.IDKeys = c.replica.Directory(), c.ring
	}
	a.edge = edge.New(serving)
	parts := proxy.Parts{Servers: a.servers, Clients: a.edge, Search: a.frontend, Limited: a.frontend.Limited}
	if c := opts.Cluster; c != nil {
		a.serverSet.placed.attach(a, c.replica)
		parts.Clients = clients{a.edge, a.serverSet.placed.peers}
	}
	a.proxy.Attach(parts)
	if r := a.telemetry.Registry(); r != nil {
		return a, r.Register(state{a})
	}
	return a, nil
}

// kept is what outlives the process, in the state folder or shared by replicas.
type kept struct {
	switches switches
	tokens   oauth.Store
	pins     *shared.Mirror // nil = in the state folder
	lists    string         // folder; empty = not kept
}

func openKept(a *App, folder string) kept {
	k := kept{tokens: openTokens(a.opts.Cluster, &a.opts.Config, a.log)}
	if c := a.opts.Cluster; c != nil {
		k.switches, k.pins = &sharedSwitches{mirror: c.common}, c.common
		return k
	}
	switches, err := openSwitches(folder)
	if err != nil {
		a.log.Warn("servers are as configured", "error", err)
	}
	k.switches = switches
	if folder != "" {
		k.lists = filepath.Join(folder, "lists")
	}
	return k
}

func (a *App) newRouter(validator *plan.Validator) (*router.Router, error) {
	cfg := a.opts.Config
	hooks := router.Hooks{Follow: a.follow, Calls: a.opts.Tape.Calls,
		SealingKeys: sync.OnceValue(func() [][]byte { return [][]byte{sealingKey(&cfg, a.log)} })}
	if c := a.opts.Cluster; c != nil {
		hooks.Cluster = c.status
		hooks.SealingKeys = func() [][]byte { return c.ring.Keys(approvalUse) }
	}
	a.models.private = func() []string { return downstream.Personal(a.servers) }
	finder := a.models.finder(a.log)
	ranking := planner.Ranking{Finder: finder, Tracer: a.telemetry.Tracer(), Took: a.meter.search}
	planning := planner.Options{
		Config: cfg.Planner, Ranker: ranking, Validator: validator, Logger: a.log,
		Fallback: planner.Rules{Planner: rules.New(rules.Options{Now: a.opts.Tape.Now}), Ranking: ranking},
		Learned:  a.models.hint, Mask: a.opts.Mask, Now: a.opts.Tape.Now,
	}
	composing := synth.Options{Logger: a.log, Mask: a.opts.Mask, Now: a.opts.Tape.Now}
	if cfg.LLM.Plans() {
		planning.Model, composing.Model = a.models.observe()
	}
	return router.New(router.Options{
		Version: a.opts.Version, Servers: a.servers, Planner: planner.New(planning), Synth: synth.New(composing),
		Ranking: ranking,
		Query:   cfg.Query, Validation: cfg.Validation, Limits: cfg.Limits, MaxRounds: cfg.Planner.MaxRounds,
		Execution: cfg.Execution, Validator: validator,
		Models: router.ModelOptions{Status: a.models.status, Sampling: cfg.LLM != nil && cfg.LLM.UseClient &&
			!cfg.LLM.Plans(), Observed: a.models.observed, Learn: a.models.learn},
		Logger: a.log, Tracer: a.telemetry.Tracer(),
		Hooks: hooks,
	})
}

// approvalUse is what the key of plans that wait for approval is derived for.
const approvalUse = "plans that wait for approval"

// sealingKey returns the key of plans that wait for approval.
func sealingKey(cfg *config.Config, log *slog.Logger) []byte {
	folder, err := cfg.StateFolder()
	if err == nil {
		var key []byte
		if key, err = sessionid.DeriveKey(folder, approvalUse); err == nil {
			return key
		}
	}
	log.Warn("returned plans cannot be approved after a restart; set state to a writable folder", "error", err)
	return []byte(rand.Text())
}

// seesAll returns whether a caller may see what others do: its key says so, it is the only one, or it needs none and is
// on this machine.
func seesAll(a *App) func(c auth.Caller) bool {
	local := config.OnLoopback(a.opts.Config.Listen)
	return func(c auth.Caller) bool { return c.Ops() || a.keys.Alone() || local && c.Local() && !a.keys.Required() }
}

func (a *App) observeCall(o downstream.Observation) {
	a.meter.call(o)
	a.page.journal.Call(o)
}

func (a *App) follow(q *router.Query, began time.Time, traceID string) func(*router.Record, string, error) {
	ended := a.page.journal.Follow(q, began, traceID)
	return func(r *router.Record, outcome string, err error) {
		a.meter.query(outcome, time.Since(began), r)
		ended(r, outcome, err)
	}
}

// toolsChanged tells the clients that list tools of a server that these have changed.
func toolsChanged(a *App, server string) {
	a.proxy.ToolsChanged(server)
	for _, session := range a.frontend.Showing(server) {
		a.edge.Send(session, jsonrpc.Notification("notifications/tools/list_changed", nil))
	}
}

// OpenAudit opens the audit log, if there is one, before anything is called. Standard output is not for it.
func OpenAudit(a *App) error { return a.audit.Open(nil) }

// PinsDamage describes what was wrong with the file of pins; empty if nothing was.
func PinsDamage(a *App) string { return a.pins.Damage() }

// Log is the App's log.
func (a *App) Log() *slog.Logger { return a.log }

// Router returns the router, for use in this process.
func (a *App) Router() *router.Router { return a.router }

// ProbeModels checks whether the models can be reached and accept their keys, for the health. It costs no tokens.
func (a *App) ProbeModels(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, a.opts.Config.Health.Timeout)
	defer cancel()
	a.models.probe(ctx)
}

// Settings are those that the App was made with; the caller must not change them.
func (a *App) Settings() *config.Settings { return &a.opts.Config.Settings }

// Connect starts to connect to the servers, once. With discovery: eager it also lists their tools. The error is a
// *catalog.Conflict.
func (a *App) Connect(ctx context.Context) error {
	begin(a)
	return discover(ctx, a)
}

func begin(a *App) {
	a.lifecycle.begin.Do(func() {
		a.pins.Start()
		a.servers.Start()
	})
	a.lifecycle.begun.Store(true)
}

func discover(ctx context.Context, a *App) error {
	cfg := a.opts.Config
	if cfg.Discovery != downstream.DiscoveryEager && cfg.NameConflicts != catalog.ConflictError {
		return nil
	}
	catalog, err := a.servers.Catalog(ctx)
	if err != nil {
		return fmt.Errorf("listing the tools: %w", err)
	}
	if conflicts := catalog.Conflicts; len(conflicts) > 0 {
		return &conflicts[0]
	}
	if a.models.embeddings != nil {
		a.router.Index(catalog)
	}
	return nil
}

// Listen connects to the servers and serves HTTP on the configured address. In a cluster it joins the other replicas;
// until then requests of clients wait.
func (a *App) Listen(ctx context.Context) error {
	cfg := a.opts.Config
	if err := config.CheckBind(cfg.Listen, cfg.Auth); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err // without the address, which is already in the message
		}
		return fmt.Errorf("cannot listen on %s: %w; choose another address with --listen, NEXUS_LISTEN or listen in the settings", cfg.Listen, err)
	}
	c := a.opts.Cluster
	if err = a.audit.Open(os.Stdout); err == nil {
		begin(a)
		if c == nil {
			err = discover(ctx, a)
		}
	}
	if err != nil {
		listener.Close()
		return err
	}
	a.keepState()
	a.models.keepLearned(&a.opts.Config, a.log)
	proxies, _ := auth.ParseProxies(cfg.TrustedProxies) // New has checked them
	handler := a.handler()
	if c != nil {
		handler = c.receive(handler)
		followLogins(a, c.common)
	}
	a.web.serve(limit.NewConnections(listener, limit.OpenFiles(), proxies, a.log), handler, a.log)
	if c != nil {
		follow := func(ctx context.Context) { followSwitches(ctx, a, c.common) }
		if err := c.start(ctx, func() { a.web.ready.Store(false) }, follow); err != nil {
			return err
		}
		a.serverSet.placed.sole.Start()
		if err := discover(ctx, a); err != nil { // also what runs once
			return err
		}
	}
	if a.web.ready.Store(true); c != nil && c.replica.Draining() {
		a.web.ready.Store(false)
	}
	a.log.Info("listening", "address", listener.Addr().String(), "servers", len(a.servers.Servers()))
	return nil
}

// keepState lets sessions and the history survive a restart if there is a state folder. Those of replicas do so by the
// keys that these share.
func (a *App) keepState() {
	folder, err := a.opts.Config.StateFolder()
	if err == nil && a.opts.Cluster == nil {
		err = a.edge.Keep(folder)
	}
	if err != nil {
		a.log.Warn("client sessions will not survive a restart; set state to a writable folder", "error", err)
		folder = ""
	}
	cfg := a.opts.Config.History
	a.page.history = history.Open(folder, cfg, a.log)
	a.page.journal.Open(a.page.history, cfg.Contents, a.opts.Mask)
}

// Addr is the address that Listen listens on.
func (a *App) Addr() string { return a.web.listener.Addr().String() }

func (a *App) handler() http.Handler {
	mux := http.NewServeMux()
	all := a.proxy.All()
	for base, h := range map[string]edge.Handler{"": a.frontend, "/proxy": all} {
		mux.Handle(base+"/mcp", a.edge.Streamable(h, nil))
		stream, messages := a.edge.SSE(base+"/messages/", h)
		mux.Handle(base+"/sse", stream)
		mux.Handle(base+"/messages/", messages)
		mux.Handle(base+"/messages", messages)
	}
	mux.Handle("/servers/{name}/mcp", newSingles(a, a.edge, a.proxy.Single))
	if a.serverSet.placed != nil {
		mux.Handle("/cluster/servers/{name}/mcp", a.serverSet.placed.handler(a))
	}
	mountProfiles(mux, a)
	logins.New(logins.Options{
		Keys: a.keys, Store: a.tokens, Servers: announcing{a}, Edge: a.edge, Logger: a.log,
	}).Mount(mux, a.edge.Guard)
	metadata := a.edge.Guard(http.HandlerFunc(a.edge.ServeMetadata))
	mux.Handle(edge.MetadataPath, metadata)
	mux.Handle(edge.MetadataPath+"/", metadata)
	mountOperations(mux, a)
	return mux
}

// Profiles of ServeStdio (nexus stdio --profile), besides "server:NAME".
const (
	ProfileRouter = "router"
	ProfileProxy  = "proxy"
)

// ServeStdio serves a profile on a byte stream until it ends.
func (a *App) ServeStdio(ctx context.Context, profile string, in io.Reader, out io.Writer) error {
	handler, err := a.profile(profile)
	if err != nil {
		return err
	}
	if err := a.audit.Open(nil); err != nil {
		return err
	}
	if err := a.Connect(ctx); err != nil {
		return err
	}
	a.models.keepLearned(&a.opts.Config, a.log)
	return a.edge.ServeStdio(ctx, in, out, handler)
}

// CheckProfile returns an error for an invalid name of a profile.
func (a *App) CheckProfile(name string) error {
	_, err := a.profile(name)
	return err
}

func (a *App) profile(name string) (edge.Handler, error) {
	switch server, single := strings.CutPrefix(name, "server:"); {
	case name == ProfileRouter:
		return a.frontend, nil
	case name == ProfileProxy:
		return a.proxy.All(), nil
	case single && slices.Contains(a.servers.Servers(), server):
		return a.proxy.Single(server), nil
	case single:
		return nil, fmt.Errorf("unknown server %s in --profile; known: %s", server,
			strings.Join(a.servers.Servers(), ", "))
	}
	return nil, fmt.Errorf("unknown profile %s; write router, proxy or server:NAME", name)
}

// ErrForced is the error of Stop if calls in flight were cut off.
var ErrForced = errors.New("calls in flight were cut off at the end of the grace period")

// Stop ends the App: it refuses new work, lets calls in flight finish until ctx ends, closes clients, and then closes
// servers in reverse order. The error names what was cut off; it wraps ErrForced if calls of clients were cut off.
// Later calls of Stop wait for the first one and return its error.
func (a *App) Stop(ctx context.Context) error {
	a.lifecycle.end.Do(func() { a.lifecycle.stopped = a.stop(ctx) })
	return a.lifecycle.stopped
}

func (a *App) stop(ctx context.Context) error {
	if a.lifecycle.begun.Load() {
		a.log.Info("Starting graceful shutdown...")
	}
	a.web.ready.Store(false)
	if a.page.console != nil {
		a.page.console.Close()
	}
	c := a.opts.Cluster
	if c != nil && a.web.server != nil {
		c.drain(ctx, a.edge.Sessions)
	}
	edge.Drain(ctx, a.edge)
	if c != nil {
		a.serverSet.placed.stop(ctx)
		c.leave(ctx) // before the edge refuses requests of sessions whose home is here
	}
	err := a.edge.Stop(ctx)
	if ctx.Err() != nil {
		a.log.Warn("Shutdown timeout, forcing exit")
		err = errors.Join(err, ErrForced)
	}
	flush := flushTime
	if c != nil {
		if a.web.server != nil {
			a.web.refuse(min(remaining(ctx), silentTime))
		}
		flush = remaining(ctx) // for what was passed on
	}
	err = errors.Join(err, a.web.close(flush))
	a.servers.StopWithin(remaining(ctx))
	a.serverSet.embedded.stop()
	a.pins.Close()
	if c != nil {
		c.close() // after those that share what they keep
	}
	a.models.close()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	return errors.Join(err, a.telemetry.Shutdown(last), a.page.history.Close(last), a.audit.Close(last))
}

// leastStop is the time for the servers to close when the calls have used up the grace period.
const leastStop = 2 * time.Second

// remaining returns what is left of the grace period for the servers.
func remaining(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return time.Minute
	}
	return max(time.Until(end), leastStop)
}
