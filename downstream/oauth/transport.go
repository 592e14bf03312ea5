package oauth

import (
	"io"
	"net/http"
	"strings"
)

// Transport returns a RoundTripper that adds the token to each request of base. A request that the server refuses
// with 401 was not handled and is sent once more with a new token.
func (s *Source) Transport(base http.RoundTripper) http.RoundTripper { return &transport{s, base} }

type transport struct {
	source *Source
	base   http.RoundTripper
}

// RoundTrip implements http.RoundTripper. The error is a *link.Unauthorized if a person has to act.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	token, err := t.source.get(ctx, "")
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	resp, err := t.base.RoundTrip(withToken(req, token))
	if err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	if resp.StatusCode == http.StatusForbidden {
		return t.forbidden(resp)
	}
	discard(resp)
	again := withToken(req, "")
	if req.Body != nil {
		if req.GetBody == nil {
			return nil, t.source.reject(token)
		}
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	next, err := t.source.get(ctx, token)
	if err != nil {
		if again.Body != nil {
			again.Body.Close()
		}
		return nil, err
	}
	resp, err = t.base.RoundTrip(withToken(again, next))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusUnauthorized:
		discard(resp)
		return nil, t.source.reject(next)
	case resp.StatusCode == http.StatusForbidden:
		return t.forbidden(resp)
	}
	return resp, nil
}

// forbidden returns the response, or an error that names the missing scopes of the token.
func (t *transport) forbidden(resp *http.Response) (*http.Response, error) {
	challenges := challengesOf(resp)
	if param(challenges, "error") != "insufficient_scope" {
		return resp, nil
	}
	discard(resp)
	scopes := plausibleScopes(strings.Fields(param(challenges, "scope")))
	why := "its token lacks scopes; the server does not say which"
	if len(scopes) > 0 {
		why = "its token lacks one of the scopes " + strings.Join(scopes, " ")
	}
	return nil, t.source.person(why + "; add the missing scopes to auth.scopes in its configuration")
}

// withToken returns a copy of a request with a token. It is a copy because requests may share headers.
func withToken(req *http.Request, token string) *http.Request {
	own := req.WithContext(req.Context())
	own.Header = req.Header.Clone()
	if token != "" {
		own.Header["Authorization"] = []string{"Bearer " + token}
	}
	return own
}

// discard drains a body so that the connection can be reused.
func discard(resp *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 16<<10))
	resp.Body.Close()
}
