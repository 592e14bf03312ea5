// Package downstream sends requests to the downstream servers.
//
// [New] makes a [Manager], which owns the sessions with all servers. [Manager.Call] is the only way to a server:
// authorization, time limits, tracing and retries are applied there. [Manager.Catalog] returns the tools of all
// servers. [Manager.Sessions] serves clients that have sessions of their own with servers.
//
// All methods may be called from any goroutine. Start returns at once, and a server that is down delays no other. Apply
// replaces the configuration of the servers while calls are in flight. Stop waits for every goroutine and child
// process.
//
// The files form layers, the lowest first; a test in tests counts the references that point upward:
//
//   - config, names, timing, latency, messages, failure, identity: values
//   - tool, listing, options: tools, and what servers list
//   - client, subscriptions: what clients have asked of servers
//   - monitor, endpoint, mail: one server, as all its sessions share it
//   - slot, supervise, lists: one session with a server
//   - server, reload: all sessions with one server, and all servers
//   - owners, catalog, shelves, directory: the tools of all servers
//   - request, admit, mrtr, retry, subscribe, timelimit, call: requests and their middleware
//   - inbound, dial, sessions, manager, status: what servers send, and the public surface
package downstream

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/plan"
)

// Manager owns the downstream servers.
type Manager struct {
	opts      Options
	dialer    *dialer
	servers   *servers
	directory *directory
	calls     *calls
	sessions  *Sessions
}

// New makes a Manager. The names of servers must be unique; the config loader checks that.
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

// Start begins to connect to every server, all at once, and to check their health. It does not wait.
func (m *Manager) Start() { m.servers.start() }

// Call sends a request to a server and returns its raw answer. The error is a *Failure, an *UnknownError, an
// *InputError, or the cause of ctx.
func (m *Manager) Call(ctx context.Context, r *Request) (link.Reply, error) {
	return m.calls.chain(ctx, r)
}

// Sessions returns the sessions of clients with servers.
func (m *Manager) Sessions() *Sessions { return m.sessions }

// Apply replaces the configuration of the servers. Servers whose configuration is the same keep their sessions.
// Servers that are new or changed are connected and get calls from here on. Servers that are gone or changed finish
// the calls that they have and are closed then. Log levels and subscriptions of clients are replayed to the successor
// of the same name. Names must be unique. After Stop, Apply does nothing.
func (m *Manager) Apply(configs []ServerConfig) Changes { return m.servers.apply(configs) }

// Stop is StopWithin with as much time as every server may need.
func (m *Manager) Stop() { m.StopWithin(time.Duration(len(m.servers.every())) * stopTime) }

// StopWithin closes the servers in reverse order of the configuration, each before the next, and waits. A server that
// takes longer than its share of the remaining time is cut off.
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

// Configured reports whether there is a server of that name.
func (m *Manager) Configured(name string) bool { return m.servers.server(name) != nil }

// Catalog returns the tools of all servers. It asks those whose tools may have changed since they were listed, all at
// once. Servers that do not answer within their deadline are named in Missing.
func (m *Manager) Catalog(ctx context.Context) (*Catalog, error) { return m.directory.catalog(ctx) }

// Reconnect tries again, all at once, to connect to those of the missing servers that were listed before and failed
// without a delay. It reports whether one is back. It waits no longer than for a list, and reconnectTime at most.
func (m *Manager) Reconnect(ctx context.Context, missing []Missing) bool {
	return m.directory.reconnect(ctx, missing)
}

// Refresh lists again the tools of every server that were last listed before since. Servers that fail are left as
// they are. If it is called more than refreshBurst times at once, and then once a second, it does nothing.
func (m *Manager) Refresh(ctx context.Context, since time.Time) { m.directory.refresh(ctx, since) }

// Listed reports whether a server had a tool when it was last listed.
func (m *Manager) Listed(server, client, tool string) bool {
	return m.directory.listed(server, client, tool)
}

// ListedName is how a tool is listed to clients.
func (m *Manager) ListedName(server, tool string) string {
	return Alias(server, tool, m.opts.NameLimit)
}

// Has reports whether a server has a tool that the caller may use, in the session of a client if one is named. A tool
// that is missing from the last list is looked up at its server. If the server cannot be listed the answer is yes,
// and the call itself will tell. The error is the cause of ctx or, for a tool that is quarantined, a *Failure.
func (m *Manager) Has(ctx context.Context, server, client, tool string, visible Visible) (bool, error) {
	return m.directory.has(ctx, server, client, tool, visible)
}

// Validate checks arguments against the tool's inputSchema. It returns nil if they fit or the schema is not known.
func (m *Manager) Validate(ctx context.Context, server, tool string, arguments []byte) (*plan.Error, error) {
	return m.directory.validate(ctx, server, tool, arguments)
}

// Find looks for an item in a list of a server in the client's session. If there is none it lists the server again
// before it returns false. since is the time when the search began.
func (m *Manager) Find(
	ctx context.Context, name, client, method string, since time.Time, match func(item json.RawMessage) bool,
) (item json.RawMessage, ok bool, err error) {
	return m.directory.find(ctx, name, client, method, since, match)
}
