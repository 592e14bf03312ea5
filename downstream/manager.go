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
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/downstream/link"
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
	*directory
	opts     Options
	dialer   *dialer
	servers  *servers
	calls    *calls
	sessions *Sessions
}

// New returns a Manager. Server names must be unique; the config loader checks that.
func New(opts Options) *Manager {
	fillDefaults(&opts)
	m := &Manager{opts: opts}
	clients := newClients()
	m.dialer = newDialer(&m.opts, clients)
	m.servers = newServers(opts.Servers, clients, func(c ServerConfig) *server {
		return newServer(newEndpoint(c, &m.opts, clients), m.dialer.open)
	})
	m.directory = newDirectory(&m.opts, m.servers)
	m.calls = newCalls(&m.opts, m.servers, clients)
	m.sessions = &Sessions{m.servers, clients, m.calls, m.opts.Logger}
	return m
}

// Start starts to connect to all servers in parallel and to check their health. It does not wait.
func (m *Manager) Start() { m.servers.start() }

// Call sends a request to a server and returns its raw response. The error is a *Failure, an *UnknownError, an
// *InputError, or the cause of ctx.
func (m *Manager) Call(ctx context.Context, r *Request) (link.Reply, error) {
	return m.calls.chain(ctx, r)
}

// Sessions returns the sessions of clients with servers.
func (m *Manager) Sessions() *Sessions { return m.sessions }

// Apply replaces the configuration of the servers. Unchanged servers keep their sessions. New or changed servers are
// connected and get all further calls. Removed or changed servers finish their calls and are then closed. Log levels
// and subscriptions of clients are replayed to the successor of the same name. Names must be unique. After Stop,
// Apply does nothing.
func (m *Manager) Apply(configs []ServerConfig) Changes { return m.servers.apply(configs) }

// Stop calls StopWithin with stopTime for every server.
func (m *Manager) Stop() { m.StopWithin(time.Duration(len(m.servers.every())) * stopTime) }

// StopWithin closes the servers one after the other, in reverse configuration order, and waits. A server that exceeds
// its share of the remaining time is cut off.
func (m *Manager) StopWithin(limit time.Duration) {
	m.servers.stop(limit)
	m.dialer.transport.CloseIdleConnections()
}

// Servers returns the names of the configured servers, in order.
func (m *Manager) Servers() []string {
	order := m.servers.all().order
	names := make([]string, len(order))
	for i, s := range order {
		names[i] = s.config.Name
	}
	return names
}

// Enabled returns the names of the servers that are not disabled, in order.
func (m *Manager) Enabled() []string {
	var names []string
	for _, s := range m.servers.all().order {
		if !s.config.Disabled {
			names = append(names, s.config.Name)
		}
	}
	return names
}

// Configured reports whether a server of that name is configured.
func (m *Manager) Configured(name string) bool { return m.servers.server(name) != nil }

// ForwardedHeaders returns the names in forward_headers of all servers.
func (m *Manager) ForwardedHeaders() (names []string) {
	for _, s := range m.servers.all().order {
		names = append(names, s.config.ForwardHeaders...)
	}
	return names
}

// ListedName returns the name under which clients see a tool.
func (m *Manager) ListedName(server, tool string) string {
	return catalog.Alias(server, tool, m.opts.NameLimit)
}
