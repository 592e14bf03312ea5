package downstream

import (
	"net/http"
	"path"
	"slices"
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

// When tools are listed.
const (
	DiscoveryLazy  = "lazy"  // when a client first asks
	DiscoveryEager = "eager" // at start-up
)

// Writes of a query that need the user's approval.
const (
	ConfirmAuto   = "auto"   // the least certain writes, see consent in package router
	ConfirmAlways = "always" // every write
	ConfirmNever  = "never"  // never ask
)

// DefaultMaxParallel is the default number of concurrent calls per server.
const DefaultMaxParallel = 4096

// ServerConfig describes one downstream server. The zero Type is resolved by the config loader.
type ServerConfig struct {
	Name             string                   `yaml:"-"`
	Type             string                   `yaml:"type"` // stdio, http or sse
	URL              string                   `yaml:"url"`
	Headers          map[string]secret.String `yaml:"headers"`
	ForwardHeaders   []string                 `yaml:"forward_headers"` // headers of the caller to forward
	Command          string                   `yaml:"command"`
	Args             []string                 `yaml:"args"`
	Env              map[string]secret.String `yaml:"env"`
	Cwd              string                   `yaml:"cwd"`
	Timeout          time.Duration            `yaml:"timeout"`         // 0 = proxy.timeout and execution.tool_timeout
	ConnectTimeout   time.Duration            `yaml:"connect_timeout"` // of one attempt; 0 = 15 s, 120 s for commands
	MaxParallel      int                      `yaml:"max_parallel"`    // concurrent calls; 0 = DefaultMaxParallel
	Disabled         bool                     `yaml:"disabled"`
	Tools            ToolFilter               `yaml:"tools"`
	Session          string                   `yaml:"session"`           // "", shared or per_client
	TrustAnnotations *bool                    `yaml:"trust_annotations"` // nil = true
	Auth             *oauth.Config            `yaml:"auth"`              // nil = no OAuth tokens
}

// Authorized returns the server's OAuth settings; ok is false if it needs no tokens.
func (c ServerConfig) Authorized() (s oauth.Server, ok bool) {
	if c.Auth == nil || c.URL == "" {
		return oauth.Server{}, false
	}
	return oauth.Server{Name: c.Name, URL: c.URL, SSE: c.Type == TransportSSE, Headers: c.Headers, Config: *c.Auth}, true
}

// Default time limits of one connection attempt, including the handshake. A command may first have to be installed.
const (
	DefaultConnectTimeout        = 15 * time.Second
	DefaultCommandConnectTimeout = 2 * time.Minute
)

// ConnectLimit returns the time limit of one connection attempt.
func (c ServerConfig) ConnectLimit() time.Duration {
	switch {
	case c.ConnectTimeout > 0:
		return c.ConnectTimeout
	case c.Command != "":
		return DefaultCommandConnectTimeout
	}
	return DefaultConnectTimeout
}

// places returns the number of concurrent calls of the server.
func (c ServerConfig) places() int {
	if c.MaxParallel > 0 {
		return c.MaxParallel
	}
	return DefaultMaxParallel
}

// minRoom is the minimum queue length of a server. It lets the steps of a query wait for a server with few concurrent
// calls.
const minRoom = 64

// room returns the number of calls that may wait for the server.
func (c ServerConfig) room() int { return max(c.places(), minRoom) }

// forwarded returns the headers of a caller's request that are forwarded to the server.
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

// TrustsAnnotations reports whether retries may rely on the server's tool annotations.
func (c ServerConfig) TrustsAnnotations() bool {
	return c.TrustAnnotations == nil || *c.TrustAnnotations
}

// ToolFilter selects tools by shell patterns (path.Match) over their own names. An empty Allow allows all.
type ToolFilter struct {
	Allow []string `yaml:"allow"`
	Deny  []string `yaml:"deny"`
}

// allows reports whether the filter admits a tool. The config loader has checked the patterns.
func (f ToolFilter) allows(tool string) bool {
	matches := func(p string) bool {
		ok, _ := path.Match(p, tool)
		return ok
	}
	return (len(f.Allow) == 0 || slices.ContainsFunc(f.Allow, matches)) && !slices.ContainsFunc(f.Deny, matches)
}

// ExecutionConfig limits the steps of a plan.
type ExecutionConfig struct {
	ToolTimeout    time.Duration `yaml:"tool_timeout"`     // idle limit of a step's call; progress resets it
	ToolTimeoutMax time.Duration `yaml:"tool_timeout_max"` // absolute limit; progress does not reset it
	MaxParallel    int           `yaml:"max_parallel"`     // concurrent steps per query
	Attempts       int           `yaml:"attempts"`         // calls per step, first included
	RetryDelay     time.Duration `yaml:"retry_delay"`      // before the second call; doubles
	ConfirmWrites  string        `yaml:"confirm_writes"`   // auto, always or never
}

// HealthConfig controls health checks.
type HealthConfig struct {
	Interval time.Duration `yaml:"interval"`
	Timeout  time.Duration `yaml:"timeout"`
}

// DefaultExecution returns the default limits of steps.
func DefaultExecution() ExecutionConfig {
	return ExecutionConfig{
		ToolTimeout: 30 * time.Second, ToolTimeoutMax: 10 * time.Minute, MaxParallel: 8,
		Attempts: 3, RetryDelay: time.Second, ConfirmWrites: ConfirmAuto,
	}
}

// DefaultHealth returns the default interval and timeout of health checks.
func DefaultHealth() HealthConfig {
	return HealthConfig{Interval: 30 * time.Second, Timeout: 5 * time.Second}
}
