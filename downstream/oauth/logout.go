package oauth

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Logout revokes the stored token of a server if the authorization server supports it (RFC 7009), and always deletes
// it. known is false if there is no token. The error tells why it could not be revoked or deleted.
func Logout(ctx context.Context, s Server, store Store) (known bool, err error) {
	unlock, err := store.lock(ctx, s.Name)
	if err != nil {
		return false, err
	}
	defer unlock()
	t, err := store.Load(s.Name)
	if err != nil || t == nil {
		return false, err
	}
	revoked := t.revoke(ctx, s)
	if err := store.delete(s.Name); err != nil {
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
		secret := t.Client.Secret
		if s.ClientID == t.Client.ID {
			secret = s.ClientSecret.Reveal()
		}
		inHeader := t.Client.InHeader && secret != ""
		if !inHeader {
			form.Set("client_id", t.Client.ID)
			if secret != "" {
				form.Set("client_secret", secret)
			}
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
