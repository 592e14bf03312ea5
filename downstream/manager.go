// Package downstream sends requests to the downstream servers.
//
// [New] returns a [Manager], which owns the sessions with all servers. [Manager.Call] is the only way to a server: it
// applies authorization, time limits, tracing and retries. [Manager.Catalog] returns the tools of all servers.
// [Manager.Sessions] serves clients that have their own sessions with servers.
//
// All methods are safe for concurrent use. Start does not block, and a server that is down delays no other. Apply
// replaces the configuration of the servers while calls are in flight. Stop waits for every goroutine and child
// process.
package downstream

import (
	"context"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/downstream/server"
	"github.com/agenticnexus/agenticnexus/internal/http1"
	"github.com/agenticnexus/agenticnexus/internal/trust"
)

// The types of package catalog that the methods of Manager take and return.
type (
	Catalog = catalog.Catalog
	Missing = catalog.Missing
	Tool    = catalog.Tool
	Visible = catalog.Visible
)

// Manager owns the downstream servers.
type Manager struct {
	*catalogCache
	opts     Options
	http     *http1.Transport
	servers  view
	calls    *callChain
	call     callFunc // calls with the audit log
	sessions *Sessions
}

// New returns a Manager. Server names must be unique; the config loader checks that.
func New(opts Options) *Manager {
	fillDefaults(&opts)
	shared := &server.Options{
		Health: opts.Health, ListDeadline: opts.ListDeadline, AnswerLimit: opts.Execution.ToolTimeoutMax,
		MaxMessage: opts.MaxMessage, Version: opts.Version, Logger: opts.Logger, Clients: server.NewClients(),
		Transport: server.NewTransport(), Embedded: opts.Embedded,
		Kept:           server.Kept{Pins: opts.Pins, Lists: opts.Lists},
		Secrets:        server.Secrets{Tokens: opts.Tokens, Mask: opts.Mask},
		OnNotification: opts.OnNotification, OnReturn: opts.OnReturn, OnQuarantine: opts.OnQuarantine,
		OnRequest: opts.OnRequest,
	}
	m := &Manager{opts: opts, http: shared.Transport, servers: view{servers: newServers(opts.Servers, shared)}}
	m.catalogCache = newCatalogCache(&m.opts, m.servers)
	m.calls = newCallChain(&m.opts, m.servers, shared.Clients)
	m.call = audited(&m.opts, m.calls.chain)
	m.sessions = &Sessions{m.servers, shared.Clients, m.calls, m.opts.Logger}
	return m
}

// Start starts to connect to all servers in parallel and to check their health. It does not wait.
func (m *Manager) Start() { m.servers.start() }

// Call sends a request to a server and returns its raw response. The error is a *Failure, an *UnknownError, an
// *InputError, or the cause of ctx.
func (m *Manager) Call(ctx context.Context, r *Request) (link.Reply, error) {
	return m.call(ctx, r)
}

// Decide returns the decision that Call makes on a request, without calling. The error is an *UnknownError for what the
// caller may not use, and a *Failure for a tool that waits for approval; the decision then tells which rule hides it.
func (m *Manager) Decide(r *Request) (trust.Decision, error) {
	own := *r
	return m.calls.decide(&own)
}

// SetPolicy sets the rules for calls, nil for none. It applies to later calls.
func (m *Manager) SetPolicy(p *trust.Policy) { m.calls.policy.Store(p) }

// Private returns the names of the servers whose results are confidential, in order.
func (m *Manager) Private() (names []string) {
	for _, s := range m.servers.all().order {
		if s.Config.Private() {
			names = append(names, s.Config.Name)
		}
	}
	return names
}

// Sessions returns the sessions of clients with servers.
func (m *Manager) Sessions() *Sessions { return m.sessions }

// Apply replaces the configuration of the servers. Unchanged servers keep their sessions. New or changed servers are
// connected and get all further calls. Removed or changed servers finish their calls and are then closed. Log levels
// and subscriptions of clients are replayed to the successor of the same name. Names must be unique. After Stop,
// Apply does nothing.
func (m *Manager) Apply(configs []ServerConfig) Changes { return m.servers.apply(configs) }

