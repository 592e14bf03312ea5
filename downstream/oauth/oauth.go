// Package oauth gets, stores and renews the OAuth tokens of the router for downstream servers, following the MCP
// authorization specification (2025-11-25).
//
// [Login] gets a token with a browser (authorization code with PKCE) or with a secret or private key (client
// credentials). A [Store] keeps tokens in files that only the router's user can read, or in what replicas share. A
// [Source] adds the token of one server to its requests and renews it before it expires, once for all waiting requests
// of all processes. It picks up a token that another process has stored. [Logout] revokes and deletes a token.
// golang.org/x/oauth2 requests tokens; a [guard] sends all requests to URLs that servers name, and checks them first.
//
// A token is bound to the URL of its server and to the client_id that got it, and client_secret to one authorization
// server (see [Server.issuer]). Tokens and secrets never appear in
// errors or logs. Everything is safe for concurrent use.
package oauth

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// Flows to get a token.
const (
	FlowCode              = "code"               // a person logs in with a browser
	FlowClientCredentials = "client_credentials" // the router has a secret or a key
)

// Who shares a token.
const (
	ScopeServer    = "server"     // all callers share one token per server
	ScopePerCaller = "per_caller" // each caller logs in itself
)

// Config configures how the router authenticates to a server.
type Config struct {
	ClientID     string        `yaml:"client_id"` // empty = the router registers itself
	ClientSecret redact.Secret `yaml:"client_secret"`
	PrivateKey   string        `yaml:"private_key"` // file that the client signs with, instead of having a secret; empty = none
	KeyID        string        `yaml:"key_id"`      // of PrivateKey at the authorization server; empty = not sent
	Issuer       string        `yaml:"issuer"`      // authorization server; empty = see Server.issuer
	Scopes       []string      `yaml:"scopes"`      // requested besides those that the server names
	Flow         string        `yaml:"flow"`        // empty = code
	Scope        string        `yaml:"scope"`       // empty = server
}

// Server is a server that needs tokens.
type Server struct {
	Name    string
	Caller  string // that the tokens are for, with scope per_caller; empty = all
	URL     string
	SSE     bool                     // HTTP+SSE instead of streamable HTTP
	Headers map[string]redact.Secret // of every request
	Config
}

// PerCaller reports whether each caller has tokens of its own.
func (c Config) PerCaller() bool { return c.Scope == ScopePerCaller }

// byCredentials reports whether tokens can be had without a person.
func (s Server) byCredentials() bool { return s.Flow == FlowClientCredentials }

// issuer returns the only authorization server that the router deals with for s: the configured one or, as it knows the
// configured client, the one of the stored token of that client. It is empty at the first login, and for a client_id
// that is the URL of a metadata document, which every authorization server can read.
func (s Server) issuer(stored *Token) string {
	if s.Issuer != "" || s.ClientID == "" || stored == nil || stored.Client.ID != s.ClientID ||
		s.ClientSecret == "" && s.PrivateKey == "" && strings.HasPrefix(s.ClientID, "https://") {
		return s.Issuer
	}
	return stored.Issuer
}

// sameIssuer compares issuers without a trailing slash.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// LoginCommand returns the command that gets a token for a server, with further scopes.
func LoginCommand(server string, scopes ...string) string {
	command := "nexus auth login " + server
	for _, scope := range scopes {
		command += " --scope " + scope
	}
	return command
}

// OnLoopback reports whether u refers to this machine. Such a URL need not use https.
func OnLoopback(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ownZone(a) == loopback
}
