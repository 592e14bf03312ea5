package oauth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

const (
	maxURL      = 2000    // bytes
	maxMetadata = 1 << 20 // bytes
	maxReason   = 300
)

// site is the metadata of a server and of its authorization server.
type site struct {
	guard    *guard // sends all requests to them
	resource string
	scopes   []string // required by the server
	meta     issuerMetadata
}

// resourceMetadata is the metadata of a protected resource (RFC 9728).
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
}

// issuerMetadata is the metadata of an authorization server (RFC 8414, OpenID Connect Discovery).
type issuerMetadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	ScopesSupported       []string `json:"scopes_supported"`
	TokenAuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
	CodeChallengeMethods  []string `json:"code_challenge_methods_supported"`
	NamesIssuer           bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
}

// check returns an error if an endpoint is missing or must not be used.
func (m issuerMetadata) check() error {
	for _, endpoint := range []struct{ name, address string }{
		{"authorization_endpoint", m.AuthorizationEndpoint}, {"token_endpoint", m.TokenEndpoint},
		{"registration_endpoint", m.RegistrationEndpoint}, {"revocation_endpoint", m.RevocationEndpoint},
	} {
		if endpoint.address == "" {
			continue
		}
		u, err := url.Parse(endpoint.address)
		switch {
		case len(endpoint.address) > maxURL:
			return fmt.Errorf("its %s has more than %d bytes", endpoint.name, maxURL)
		case err != nil:
			return fmt.Errorf("its %s is not a URL", endpoint.name)
		}
		if why := unsafeURL(u); why != "" {
			return fmt.Errorf("its %s cannot be used: %s", endpoint.name, why)
		}
	}
	if m.TokenEndpoint == "" {
		return errors.New("it names no token_endpoint")
	}
	return nil
}

// discover finds the authorization server of a server: first by the challenge of an unauthorized response and the
// protected resource metadata, then by the authorization server metadata. A server without metadata may be its own
// authorization server, with the default endpoints if it has no metadata as such either (MCP 2025-03-26). It contacts
// no other authorization server than only, unless that is empty.
func discover(ctx context.Context, s Server, only string) (*site, error) {
	g, err := newGuard(ctx, s.URL)
	if err != nil {
		return nil, err
	}
	asked, err := challenge(ctx, g, s)
	if err != nil {
		return nil, fmt.Errorf("cannot reach it: %w", cause(err))
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	found := &site{guard: g, resource: s.URL, scopes: plausibleScopes(strings.Fields(asked["scope"]))}
	issuer := origin(u)
	resource, err := g.resource(ctx, u, asked["resource_metadata"])
	bare := asked != nil && errors.Is(err, errNone)
	switch {
	case errors.Is(err, errNone):
	case err != nil:
		return nil, err
	case resource != nil && len(resource.AuthorizationServers) == 0:
		return nil, errors.New("its metadata names no authorization server")
	case resource != nil:
		found.resource, issuer = resource.Resource, resource.AuthorizationServers[0]
		if slices.ContainsFunc(resource.AuthorizationServers, func(i string) bool { return sameIssuer(i, only) }) {
			issuer = only
		}
		if len(found.scopes) == 0 {
			found.scopes = plausibleScopes(resource.ScopesSupported)
		}
	}
	if only != "" && !sameIssuer(issuer, only) {
		return nil, &refusal{fmt.Sprintf("it names the authorization server %.200q, but the router deals only with %q; "+
			"if that has moved, set auth.issuer, or run nexus auth logout %s and log in again", issuer, only, s.Name)}
	}
	found.meta, err = g.issuer(ctx, issuer)
	if bare && errors.Is(err, errNone) {
		found.meta, err = defaults(issuer), nil
	}
	if err != nil {
		return nil, fmt.Errorf("the metadata of its authorization server %.200q cannot be used: %w", issuer, brief(err))
	}
	switch {
	case s.byCredentials():
	case found.meta.AuthorizationEndpoint == "":
		return nil, fmt.Errorf("its authorization server %.200q names no authorization_endpoint", issuer)
	case !slices.Contains(found.meta.CodeChallengeMethods, "S256"):
		return nil, fmt.Errorf("its authorization server %.200q does not offer PKCE with S256", issuer)
	}
	return found, nil
}

// defaults is the metadata of a server of MCP 2025-03-26 that has none.
func defaults(root string) issuerMetadata {
	return issuerMetadata{
		Issuer: root, AuthorizationEndpoint: root + "/authorize", TokenEndpoint: root + "/token",
		RegistrationEndpoint: root + "/register", CodeChallengeMethods: []string{"S256"}, // that version requires PKCE
	}
}

// brief returns a one-line description of an error, which may contain text from a server.
func brief(err error) error {
	return errors.New(texts.Line(redact.Text(cause(err).Error()), maxReason))
}

// cause returns an error without the URL of the request.
func cause(err error) error {
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		return wrong.Err
	}
	return err
}

// challenge sends a request without a token and returns the parameters of the response's challenge; nil if it is not
// refused.
func challenge(ctx context.Context, g *guard, s Server) (map[string]string, error) {
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
	discard(resp)
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return nil, nil
	}
	return challengeOf(resp), nil
}

// challengePart matches a parameter of a challenge, or else a scheme (RFC 9110 §11.6.1).
var challengePart = regexp.MustCompile(`([\w!#$%&'*+.^|~-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+)))?`)