// Restart is like Apply, and replaces a server of these by one with new sessions and a new process even if its
// configuration is the same. The new process starts when the old one has ended, see CloseReplaced.
func Restart(m *Manager, configs []ServerConfig, name string) Changes {
	return m.servers.apply(configs, name)
}

// CloseReplaced waits until the servers of a name that Apply has replaced are closed. When ctx ends, it closes them at
// once, and their calls in flight are cut off.
func CloseReplaced(ctx context.Context, m *Manager, name string) { m.servers.close(ctx, name) }

// Stop calls StopWithin with server.StopTime for every server.
func (m *Manager) Stop() { m.StopWithin(time.Duration(len(m.servers.every())) * server.StopTime) }

// StopWithin closes the servers one after the other, in reverse configuration order, and waits. A server that exceeds
// its share of the remaining time is cut off.
func (m *Manager) StopWithin(limit time.Duration) {
	m.servers.stop(limit)
	m.http.CloseIdleConnections()
}

// Servers returns the names of the configured servers, in order.
func (m *Manager) Servers() []string {
	order := m.servers.all().order
	names := make([]string, len(order))
	for i, s := range order {
		names[i] = s.Config.Name
	}
	return names
}

// Enabled returns the names of the servers that are not disabled, in order.
func (m *Manager) Enabled() []string {
	var names []string
	for _, s := range m.servers.all().order {
		if !s.Config.Disabled {
			names = append(names, s.Config.Name)
		}
	}
	return names
}

// Configured reports whether a server of that name is configured.
func (m *Manager) Configured(name string) bool { return m.servers.named(name) != nil }

// Owns reports whether a server may have a name: the name does not begin with another configured server, see
// catalog.Owner.
func (m *Manager) Owns(server, name string) bool {
	owner, _, ok := catalog.Owner(name, m.Configured)
	return !ok || owner == server
}

// ForwardedHeaders returns the names in forward_headers of all servers.
func (m *Manager) ForwardedHeaders() (names []string) {
	for _, s := range m.servers.all().order {
		names = append(names, s.Config.ForwardHeaders...)
	}
	return names
}

// ListedName returns the name under which clients see a tool.
func (m *Manager) ListedName(server, tool string) string {
	return catalog.Alias(server, tool, m.opts.NameLimit)
}

// Relist makes the next requests of a server's tools ask the server, as after it has announced a change.
func (m *Manager) Relist(name string) {
	if s := m.servers.named(name); s != nil {
		s.Relist()
	}
}

// Status returns the status of all servers by name.
func (m *Manager) Status() map[string]Status { return m.StatusFor(nil) }

// StatusFor returns the status of the servers that a caller may see, without data of other tools.
func (m *Manager) StatusFor(see Visible) map[string]Status {
	order := m.servers.all().order
	out := make(map[string]Status, len(order))
	for _, s := range order {
		if see == nil || see(s.Config.Name, "") {
			out[s.Config.Name] = s.Status(see)
		}
	}
	for _, c := range m.conflicts() {
		why := c.Error()
		if see != nil && slices.ContainsFunc(c.Servers, func(name string) bool { return !see(name, c.Tool) }) {
			why = "its name is also used by another server"
		}
		for _, name := range c.Servers[1:] {
			if st, ok := out[name]; ok && (see == nil || see(name, c.Tool)) {
				st.Quarantine(c.Tool, why)
				out[name] = st
			}
		}
	}
	return out
}

// Transitions returns the last changes of a server's state since it was configured, oldest first.
func (m *Manager) Transitions(name string) []health.Transition {
	if s := m.servers.named(name); s != nil {
		return s.Transitions()
	}
	return nil
}

// Stderr returns the last lines that the processes of a server wrote to their error output, at most 50, oldest first,
// without secrets. They may tell what other callers do.
func Stderr(m *Manager, name string) []string {
	if s := m.servers.named(name); s != nil {
		return server.Stderr(s)
	}
	return nil
}
