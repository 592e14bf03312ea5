package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/bearer"
	"github.com/agenticnexus/agenticnexus/internal/lru"
)

// maxHolders limits the known holders of tokens. An evicted holder is added again with its next token, but that does
// not extend sessions opened with an earlier token.
const maxHolders = 10000

// tokens are the accepted access tokens of an issuer.
type tokens struct {
	config   OAuthConfig
	verifier *bearer.Verifier
	grants   []grant // one per element of config.Claims
	now      func() time.Time
	revoked  atomic.Bool // replaced by another configuration

	mu      sync.Mutex
	holders *lru.Cache[string, *rights] // by subject, matching claims and endpoint
}

func newTokens(c OAuthConfig, o Options) (*tokens, error) {
	if err := errors.Join(CheckIssuer(c.Issuer), CheckAudience(c.Audience)); err != nil {
		return nil, fmt.Errorf("auth.oauth: %w", err)
	}
	t := &tokens{config: c, now: o.Now, holders: lru.New[string, *rights](maxHolders, maxHolders)}
	if t.now == nil {
		t.now = time.Now
	}
	for i, claim := range c.Claims {
		if claim.Claim == "" || claim.Value == "" {
			return nil, fmt.Errorf("auth.oauth.claims[%d] needs a claim and its value", i)
		}
		may, err := newGrant(claim.Limits())
		if err != nil {
			return nil, fmt.Errorf("auth.oauth.claims[%d]: %w", i, err)
		}
		t.grants = append(t.grants, may)
	}
	t.verifier = bearer.New(bearer.Options{
		Issuer: c.Issuer, Accepts: t.config.accepts, Logger: o.Logger, Now: o.Now, Retry: o.Retry,
	})
	return t, nil
}

// CheckIssuer returns an error unless an issuer is an https URL or, on loopback, an http URL.
func CheckIssuer(issuer string) error { return bearer.CheckIssuer(issuer) }

// CheckAudience returns an error for an invalid audience.
func CheckAudience(audience string) error {
	u, err := url.Parse(audience)
	switch {
	case audience == "":
		return errors.New("want the audience of the tokens: the public URL of the router, or what the issuer calls it")
	case err == nil && u.Host != "" && (u.User != nil || strings.ContainsAny(audience, "?#")):
		return errors.New("want a URL without user, query and fragment")
	}
	return nil
}

// identify returns the holder of a token that is sent to a path.
func (t *tokens) identify(ctx context.Context, raw, path string) (Caller, *Refusal) {
	token, err := t.verifier.Verify(ctx, raw)
	here, everywhere := t.config.admits(token.Audience, path)
	if err == nil && !here {
		err = bearer.ErrAudience
	}
	var invalid bearer.Invalid
	switch {
	case errors.As(err, &invalid):
		return Caller{}, &Refusal{Status: http.StatusUnauthorized, Code: "invalid_token", Text: invalid.Error()}
	case err != nil:
		return Caller{}, &Refusal{Status: http.StatusServiceUnavailable, Text: "tokens cannot be checked at the moment"}
	case !t.hasScopes(token.Claims):
		return Caller{}, &Refusal{Status: http.StatusForbidden, Code: "insufficient_scope",
			Text: "the token lacks a required scope"}
	}
	matching := t.matching(token.Claims)
	if len(matching) == 0 && len(t.grants) > 0 {
		return Caller{}, &Refusal{Status: http.StatusForbidden, Text: "the token has no claim that gives access"}
	}
	where := ""
	if !everywhere {
		where = Endpoint(path)
	}
	held := t.hold(token, matching, where)
	return Caller{Name: token.Subject, ID: "oauth:" + t.config.Issuer + " " + token.Subject,
		Login: loginOf("token", t.config.Issuer+"\x00"+token.Subject), access: held.access.Load(), rights: held}, nil
}

// hold returns the rights of a token's holder, which last at least as long as the token. A token for one endpoint,
// where, does not prolong what others have opened.
func (t *tokens) hold(token bearer.Token, matching []int, where string) *rights {
	key := token.Subject + "\x00" + fmt.Sprint(matching) + where
	t.mu.Lock()
	defer t.mu.Unlock()
	held, known := t.holders.Get(key)
	if !known {
		may := access{}
		for _, i := range matching {
			may.grants = append(may.grants, t.grants[i])
		}
		if len(t.grants) == 0 {
			may.grants = []grant{{}}
		}
		held = newRights(&may)
		held.tokens = t
		t.holders.Put(key, held, 1)
	}
	held.until.Store(max(held.until.Load(), token.Expires.Unix()))
	return held
}

// hasScopes reports whether claims have all required scopes, which issuers write as scope or scp.
func (t *tokens) hasScopes(claims map[string]any) bool {
	return !slices.ContainsFunc(t.config.Scopes, func(scope string) bool {
		return !has(claims, "scope", scope) && !has(claims, "scp", scope)
	})
}

// matching returns the indexes of the configured claims that a token has.
func (t *tokens) matching(claims map[string]any) (all []int) {
	for i, c := range t.config.Claims {
		if has(claims, c.Claim, c.Value) {
			all = append(all, i)
		}
	}
	return all
}

// has reports whether a claim has a value: as its text, as an element of its list or, for scopes, as a word.
func has(claims map[string]any, name, value string) bool {
	switch v := lookUp(claims, name).(type) {
	case string:
		return v == value || (name == "scope" || name == "scp") && slices.Contains(strings.Fields(v), value)
	case bool:
		return strconv.FormatBool(v) == value
	case []any:
		return slices.Contains(v, any(value))
	}
	return false
}

// lookUp returns the claim with a name or, if there is none, at the path given by the name.
func lookUp(claims map[string]any, name string) any {
	if v, has := claims[name]; has {
		return v
	}
	first, rest, isPath := strings.Cut(name, ".")
	inner, _ := claims[first].(map[string]any)
	if !isPath || inner == nil {
		return nil
	}
	return lookUp(inner, rest)
}