// challengeOf returns the first values of the parameters of a response's Bearer challenges, by name in lower case.
func challengeOf(resp *http.Response) map[string]string {
	params := map[string]string{}
	for _, header := range resp.Header.Values("WWW-Authenticate") {
		scheme := ""
		for _, part := range challengePart.FindAllStringSubmatch(header, -1) {
			name, value := strings.ToLower(part[1]), cmp.Or(escaped.ReplaceAllString(part[2], "$1"), part[3])
			if part[0] == part[1] {
				scheme = name
			} else if params[name] == "" && (scheme == "bearer" || name == "resource_metadata") {
				params[name] = value
			}
		}
	}
	return params
}

var escaped = regexp.MustCompile(`\\(.)`)

// errNone means that a server answered that it has no metadata at any of the URLs.
var errNone = errors.New("there is none")

// resource reads the protected resource metadata from the URL in the challenge, else from the well-known URLs, where it
// returns nil or errNone if there is none. All URLs must be on the server itself, and the metadata must describe the
// server's URL or its origin.
func (g *guard) resource(ctx context.Context, server *url.URL, named string) (*resourceMetadata, error) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	root := origin(server)
	addresses := []string{root + wellKnown + strings.TrimSuffix(server.EscapedPath(), "/"), root + wellKnown}
	if named != "" {
		u, err := url.Parse(named)
		if err != nil || u.Scheme != server.Scheme || u.Host != server.Host {
			return nil, fmt.Errorf("it names metadata at %.200q, which is not on the server itself", named)
		}
		addresses = []string{named}
	}
	failed, none := error(nil), true
	for _, address := range addresses {
		var meta resourceMetadata
		status, err := g.get(ctx, address, &meta)
		none = none && absent(status)
		if about := meta.Resource; err == nil && about != server.String() && about != root && about != root+"/" {
			err = fmt.Errorf("it describes %.200q", about)
		}
		if err == nil {
			return &meta, nil
		}
		failed = cmp.Or(failed, err)
	}
	if named != "" {
		return nil, fmt.Errorf("its metadata cannot be used: %w", brief(failed))
	}
	if none {
		return nil, errNone
	}
	return nil, nil
}

// absent reports whether a status means that there is no such document.
func absent(status int) bool { return 400 <= status && status < 500 }

// issuer reads the metadata of an authorization server from the well-known URLs.
func (g *guard) issuer(ctx context.Context, issuer string) (issuerMetadata, error) {
	const oauth, openID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	issuer = strings.TrimSuffix(issuer, "/")
	u, err := url.Parse(issuer)
	if err != nil {
		return issuerMetadata{}, errors.New("it is not a URL")
	}
	root, path := origin(u), u.EscapedPath()
	addresses := []string{root + oauth + path, root + openID + path}
	if path != "" {
		addresses = append(addresses, root+path+openID)
	}
	for _, address := range addresses {
		var meta issuerMetadata
		status, err := g.get(ctx, address, &meta)
		if absent(status) {
			continue
		}
		if err == nil && !sameIssuer(meta.Issuer, issuer) {
			err = fmt.Errorf("its issuer %.200q does not match", meta.Issuer)
		}
		return meta, cmp.Or(err, meta.check())
	}
	return issuerMetadata{}, errNone
}

// get reads a JSON document into out.
func (g *guard) get(ctx context.Context, address string, out any) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return 0, err
	}
	status, err = g.send(req, out)
	if status >= 300 {
		err = fmt.Errorf("status %d", status)
	}
	return status, err
}

// send sends a request and decodes its response, a JSON document, into out.
func (g *guard) send(req *http.Request, out any) (status int, err error) {
	req.Header.Set("Accept", "application/json")
	resp, err := g.client().Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "application/json" {
		return resp.StatusCode, fmt.Errorf("content of type %.60q", kind)
	}
	return resp.StatusCode, json.NewDecoder(io.LimitReader(resp.Body, maxMetadata)).Decode(out)
}

// registration is what an authorization server answers to a registration (RFC 7591).
type registration struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	AuthMethod   string `json:"token_endpoint_auth_method"`
	Error        string `json:"error"`
	Description  string `json:"error_description"`
}

// register registers the router as a client of the authorization server.
func (found *site) register(ctx context.Context, redirect string, scopes []string) (client, error) {
	issuer, endpoint := found.meta.Issuer, found.meta.RegistrationEndpoint
	kind, where := "web", redirect
	if u, err := url.Parse(redirect); err == nil && OnLoopback(u) {
		kind, where = "native", "http://127.0.0.1 on any port"
	}
	if endpoint == "" {
		return client{}, fmt.Errorf("%s does not support client registration; register one there, with a redirect to %s, and set client_id",
			issuer, where)
	}
	body, err := json.Marshal(map[string]any{
		"redirect_uris": []string{redirect}, "token_endpoint_auth_method": "none", "application_type": kind,
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
		"client_name": "AgenticNexus", "scope": strings.Join(scopes, " "),
	})
	if err != nil {
		return client{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return client{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	var got registration
	status, err := found.guard.send(req, &got) // an error of decoding may quote a secret
	switch ok := status == http.StatusOK || status == http.StatusCreated; {
	case status == 0:
		return client{}, fmt.Errorf("cannot reach %s to register: %w", host(endpoint), cause(err))
	case ok && err == nil && got.ClientID != "":
		return client{
			ID: got.ClientID, Secret: got.ClientSecret, Registered: true,
			InHeader: got.AuthMethod == "" || got.AuthMethod == "client_secret_basic",
		}, nil
	case !ok && got.Error != "":
		return client{}, fmt.Errorf("%s does not register the router: %s; register a client there and set client_id",
			issuer, said(nil, got.Error, got.Description))
	}
	return client{}, fmt.Errorf("%s does not register the router (it answers %d); register a client there and set client_id",
		issuer, status)
}
