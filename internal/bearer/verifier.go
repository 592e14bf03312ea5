// Package bearer verifies the access tokens of one OAuth 2.0 issuer: JSON Web Tokens (RFC 9068, RFC 8725).
//
// [New] returns a [Verifier], and [Verifier.Verify] verifies and decodes a [Token]. A Verifier is safe for concurrent
// use and starts no goroutine. It fetches the issuer's keys for the first plausible token: the metadata by RFC 8414 or
// OpenID Connect Discovery, then the key set that the metadata names (RFC 7517).
//
// Keys are valid for an hour. They are fetched again every 15 minutes, and when a token is signed by an unknown key.
// Only one attempt runs at a time and at most one every ten seconds, whatever clients send; it is limited to five
// seconds, 256 KiB per document and 100 keys. Without keys, tokens are refused with [ErrUnavailable].
//
// A valid token is not verified again while the issuer has the same keys. The cache of verified tokens has at most
// 10,000 tokens and 16 MiB; it evicts the least recently used.
package bearer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"github.com/agenticnexus/agenticnexus/internal/lru"
)

const (
	maxKnown   = 10_000   // cached tokens
	knownBytes = 16 << 20 // and their bytes together
	maxToken   = 16 << 10 // bytes; longer tokens are refused without being read
	maxSubject = 255      // bytes, as OpenID Connect bounds it
	leeway     = 30 * time.Second
)

// ErrUnavailable means that a token cannot be verified, because the issuer's keys are not available.
var ErrUnavailable = errors.New("the keys of the issuer cannot be fetched")

// Invalid is the error for an invalid token. It is plain text without quotation marks and without any part of the
// token.
type Invalid string

// ErrAudience is the error for a token that is valid elsewhere.
const ErrAudience Invalid = "the token is for another audience"

// Error implements error.
func (i Invalid) Error() string { return string(i) }

// Options of a Verifier. Logger, Now and Retry are optional.
type Options struct {
	Issuer  string                     // see CheckIssuer
	Accepts func(audience string) bool // reports whether tokens for that audience are accepted
	Logger  *slog.Logger
	Now     func() time.Time
	Retry   time.Duration // least time between two attempts to fetch keys; 0 = 10 s
}

// Token is a valid token.
type Token struct {
	Subject  string
	Audience []string       // all of them, also those that are not accepted
	Expires  time.Time      // including leeway for clock differences
	Claims   map[string]any // as JSON decodes them; not to be changed
}

// Verifier verifies the tokens of an issuer.
type Verifier struct {
	issuer    string
	accepts   func(audience string) bool
	parser    *jwt.Parser
	validator *jwt.Validator
	keys      keyring
	now       func() time.Time
	known     *lru.Cache[[sha256.Size]byte, verified] // by the hash of the token
}

// verified is a token that is valid while its issuer has the keys that verified it.
type verified struct {
	token Token
	keys  *keySet
}

// New returns a Verifier. It fetches nothing yet.
func New(o Options) *Verifier {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Retry = cmp.Or(max(o.Retry, 0), 10*time.Second)
	rules := []jwt.ParserOption{jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(o.Now)}
	return &Verifier{
		issuer:    o.Issuer,
		accepts:   o.Accepts,
		parser:    jwt.NewParser(append(rules, jwt.WithValidMethods(algorithms()), jwt.WithStrictDecoding())...),
		validator: jwt.NewValidator(rules...),
		keys:      newKeyring(o),
		now:       o.Now,
		known:     lru.New[[sha256.Size]byte, verified](maxKnown, knownBytes),
	}
}

