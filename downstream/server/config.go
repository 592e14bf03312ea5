package server

import (
	"cmp"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/texts"
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

// DefaultMaxParallel is the default number of concurrent calls per server.
const DefaultMaxParallel = 4096

// Config describes one downstream server. The zero Type is resolved by the config loader.
type Config struct {
	Name             string                   `yaml:"-"`
	Type             string                   `yaml:"type"` // stdio, http or sse
	URL              string                   `yaml:"url"`
	Headers          map[string]redact.Secret `yaml:"headers"`
	ForwardHeaders   []string                 `yaml:"forward_headers"` // headers of the caller to forward
	Command          string                   `yaml:"command"`
	Args             []string                 `yaml:"args"`
	Env              map[string]redact.Secret `yaml:"env"`
	Cwd              string                   `yaml:"cwd"`
	Timeout          time.Duration            `yaml:"timeout"`         // 0 = proxy.timeout and execution.tool_timeout
	ConnectTimeout   time.Duration            `yaml:"connect_timeout"` // of one attempt; 0 = 15 s, 120 s for commands
	MaxParallel      int                      `yaml:"max_parallel"`    // concurrent calls; 0 = DefaultMaxParallel
	Disabled         bool                     `yaml:"disabled"`
	Tools            ToolFilter               `yaml:"tools"`
	Session          string                   `yaml:"session"`           // "", shared or per_client
	TrustAnnotations *bool                    `yaml:"trust_annotations"` // nil = true
	Requests         []string                 `yaml:"requests"`          // what it may ask of clients; nil = everything
	Auth             *oauth.Config            `yaml:"auth"`              // nil = no OAuth tokens
	Data             string                   `yaml:"data"`              // "", private or public
	Placement        string                   `yaml:"placement"`         // "", each or one

	Unusable string            `yaml:"-"`          // why it is disabled nevertheless; empty = it is not
	Replica  string            `yaml:"-" json:"-"` // of a cluster that alone runs the server; empty = each does, or none
	Via      http.RoundTripper `yaml:"-" json:"-"` // for requests to that replica; comparable; nil = not needed
	Lease    Lease             `yaml:"-" json:"-"` // under which this replica runs the server; comparable; nil = none
}

// Lease lets a replica of a cluster use a server that runs at one of them alone.
type Lease interface {
	// Acts returns nil as long as no other replica may run the server. It does not block.
	Acts() error
}

// Values of placement: which replicas of a cluster run the server.
const (
	PlacementEach = "each" // every replica, the default
	PlacementOne  = "one"  // one replica; the others reach the server there
)

// Values of data.
const (
	DataPrivate = "private" // results are confidential
	DataPublic  = "public"
)

// Private reports whether the server's results are confidential.
func (c Config) Private() bool { return c.Data == DataPrivate }

// held reports whether this process may use the server of a lease.
func held(l Lease) bool { return l == nil || l.Acts() == nil }

// OAuth returns the server's OAuth settings; ok is false if it needs no tokens.
func (c Config) OAuth() (s oauth.Server, ok bool) {
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
func (c Config) ConnectLimit() time.Duration {
	switch {
	case c.ConnectTimeout > 0:
		return c.ConnectTimeout
	case c.Command != "":
		return DefaultCommandConnectTimeout
	}
	return DefaultConnectTimeout
}

// maxCalls returns the limit of concurrent calls of the server.
func (c Config) maxCalls() int { return cmp.Or(max(c.MaxParallel, 0), DefaultMaxParallel) }

// minQueue is the minimum queue length of a server. It lets the steps of a query wait for a server with few concurrent
// calls.
const minQueue = 64

// maxWaiting returns the limit of calls that wait for the server.
func (c Config) maxWaiting() int { return max(c.maxCalls(), minQueue) }

// Forwarded returns the headers of a caller's request that are forwarded to the server.
func (c Config) Forwarded(from http.Header) (to http.Header) {
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

// PerClient reports whether each client has its own session on the proxy surfaces.
func (c Config) PerClient() bool {
	return c.Session == SessionPerClient || c.Session == "" && c.URL != ""
}

// PerCaller reports whether each caller has a login of its own, and all sessions are of one caller.
func (c Config) PerCaller() bool { return c.Auth != nil && c.Auth.PerCaller() }

// TrustsAnnotations reports whether retries may rely on the server's tool annotations.
func (c Config) TrustsAnnotations() bool {
	return c.TrustAnnotations == nil || *c.TrustAnnotations
}

// Requests of servers to clients, as values of Config.Requests.
const (
	RequestElicitation = "elicitation"
	RequestSampling    = "sampling"
	RequestRoots       = "roots"
)

// MayAsk reports whether the server may send a request to clients.
func (c Config) MayAsk(method string) bool {
	kind, _, _ := strings.Cut(method, "/")
	return c.Requests == nil || method == "ping" || slices.Contains(c.Requests, kind)
}

// WhatHelps says what to do about a request of the server that may belong to calls of several clients.
func (c Config) WhatHelps() string {
	return "Call again when the other calls have ended; one that waits for its user ends within 1 minute then. " +
		"Set session: per_client for the server " + c.Name + " to keep clients with sessions apart"
}

// Announced returns the raw capabilities of a client without those to answer what the server may not ask.
func (c Config) Announced(capabilities []byte) []byte {
	if c.Requests == nil {
		return capabilities
	}
	for _, kind := range [...]string{RequestElicitation, RequestSampling, RequestRoots} {
		if slices.Contains(c.Requests, kind) {
			continue
		}
		capabilities = jsonrpc.Remove(capabilities, kind)
		tasks := jsonrpc.Get(capabilities, "tasks")
		if requests := jsonrpc.Get(tasks, "requests"); requests != nil {
			requests = jsonrpc.Remove(requests, kind)
			capabilities = jsonrpc.Set(capabilities, "tasks", jsonrpc.Set(tasks, "requests", requests))
		}
	}
	return capabilities
}

// ToolFilter selects tools by shell patterns (path.Match) over their own names. An empty Allow allows all.
type ToolFilter struct {
	Allow []string `yaml:"allow"`
	Deny  []string `yaml:"deny"`
}

// Allows reports whether the filter admits a tool. The config loader has checked the patterns.
func (f ToolFilter) Allows(tool string) bool {
	mask := strings.NewReplacer("/", "\x00").Replace // slashes are masked, so that * also matches them
	matches := func(pattern string) bool {
		ok, _ := path.Match(mask(pattern), mask(tool))
		return ok
	}
	if len(f.Allow) > 0 && !slices.ContainsFunc(f.Allow, matches) || slices.ContainsFunc(f.Deny, matches) {
		return false
	}
	shown := texts.VisibleName(tool) // what people see and write
	if len(f.Deny) == 0 || shown == tool {
		return true
	}
	tool = shown
	return !slices.ContainsFunc(f.Deny, matches)
}

// HealthConfig controls health checks.
type HealthConfig struct {
	Interval time.Duration `yaml:"interval"`
	Timeout  time.Duration `yaml:"timeout"`
}

// DefaultHealth returns the default interval and timeout of health checks.
func DefaultHealth() HealthConfig {
	return HealthConfig{Interval: 30 * time.Second, Timeout: 5 * time.Second}
}
