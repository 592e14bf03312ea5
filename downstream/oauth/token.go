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
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// ahead is the maximum time before expiry at which a token is renewed. It exceeds the interval of health checks, so
// that a token is renewed before a call needs it.
const ahead = 2 * time.Minute

// Token is a token for a server, with the data needed to renew and revoke it.
type Token struct {
	Server  string    `json:"server"`
	URL     string    `json:"url"` // of the server
	Flow    string    `json:"flow"`
	Scopes  []string  `json:"scopes,omitempty"`
	Caller  string    `json:"caller,omitempty"` // name of the caller who logged in; empty = it is for all
	Since   time.Time `json:"since,omitzero"`   // when a person logged in; renewals keep it
	Began   time.Time `json:"began"`
	Expires time.Time `json:"expires,omitzero"` // zero = unknown

	Issuer   string `json:"issuer"`
	Resource string `json:"resource"`
	Endpoint string `json:"token_endpoint"`
	Revoker  string `json:"revocation_endpoint,omitempty"`
	Client   client `json:"client"`

	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token,omitempty"`
}

// client is the router's registration at the authorization server.
type client struct {
	ID         string `json:"id"`
	Secret     string `json:"secret,omitempty"` // from a registration; a configured secret is not stored
	Registered bool   `json:"registered,omitempty"`
	InHeader   bool   `json:"in_header,omitempty"` // send the secret as HTTP basic credentials
}

// String implements fmt.Stringer and omits secrets.
func (t *Token) String() string { return "token for " + t.Server }

// Of reports whether the token may be sent to a server with its current configuration.
func (t *Token) Of(s Server) bool {
	return t.Server == s.Name && t.URL == s.URL && t.byCredentials() == s.byCredentials() &&
		t.Client.Registered == (s.ClientID == "") && (s.ClientID == "" || t.Client.ID == s.ClientID) && t.issuedFor(s)
}

// issuedFor reports whether the token is from an authorization server that may get the configured secret.
func (t *Token) issuedFor(s Server) bool {
	return t.Issuer != "" && (s.Issuer == "" || sameIssuer(t.Issuer, s.Issuer))
}

func (t *Token) byCredentials() bool { return t.Flow == FlowClientCredentials }

// Renewable reports whether the token can be renewed without a person.
func (t *Token) Renewable() bool { return t.Refresh != "" || t.byCredentials() }

// Expired reports whether the token has expired.
func (t *Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// due reports whether the token should be renewed.
func (t *Token) due(now time.Time) bool {
	return !t.Expires.IsZero() && !now.Before(t.Expires.Add(-min(ahead, t.Expires.Sub(t.Began)/4)))
}

// refusal is the final error of an authorization server that refuses a token.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

// secret returns the secret of the client: the configured one, or the one of its registration. It is empty if the
// authorization server may not get it.
func (t *Token) secret(s Server) string {
	switch {
	case s.ClientID != t.Client.ID:
		return t.Client.Secret
	case !t.knows(s):
		return ""
	}
	return s.ClientSecret.Reveal()
}

// knows reports whether the configured client is the one of t, at the same authorization server.
func (t *Token) knows(s Server) bool { return s.ClientID == t.Client.ID && t.issuedFor(s) }

// request requests a token with a grant and returns a copy of t with it.
func (t *Token) request(ctx context.Context, g *guard, s Server, grant url.Values) (*Token, error) {
	secret := t.secret(s)
	style := oauth2.AuthStyleInParams
	if t.Client.InHeader && secret != "" {
		style = oauth2.AuthStyleInHeader
	}
	grant.Set("resource", t.Resource)
	if err := t.sign(s, grant); err != nil {
		return nil, err
	}
	// This package can send any grant; only so can resource accompany a refresh token, as MCP requires.
	request := clientcredentials.Config{
		ClientID: t.Client.ID, ClientSecret: secret, TokenURL: t.Endpoint, AuthStyle: style, EndpointParams: grant,
	}
	began := time.Now()
	got, err := request.Token(context.WithValue(ctx, oauth2.HTTPClient, g.client()))
	if err != nil {
		return nil, t.explain(err, redact.NewMasker([]string{secret, grant.Get("client_assertion"), t.Access, t.Refresh}))
	}
	next := *t
	next.Access, next.Expires, next.Began = got.AccessToken, got.Expiry.UTC(), began.UTC()
	if got.RefreshToken != "" {
		next.Refresh = got.RefreshToken // the previous one is no longer valid
	}
	if scope, ok := got.Extra("scope").(string); ok && scope != "" {
		next.Scopes = plausibleScopes(strings.Fields(scope))
	}
	switch {
	case !strings.EqualFold(got.Type(), "bearer"):
		return nil, &refusal{fmt.Sprintf("%s issues tokens of type %.20q, which the router does not support", t.Issuer, got.TokenType)}
	case !httpguts.ValidHeaderFieldValue(got.AccessToken):
		return nil, &refusal{t.Issuer + " issued a token with invalid characters"}
	}
	return &next, nil
}

// explain converts an error of a token request to one without secrets, which the server may repeat.
func (t *Token) explain(err error, secrets *redact.Masker) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		if wrong, ok := errors.AsType[*url.Error](err); ok {
			return fmt.Errorf("cannot reach %s: %w", host(t.Endpoint), wrong.Err)
		}
		return fmt.Errorf("the response of %s is not a token", host(t.Endpoint))
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
	why := fmt.Sprintf("%s refuses: %s", host(t.Endpoint), said(secrets, refused.ErrorCode, refused.ErrorDescription))
	if transient := []string{"temporarily_unavailable", "server_error", "slow_down"}; slices.Contains(transient, refused.ErrorCode) {
		return errors.New(why)
	}
	return &refusal{why}
}

