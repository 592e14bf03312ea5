package config

import (
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/agenticnexus/agenticnexus/downstream/oauth"
)

// auth checks how the router gets tokens for a server.
func (s serverCheck) auth() {
	a := s.cfg.Auth
	if a == nil {
		return
	}
	if s.cfg.URL == "" {
		s.fail("auth", "is for a url; a command gets its credentials in env")
		return
	}
	if u, err := url.Parse(s.cfg.URL); err == nil && u.Scheme == "http" && !oauth.OnLoopback(u) {
		s.fail("url", "must be https because auth is set: a token would be sent in the clear")
	}
	for name := range s.cfg.Headers {
		if strings.EqualFold(name, "authorization") {
			s.fail("headers."+name, "is written from the token of auth; keep one")
		}
	}
	path := join(s.path, "auth")
	if a.Flow != "" {
		s.d.oneOf(path+".flow", a.Flow, oauth.FlowCode, oauth.FlowClientCredentials)
	}
	switch a.Scope {
	case "", oauth.ScopeServer:
	case "per_caller":
		s.fail("auth.scope", "per_caller is not supported: all callers share the token of a server; write server")
	default:
		s.d.oneOf(path+".scope", a.Scope, oauth.ScopeServer)
	}
	if a.Flow == oauth.FlowClientCredentials && (a.ClientID == "" || a.ClientSecret == "") {
		s.fail("auth", "flow client_credentials needs client_id and client_secret")
	}
	if a.ClientSecret != "" && a.ClientID == "" {
		s.fail("auth.client_secret", "needs a client_id")
	}
	for name, value := range map[string]string{"client_id": a.ClientID, "client_secret": a.ClientSecret.Reveal()} {
		if !httpguts.ValidHeaderFieldValue(value) {
			s.fail("auth."+name, "holds a line break or another control character")
		}
	}
	for i, scope := range a.Scopes {
		if !oauth.ValidScope(scope) {
			s.d.failItem(path+".scopes", i, "is no scope; write one an item")
		}
	}
}
