package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// ahead is how long before its expiry a token is renewed, at most. It is longer than the time between two checks of a
// server's health, so that a token is renewed before a call needs it.
const ahead = 2 * time.Minute

// Token is what lets the router in at a server, with all that it takes to renew and revoke it.
type Token struct {
	Server  string    `json:"server"`
	URL     string    `json:"url"` // of the server
	Flow    string    `json:"flow"`
	Scopes  []string  `json:"scopes,omitempty"`
	Began   time.Time `json:"began"`
	Expires time.Time `json:"expires,omitzero"` // zero = not told

	Issuer   string `json:"issuer"`
	Resource string `json:"resource"`
	Endpoint string `json:"token_endpoint"`
	Revoker  string `json:"revocation_endpoint,omitempty"`
	Client   client `json:"client"`

	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token,omitempty"`
}

// client is how the router is known at the authorization server.
type client struct {
	ID         string `json:"id"`
	Secret     string `json:"secret,omitempty"` // of a registration; that of the configuration is not kept
	Registered bool   `json:"registered,omitempty"`
	InHeader   bool   `json:"in_header,omitempty"` // the secret is sent as basic credentials
}

// String implements fmt.Stringer, without what is secret.
func (t *Token) String() string { return "token for " + t.Server }

// Of reports whether the token may be sent to a server as it is configured now.
func (t *Token) Of(s Server) bool {
	return t.Server == s.Name && t.URL == s.URL && t.byCredentials() == s.byCredentials() &&
		t.Client.Registered == (s.ClientID == "") && (s.ClientID == "" || t.Client.ID == s.ClientID)
}

func (t *Token) byCredentials() bool { return t.Flow == FlowClientCredentials }

// Renewable reports whether another token can be had without a person.
func (t *Token) Renewable() bool { return t.Refresh != "" || t.byCredentials() }

// Expired reports whether the token has ended.
func (t *Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// due reports whether the token is to be renewed.
func (t *Token) due(now time.Time) bool {
	return !t.Expires.IsZero() && !now.Before(t.Expires.Add(-min(ahead, t.Expires.Sub(t.Began)/4)))
}

// refusal is the error of an authorization server that will not give a token, however often it is asked.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

// request asks for a token with a grant, and returns t with it.
func (t *Token) request(ctx context.Context, g *guard, s Server, grant url.Values) (*Token, error) {
	secret := t.Client.Secret
	if s.ClientID != "" {
		secret = s.ClientSecret.Reveal()
	}
	style := oauth2.AuthStyleInParams
	if t.Client.InHeader && secret != "" {
		style = oauth2.AuthStyleInHeader
	}
	grant.Set("resource", t.Resource)
	// The package sends any grant: only so can resource go with a refresh token, as MCP asks.
	request := clientcredentials.Config{
		ClientID: t.Client.ID, ClientSecret: secret, TokenURL: t.Endpoint, AuthStyle: style, EndpointParams: grant,
	}
	began := time.Now()
	got, err := request.Token(context.WithValue(ctx, oauth2.HTTPClient, g.client()))
	if err != nil {
		return nil, t.explain(err)
	}
	next := *t
	next.Access, next.Expires, next.Began = got.AccessToken, got.Expiry.UTC(), began.UTC()
	if got.RefreshToken != "" {
		next.Refresh = got.RefreshToken // the former one counts no more
	}
	if scope, ok := got.Extra("scope").(string); ok && scope != "" {
		next.Scopes = plausibleScopes(strings.Fields(scope))
	}
	switch {
	case !strings.EqualFold(got.Type(), "bearer"):
		return nil, &refusal{fmt.Sprintf("%s gives tokens of type %.20q, which the router cannot use", t.Issuer, got.TokenType)}
	case !httpguts.ValidHeaderFieldValue(got.AccessToken):
		return nil, &refusal{t.Issuer + " gave a token that no header can hold"}
	}
	return &next, nil
}

// explain turns an error of a token request into one without secrets.
func (t *Token) explain(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		if wrong, ok := errors.AsType[*url.Error](err); ok {
			return fmt.Errorf("cannot reach %s: %w", host(t.Endpoint), wrong.Err)
		}
		return fmt.Errorf("the answer of %s is no token", host(t.Endpoint))
	}
	status := refused.Response.StatusCode
	final := status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
	if refused.ErrorCode == "" {
		why := fmt.Sprintf("%s answered %d", host(t.Endpoint), status)
		if final && status != http.StatusNotFound {
			return &refusal{why}
		}
		return errors.New(why)
	}
	why := fmt.Sprintf("%s refuses: %s", host(t.Endpoint), said(refused.ErrorCode, refused.ErrorDescription))
	if transient := []string{"temporarily_unavailable", "server_error", "slow_down"}; slices.Contains(transient, refused.ErrorCode) {
		return errors.New(why)
	}
	return &refusal{why}
}

// said is what an authorization server says of an error, bounded and without credentials.
func said(code, description string) string {
	text := short.Line(code, 60)
	if description != "" {
		text += " (" + short.Line(description, 200) + ")"
	}
	return redact.Text(text)
}

func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the authorization server"
	}
	return u.Host
}

// renew returns the next token.
func (t *Token) renew(ctx context.Context, s Server) (*Token, error) {
	if t.byCredentials() {
		return byCredentials(ctx, s)
	}
	g, err := newGuard(ctx, s.URL)
	if err != nil {
		return nil, err
	}
	return t.request(ctx, g, s, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {t.Refresh}})
}

// byCredentials returns a token for the router's own secret.
func byCredentials(ctx context.Context, s Server) (*Token, error) {
	found, err := discover(ctx, s)
	if err != nil {
		return nil, err
	}
	grant := url.Values{"grant_type": {FlowClientCredentials}}
	t := newToken(s, found)
	if t.Scopes = s.Scopes; len(t.Scopes) == 0 {
		t.Scopes = found.scopes
	}
	if len(t.Scopes) > 0 {
		grant.Set("scope", strings.Join(t.Scopes, " "))
	}
	return t.request(ctx, found.guard, s, grant)
}

// newToken returns the frame of a token: what there is before it is requested.
func newToken(s Server, found *site) *Token {
	methods := found.meta.TokenEndpointAuthMethodsSupported
	t := &Token{
		Server: s.Name, URL: s.URL, Flow: FlowCode, Issuer: found.meta.Issuer, Resource: found.resource,
		Endpoint: found.meta.TokenEndpoint, Revoker: found.meta.RevocationEndpoint,
		// RFC 8414: without a list it is client_secret_basic.
		Client: client{ID: s.ClientID, InHeader: len(methods) == 0 || slices.Contains(methods, "client_secret_basic")},
	}
	if s.byCredentials() {
		t.Flow = FlowClientCredentials
	}
	return t
}
