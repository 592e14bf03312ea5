// Package oauth gets, keeps and renews the OAuth tokens with which the router is let in by servers, as the MCP
// authorization specification (2025-11-25) has it.
//
// [Login] gets a token with a browser (authorization code with PKCE) or with a secret (client credentials). A [Store]
// keeps tokens in files that only the router's user may read. A [Source] adds the token of one server to its requests
// and renews it ahead of its expiry, once for all who need it; it takes over a token that another process has stored.
// [Logout] revokes a token and deletes it. Metadata, registration and challenges are read by oauthex of the official
// MCP SDK, and tokens are requested with golang.org/x/oauth2; what servers name is checked by a [guard] first.
//
// A token belongs to the URL of its server and to the client_id that got it: with others it is not used. Tokens and
// secrets are never part of an error or a log. Everything is safe for concurrent use.
package oauth

import (
	"net/url"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/secret"
)

// How a token is got.
const (
	FlowCode              = "code"               // a person logs in with a browser
	FlowClientCredentials = "client_credentials" // the router has a secret
)

// ScopeServer means that all callers share the token of a server.
const ScopeServer = "server"

// Config says how a server lets the router in.
type Config struct {
	ClientID     string        `yaml:"client_id"` // empty = the router registers itself
	ClientSecret secret.String `yaml:"client_secret"`
	Scopes       []string      `yaml:"scopes"` // empty = those that the server names
	Flow         string        `yaml:"flow"`   // empty = code
	Scope        string        `yaml:"scope"`  // empty = server
}

// Server is a server that wants tokens.
type Server struct {
	Name    string
	URL     string
	SSE     bool                     // HTTP+SSE instead of streamable HTTP
	Headers map[string]secret.String // of every request
	Config
}

// byCredentials reports whether a token takes no person.
func (s Server) byCredentials() bool { return s.Flow == FlowClientCredentials }

// LoginCommand is what gets a token for a server.
func LoginCommand(server string) string { return "nexus auth login " + server }

// OnLoopback reports whether u names this machine. Such a URL need not be https.
func OnLoopback(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	return host == "localhost" || zoneOf(host) == loopback
}