// said formats an error of an authorization server, limited in length and without credentials. secrets may be nil.
func said(secrets *redact.Masker, code, description string) string {
	text := texts.Line(secrets.Text(code), 60)
	if description != "" {
		text += " (" + texts.Line(secrets.Text(description), 200) + ")"
	}
	return text
}

func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the authorization server"
	}
	return u.Host
}

// renew returns the next token, had with the refresh token. more are scopes that t lacks.
func (t *Token) renew(ctx context.Context, s Server, more []string) (*Token, error) {
	g, err := newGuard(ctx, s.URL)
	if err != nil {
		return nil, err
	}
	grant := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {t.Refresh}}
	if len(more) > 0 {
		wider := *t
		wider.Scopes = union(t.Scopes, more)
		grant.Set("scope", strings.Join(wider.Scopes, " "))
		t = &wider
	}
	return t.request(ctx, g, s, grant)
}

// byCredentials gets a token with the router's own secret, which it sends to no other issuer than only, unless that is
// empty. more are scopes besides those of the configuration and those that the server names.
func byCredentials(ctx context.Context, s Server, only string, more []string) (*Token, error) {
	found, err := discover(ctx, s, only)
	if err != nil {
		return nil, err
	}
	grant := url.Values{"grant_type": {FlowClientCredentials}}
	t := newToken(s, found)
	if t.Scopes = union(s.Scopes, found.scopes, more); len(t.Scopes) > 0 {
		grant.Set("scope", strings.Join(t.Scopes, " "))
	}
	return t.request(ctx, found.guard, s, grant)
}

// newToken returns a token with everything except the results of a request.
func newToken(s Server, found *site) *Token {
	methods := found.meta.TokenAuthMethods
	t := &Token{
		Server: s.Name, URL: s.URL, Flow: FlowCode, Issuer: found.meta.Issuer, Resource: found.resource,
		Endpoint: found.meta.TokenEndpoint, Revoker: found.meta.RevocationEndpoint,
		// RFC 8414: the default is client_secret_basic.
		Client: client{ID: s.ClientID, InHeader: len(methods) == 0 || slices.Contains(methods, "client_secret_basic")},
	}
	if s.byCredentials() {
		t.Flow = FlowClientCredentials
	}
	return t
}

// Logout revokes the stored token of a server if the authorization server supports it (RFC 7009), and always deletes
// it. known is false if there is no token. The error tells why it could not be revoked or deleted.
func Logout(ctx context.Context, s Server, store Store) (known bool, err error) {
	held, unlock, err := store.lock(ctx, s.Name)
	if err != nil {
		return false, err
	}
	defer unlock()
	t, err := store.Load(s.Name)
	if err != nil || t == nil {
		return false, err
	}
	revoked := t.revoke(held, s)
	if err := store.keeper.remove(ctx, s.Name); err != nil {
		return true, err
	}
	return true, revoked
}

// revoke revokes the refresh token first, then the access token.
func (t *Token) revoke(ctx context.Context, s Server) error {
	if t.Revoker == "" {
		return nil
	}
	g, err := newGuard(ctx, t.URL)
	if err != nil {
		return err
	}
	for _, kind := range []struct{ hint, token string }{{"refresh_token", t.Refresh}, {"access_token", t.Access}} {
		if kind.token == "" {
			continue
		}
		form := url.Values{"token": {kind.token}, "token_type_hint": {kind.hint}}
		secret := t.secret(s)
		inHeader := t.Client.InHeader && secret != ""
		if !inHeader {
			form.Set("client_id", t.Client.ID)
			if secret != "" {
				form.Set("client_secret", secret)
			}
		}
		if err := t.sign(s, form); err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.Revoker, strings.NewReader(form.Encode()))
		if err != nil {
			return fmt.Errorf("%s does not support revocation", t.Issuer)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if inHeader {
			req.SetBasicAuth(url.QueryEscape(t.Client.ID), url.QueryEscape(secret))
		}
		resp, err := g.client().Do(req)
		if err != nil {
			return fmt.Errorf("cannot reach %s to revoke it: %w", host(t.Revoker), cause(err))
		}
		discard(resp)
		if resp.StatusCode >= 300 {
			return fmt.Errorf("%s did not revoke it: it answered %d", host(t.Revoker), resp.StatusCode)
		}
	}
	return nil
}