// Verify checks the form, the claims and then the signature of a token. A cached token is not checked again until it
// expires or the issuer's keys change. The error is an Invalid, ErrUnavailable, or the error of ctx.
func (v *Verifier) Verify(ctx context.Context, raw string) (Token, error) {
	if len(raw) > maxToken {
		return Token{}, Invalid("the token is too long")
	}
	hash := sha256.Sum256([]byte(raw))
	if known, ok := v.known.Get(hash); ok && v.now().Before(known.token.Expires) {
		if keys, err := v.keys.get(ctx); err != nil || keys == known.keys {
			return known.token, err
		}
	}
	var used *keySet
	claims, err := v.parse(raw, func() (*keySet, error) {
		var err error
		used, err = v.keys.get(ctx)
		return used, err
	})
	if errors.Is(err, jwt.ErrTokenSignatureInvalid) && used != nil { // the issuer may have new keys
		if newer := v.keys.renew(ctx, used); newer != used {
			used = newer
			claims, err = v.parse(raw, func() (*keySet, error) { return newer, nil })
		}
	}
	if err != nil {
		return Token{}, reasonOf(err)
	}
	subject, _ := claims.GetSubject()
	audience, _ := claims.GetAudience()
	expires, _ := claims.GetExpirationTime() // it is there
	token := Token{Subject: subject, Audience: audience, Expires: expires.Add(leeway), Claims: claims}
	v.known.Put(hash, verified{token, used}, len(raw))
	return token, nil
}

// parse verifies a token. It requests the keys only after all other checks.
func (v *Verifier) parse(raw string, keys func() (*keySet, error)) (jwt.MapClaims, error) {
	claims := jwt.MapClaims{}
	_, err := v.parser.ParseWithClaims(raw, claims, func(t *jwt.Token) (any, error) {
		if err := v.check(t, claims); err != nil {
			return nil, err
		}
		set, err := keys()
		if err != nil {
			return nil, err
		}
		kid, _ := t.Header["kid"].(string)
		fitting := set.fitting(kid, t.Method.Alg())
		if len(fitting.Keys) == 0 {
			return nil, jwt.ErrTokenSignatureInvalid
		}
		return fitting, nil
	})
	return claims, err
}

// check checks the header and the claims of a token whose signature is not verified yet.
func (v *Verifier) check(t *jwt.Token, claims jwt.MapClaims) error {
	typ, _ := t.Header["typ"].(string)
	switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
	case "", "jwt", "at+jwt":
	default:
		return Invalid("the token is not an access token")
	}
	if _, critical := t.Header["crit"]; critical {
		return Invalid("the token has a critical header that is not understood")
	}
	if isOther(claims) {
		return Invalid("the token is not an access token")
	}
	if iss, err := claims.GetIssuer(); err != nil || iss != v.issuer {
		return Invalid("the token is of another issuer")
	}
	if aud, err := claims.GetAudience(); err != nil || !slices.ContainsFunc(aud, v.accepts) {
		return ErrAudience
	}
	sub, err := claims.GetSubject()
	if err != nil || sub == "" || len(sub) > maxSubject || !utf8.ValidString(sub) ||
		strings.ContainsFunc(sub, unicode.IsControl) {
		return Invalid(fmt.Sprintf("the token has no sub of 1 to %d bytes", maxSubject))
	}
	return v.validator.Validate(claims)
}

// isOther reports whether the claims are of another kind of token: an ID token (OpenID Connect, Keycloak, Cognito), a
// refresh token or a logout token.
func isOther(claims jwt.MapClaims) bool {
	for _, name := range []string{"at_hash", "c_hash", "events"} {
		if _, has := claims[name]; has {
			return true
		}
	}
	if use, has := claims["token_use"]; has && use != "access" {
		return true
	}
	switch claims["typ"] {
	case "ID", "Refresh", "Offline", "Logout":
		return true
	}
	return false
}

// reasonOf converts an error of the parser into an error of Verify.
func reasonOf(err error) error {
	var invalid Invalid
	switch {
	case errors.As(err, &invalid):
		return invalid
	case errors.Is(err, ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, jwt.ErrTokenExpired):
		return Invalid("the token has expired")
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return Invalid("the token does not count yet")
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return Invalid("the token is signed by no key of the issuer, or not by an asymmetric algorithm")
	}
	return Invalid("the token is malformed")
}
