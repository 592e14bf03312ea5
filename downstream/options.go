package downstream

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/downstream/server"
	"github.com/agenticnexus/agenticnexus/internal/audit"
	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
	"github.com/agenticnexus/agenticnexus/internal/trust"
)

// The types of package server that the configuration and the methods of Manager use.
type (
	ServerConfig  = server.Config
	ToolFilter    = server.ToolFilter
	HealthConfig  = server.HealthConfig
	Status        = server.Status
	Notification  = server.Notification
	ServerRequest = server.ServerRequest
	Asker         = server.Asker
	Hold          = server.Hold
	DialFunc      = server.DialFunc
)

// Transports of a server, and how its sessions are shared among the client sessions on the proxy surfaces.
const (
	TransportStdio   = server.TransportStdio
	TransportHTTP    = server.TransportHTTP
	TransportSSE     = server.TransportSSE
	SessionShared    = server.SessionShared
	SessionPerClient = server.SessionPerClient
)

// States of a server.
const (
	StateConnecting   = health.Connecting
	StateConnected    = health.Connected
	StateDegraded     = health.Degraded
	StateDisconnected = health.Disconnected
	StateQuarantined  = health.Quarantined
	StateDisabled     = health.Disabled
	StatePerCaller    = health.PerCaller
)

// When tools are listed.
const (
	DiscoveryLazy  = "lazy"  // when a client first asks
	DiscoveryEager = "eager" // at start-up
)

// Writes of a query that need the user's approval.
const (
	ConfirmAuto   = trust.ConfirmAuto
	ConfirmAlways = trust.ConfirmAlways
	ConfirmNever  = trust.ConfirmNever
)

// ExecutionConfig limits the steps of a plan.
type ExecutionConfig struct {
	ToolTimeout    time.Duration `yaml:"tool_timeout"`     // idle limit of a step's call; progress resets it
	ToolTimeoutMax time.Duration `yaml:"tool_timeout_max"` // absolute limit; progress does not reset it
	MaxParallel    int           `yaml:"max_parallel"`     // concurrent steps per query
	Attempts       int           `yaml:"attempts"`         // calls per step, first included
	RetryDelay     time.Duration `yaml:"retry_delay"`      // before the second call; doubles
	ConfirmWrites  string        `yaml:"confirm_writes"`   // auto, always or never
}

// DefaultExecution returns the default limits of steps.
func DefaultExecution() ExecutionConfig {
	return ExecutionConfig{
		ToolTimeout: 30 * time.Second, ToolTimeoutMax: 10 * time.Minute, MaxParallel: 8,
		Attempts: 3, RetryDelay: time.Second, ConfirmWrites: ConfirmAuto,
	}
}

// ProtocolVersion is the version that the router offers to downstream servers in the handshake.
const ProtocolVersion = server.ProtocolVersion

// Options of a Manager. Zero durations and counts mean the defaults.
type Options struct {
	Servers       []ServerConfig
	Execution     ExecutionConfig
	Health        HealthConfig
	NameConflicts string
	NameLimit     int             // length above which listed names get an alias; 0 = no limit
	ListDeadline  time.Duration   // for the lists of one server
	ProxyTimeout  time.Duration   // idle limit of calls other than steps of a plan
	MaxMessage    int             // bytes of one message from a server
	Version       string          // the router's version, for the handshake
	Validator     *plan.Validator // nil creates one; share it to share compiled schemas
	Logger        *slog.Logger
	Tracer        tracing.Tracer
	Observe       func(Observation) // after each call; may be nil
	Access
	Events
}

// Access holds what some servers need to be reached, the secrets among it, and where calls are recorded.
type Access struct {
	Embedded map[string]DialFunc // servers in this process, by name
	Tokens   oauth.Store         // OAuth tokens
	Pins     *pins.Store         // approved definitions of tools; nil = off
	Lists    string              // folder of the last lists of servers; empty = they are not kept
	Mask     *redact.Masker      // removes the secrets from failures; nil knows none
	Audit    *audit.Log          // records the calls; nil = no audit log
}

// Events are callbacks for events outside of calls. Each may be nil.
type Events struct {
	OnNotification func(Notification)  // see Notification
	OnReturn       func(server string) // clients may have lists that lack it, or old ones; must not block
	OnQuarantine   func(server string) // changed tools are not listed any more; must not block

	// OnRequest relays a server's request that belongs to no call to a client, like an Asker.
	OnRequest func(ctx context.Context, server, client string, q ServerRequest) (result, err []byte)
}

// Observation describes a finished call.
type Observation struct {
	Server, Outcome string // outcome: ok, error, cancelled or a failure's reason
	Method          string
	Duration        time.Duration
	Waited          time.Duration // part of it spent in the server's queue
	Attempts        int

	Tool   string // for tools/call, else empty
	Listed bool   // the server lists the tool
	Caller string
	Step   bool // a step of a query
	Began  time.Time
	Bytes  int // size of the result
}

func fillDefaults(o *Options) {
	d, h := DefaultExecution(), server.DefaultHealth()
	o.Execution.ToolTimeout = cmp.Or(max(o.Execution.ToolTimeout, 0), d.ToolTimeout)
	o.Execution.ToolTimeoutMax = cmp.Or(max(o.Execution.ToolTimeoutMax, 0), d.ToolTimeoutMax)
	o.Execution.RetryDelay = cmp.Or(max(o.Execution.RetryDelay, 0), d.RetryDelay)
	o.Health.Interval = cmp.Or(max(o.Health.Interval, 0), h.Interval)
	o.Health.Timeout = cmp.Or(max(o.Health.Timeout, 0), h.Timeout)
	o.ListDeadline = cmp.Or(max(o.ListDeadline, 0), 5*time.Second)
	o.ProxyTimeout = cmp.Or(max(o.ProxyTimeout, 0), 10*time.Minute)
	o.Execution.MaxParallel = cmp.Or(max(o.Execution.MaxParallel, 0), d.MaxParallel)
	o.Execution.Attempts = cmp.Or(max(o.Execution.Attempts, 0), d.Attempts)
	o.Execution.ConfirmWrites = cmp.Or(o.Execution.ConfirmWrites, d.ConfirmWrites)
	o.MaxMessage = cmp.Or(max(o.MaxMessage, 0), 64<<20)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Observe == nil {
		o.Observe = func(Observation) {}
	}
	if o.OnNotification == nil {
		o.OnNotification = func(Notification) {}
	}
	if o.OnQuarantine == nil {
		o.OnQuarantine = func(string) {}
	}
	if o.OnReturn == nil {
		o.OnReturn = func(string) {}
	}
}
