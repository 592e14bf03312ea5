package downstream

import (
	"net/http"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/secret"
)

// Transports of a downstream server.
const (
	TransportStdio = "stdio"
	TransportHTTP  = "http" // streamable HTTP
	TransportSSE   = "sse"  // HTTP+SSE of 2024-11-05
)

// How downstream sessions are shared among client sessions on the proxy surfaces.
const (
	SessionShared    = "shared"
	SessionPerClient = "per_client"
)

// What happens to equal bare tool names of several servers.
const (
	ConflictNamespace = "namespace" // both are listed as server.tool
	ConflictLastWins  = "last_wins" // the server later in the configuration gets the bare name
	ConflictError     = "error"     // start-up fails; a conflict that appears later quarantines the later tool
)

// Which processes of a cluster connect to a server.
const (
	PlacementEach = "each"
	PlacementOne  = "one"
)

// When tools are listed.
const (
	DiscoveryLazy  = "lazy"  // when a client first asks
	DiscoveryEager = "eager" // at start-up
)

// Which writes of a query need the user's yes.
const (
	ConfirmAuto   = "auto"   // what was planned with the least certainty, see router.consent
	ConfirmAlways = "always" // every write
	ConfirmNever  = "never"  // never ask
)

// DefaultMaxParallel is how many calls a server gets at once.
const DefaultMaxParallel = 4096

// ServerConfig describes one downstream server. The zero Type is resolved by the config loader.
type ServerConfig struct {
	Name             string                   `yaml:"-"`
	Type             string                   `yaml:"type"` // stdio, http or sse
	URL              string                   `yaml:"url"`
	Headers          map[string]secret.String `yaml:"headers"`
	ForwardHeaders   []string                 `yaml:"forward_headers"` // of the caller's HTTP request, passed on with calls
	Command          string                   `yaml:"command"`
	Args             []string                 `yaml:"args"`
	Env              map[string]secret.String `yaml:"env"`
	Cwd              string                   `yaml:"cwd"`
	Timeout          time.Duration            `yaml:"timeout"`         // 0 = proxy.timeout and execution.tool_timeout
	ConnectTimeout   time.Duration            `yaml:"connect_timeout"` // of one attempt; 0 = 15 s, 120 s for commands
	MaxParallel      int                      `yaml:"max_parallel"`    // calls at once; 0 = DefaultMaxParallel
	Disabled         bool                     `yaml:"disabled"`
	Tools            ToolFilter               `yaml:"tools"`
	Session          string                   `yaml:"session"`           // "", shared or per_client
	TrustAnnotations *bool                    `yaml:"trust_annotations"` // nil = true
	Placement        string                   `yaml:"placement"`         // "", each or one; one process needs neither
	Auth             *oauth.Config            `yaml:"auth"`              // nil = it wants no OAuth tokens
}

// Authorized returns the server as package oauth knows it; ok is false if it wants no tokens.
func (c ServerConfig) Authorized() (s oauth.Server, ok bool) {
	if c.Auth == nil || c.URL == "" {
		return oauth.Server{}, false
	}
	return oauth.Server{Name: c.Name, URL: c.URL, SSE: c.Type == TransportSSE, Headers: c.Headers, Config: *c.Auth}, true
}

// Default limits of one attempt to connect, handshake included. A command may have to be installed first.
const (
	DefaultConnectTimeout        = 15 * time.Second
	DefaultCommandConnectTimeout = 2 * time.Minute
)

// ConnectLimit returns how long one attempt to connect may take.
func (c ServerConfig) ConnectLimit() time.Duration {
	switch {
	case c.ConnectTimeout > 0:
		return c.ConnectTimeout
	case c.Command != "":
		return DefaultCommandConnectTimeout
	}
	return DefaultConnectTimeout
}

// places returns how many calls the server gets at once.
func (c ServerConfig) places() int {
	if c.MaxParallel > 0 {
		return c.MaxParallel
	}
	return DefaultMaxParallel
}

// minRoom is the least number of calls that may wait for a server. The steps of a query wait for a server that takes
// few calls at once.
const minRoom = 64

// room returns how many calls may wait for the server.
func (c ServerConfig) room() int { return max(c.places(), minRoom) }

// forwarded returns the headers of a caller's request that are passed on to the server.
func (c ServerConfig) forwarded(from http.Header) (to http.Header) {
	for _, name := range c.ForwardHeaders {
		if values := from.Values(name); len(values) > 0 {
			if to == nil {
				to = http.Header{}
			}
			to[http.CanonicalHeaderKey(name)] = values
		}
	}
	return to
}

// TrustsAnnotations reports whether retry may believe the server's tool annotations.
func (c ServerConfig) TrustsAnnotations() bool {
	return c.TrustAnnotations == nil || *c.TrustAnnotations
}

// ToolFilter chooses tools by shell patterns (path.Match) over the tool's own name. An empty Allow allows all.
type ToolFilter struct {
	Allow []string `yaml:"allow"`
	Deny  []string `yaml:"deny"`
}

// ExecutionConfig bounds the steps of a plan.
type ExecutionConfig struct {
	ToolTimeout    time.Duration `yaml:"tool_timeout"`     // idle limit of a step's call; progress resets it
	ToolTimeoutMax time.Duration `yaml:"tool_timeout_max"` // cap that progress cannot move
	MaxParallel    int           `yaml:"max_parallel"`     // steps of one query at a time
	Attempts       int           `yaml:"attempts"`         // calls per step, first included
	RetryDelay     time.Duration `yaml:"retry_delay"`      // before the second call; doubles
	ConfirmWrites  string        `yaml:"confirm_writes"`   // auto, always or never
}

// HealthConfig controls the health loop.
type HealthConfig struct {
	Interval time.Duration `yaml:"interval"`
	Timeout  time.Duration `yaml:"timeout"`
}

// DefaultExecution returns the documented defaults.
func DefaultExecution() ExecutionConfig {
	return ExecutionConfig{
		ToolTimeout: 30 * time.Second, ToolTimeoutMax: 10 * time.Minute, MaxParallel: 8,
		Attempts: 3, RetryDelay: time.Second, ConfirmWrites: ConfirmAuto,
	}
}

// DefaultHealth returns the documented defaults.
func DefaultHealth() HealthConfig {
	return HealthConfig{Interval: 30 * time.Second, Timeout: 5 * time.Second}
}
