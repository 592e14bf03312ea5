package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

const (
	maxScopes     = 100
	maxScopeBytes = 200
	maxURL        = 2000 // bytes
	maxReason     = 300
)

// site is the metadata of a server and of its authorization server.
type site struct {
	guard    *guard // sends all requests to them
	resource string
	scopes   []string // required by the server
	meta     *oauthex.AuthServerMeta
}

// discover finds the authorization server of a server: first by the challenge of an unauthorized response and the
// protected resource metadata (RFC 9728), then by the authorization server metadata (RFC 8414, OpenID Connect
// Discovery). A server without metadata may be its own authorization server (MCP 2025-03-26).
func discover(ctx context.Context, s Server) (*site, error) {
	g, err := newGuard(ctx, s.URL)
	if err != nil {
		return nil, err
	}
	challenges, err := challenge(ctx, g, s)
	if err != nil {
		return nil, fmt.Errorf("cannot reach it: %w", cause(err))
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	found := &site{guard: g, resource: s.URL, scopes: plausibleScopes(strings.Fields(param(challenges, "scope")))}
	issuer := origin(u)
	switch resource, err := resourceMetadata(ctx, g, u, param(challenges, "resource_metadata")); {
	case err != nil:
		return nil, err
	case resource != nil && len(resource.AuthorizationServers) == 0:
		return nil, errors.New("its metadata names no authorization server")
	case resource != nil:
		found.resource, issuer = resource.Resource, resource.AuthorizationServers[0]
		if len(found.scopes) == 0 {
			found.scopes = plausibleScopes(resource.ScopesSupported)
		}
	}
	found.meta, err = auth.GetAuthServerMetadata(ctx, strings.TrimSuffix(issuer, "/"), g.client())
	switch {
	case err != nil:
		return nil, fmt.Errorf("the metadata of its authorization server %.200q cannot be used: %w", issuer, brief(err))
	case found.meta == nil:
		return nil, fmt.Errorf("there is no metadata of an authorization server at %.200q", issuer)
	case !s.byCredentials() && !slices.Contains(found.meta.CodeChallengeMethodsSupported, "S256"):
		return nil, fmt.Errorf("its authorization server %.200q does not offer PKCE with S256", issuer)
	}
	m := found.meta
	named := []string{m.Issuer, m.TokenEndpoint, m.AuthorizationEndpoint, m.RegistrationEndpoint, m.RevocationEndpoint}
	for _, address := range named {
		if len(address) > maxURL {
			return nil, fmt.Errorf("its authorization server %.200q names a URL of more than %d bytes", issuer, maxURL)
		}
	}
	return found, nil
}

// brief returns a one-line description of an error, which may contain text from a server.
func brief(err error) error {
	return errors.New(redact.Text(short.Line(cause(err).Error(), maxReason)))
}

// challenge sends a request without a token and returns the challenges of the response.
func challenge(ctx context.Context, g *guard, s Server) ([]oauthex.Challenge, error) {
	method, body := http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if s.SSE {
		method, body = http.MethodGet, ""
	}
	req, err := http.NewRequestWithContext(ctx, method, s.URL, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range s.Headers {
		req.Header.Set(name, value.Reveal())
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	client := g.client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return nil, nil
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 16<<10))
	return challengesOf(resp), nil
}

// challengesOf returns the readable challenges of a response.
func challengesOf(resp *http.Response) []oauthex.Challenge {
	challenges, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil
	}
	return challenges
}

// param returns a parameter from the first challenge that has it.
func param(challenges []oauthex.Challenge, name string) string {
	for _, c := range challenges {
		if value := c.Params[name]; value != "" && (c.Scheme == "bearer" || name == "resource_metadata") {
			return value
		}
	}
	return ""
}

// plausibleScopes limits the scopes that a server names and drops invalid ones.
func plausibleScopes(scopes []string) []string {
	var out []string
	for _, s := range scopes {
		if len(out) < maxScopes && ValidScope(s) {
			out = append(out, s)
		}
	}
	return out
}

// ValidScope reports whether s is a valid scope token (RFC 6749 §3.3).
func ValidScope(s string) bool {
	return s != "" && len(s) <= maxScopeBytes && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '"' || r == '\\'
	})
}

// resourceMetadata reads the protected resource metadata from the URL in the challenge, else from the well-known
// URLs. It returns nil if there is none. All URLs must be on the server itself, and the metadata must describe the
// server's URL or its origin.
func resourceMetadata(
	ctx context.Context, g *guard, server *url.URL, named string,
) (*oauthex.ProtectedResourceMetadata, error) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	root := origin(server)
	type attempt struct{ at, about string }
	attempts := []attempt{
		{root + wellKnown + strings.TrimSuffix(server.EscapedPath(), "/"), server.String()},
		{root + wellKnown, root}, {root + wellKnown, root + "/"}, {root + wellKnown, server.String()},
	}
	if named != "" {
		u, err := url.Parse(named)
		if err != nil || u.Scheme != server.Scheme || u.Host != server.Host {
			return nil, fmt.Errorf("it names metadata at %.200q, which is not on the server itself", named)
		}
		attempts = []attempt{{named, server.String()}, {named, root}, {named, root + "/"}}
	}
	var failed error
	for _, a := range attempts {
		meta, err := oauthex.GetProtectedResourceMetadata(ctx, a.at, a.about, g.client())
		if err == nil {
			return meta, nil
		}
		failed = cmp.Or(failed, err)
	}
	if named != "" {
		return nil, fmt.Errorf("its metadata cannot be used: %w", brief(failed))
	}
	return nil, nil
}

// cause returns an error without the URL of the request.
func cause(err error) error {
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		return wrong.Err
	}
	return err
}
