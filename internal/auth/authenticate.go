package auth

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// Refusal tells why a key or a token is refused.
type Refusal struct {
	Status int    // HTTP status: 401, 403, or 503 if a token cannot be checked
	Code   string // error code of RFC 6750; empty if none fits
	Text   string // without any part of the key or token, and without quotation marks
}

// WrongKey returns the refusal of a key.
func WrongKey() *Refusal {
	return &Refusal{Status: http.StatusUnauthorized, Code: "invalid_token", Text: "the API key is not valid"}
}

// Authenticate returns the caller identified by the headers of a request: by a key in "Authorization: Bearer" or
// "X-API-Key", or by a token in "Authorization: Bearer". Other Authorization schemes are ignored; present is false if
// no key or token is left. If there are several, all must be valid and belong to the same caller. ctx limits the wait
// for the keys of the token's issuer.
func (k *Keys) Authenticate(ctx context.Context, h http.Header) (c Caller, present bool, refused *Refusal) {
	var seen []string
	for i, credential := range credentials(h) {
		if slices.Contains(seen, credential.text) {
			continue
		}
		seen = append(seen, credential.text)
		other, refused := k.identify(ctx, credential)
		switch {
		case refused != nil:
			return Caller{}, true, refused
		case i > 0 && other.ID != c.ID:
			return Caller{}, true, WrongKey()
		}
		c = other
	}
	return c, len(seen) > 0, nil
}

// Presented reports whether a request has any key or token for Authenticate.
func Presented(h http.Header) bool { return len(credentials(h)) > 0 }

// credential is a key or token in a header.
type credential struct {
	text   string
	bearer bool // it may be a token
}

func credentials(h http.Header) (all []credential) {
	for _, value := range h.Values("Authorization") {
		if scheme, text, _ := strings.Cut(strings.TrimSpace(value), " "); strings.EqualFold(scheme, "Bearer") {
			all = append(all, credential{strings.TrimSpace(text), true})
		}
	}
	for _, value := range h.Values("X-API-Key") {
		all = append(all, credential{strings.TrimSpace(value), false})
	}
	return all
}

func (k *Keys) identify(ctx context.Context, c credential) (Caller, *Refusal) {
	if caller, ok := k.Identify(c.text); ok {
		return caller, nil
	}
	if t := k.valid.Load().tokens; t != nil && c.bearer && (!k.Any() || strings.Count(c.text, ".") == 2) {
		return t.identify(ctx, c.text)
	}
	return Caller{}, WrongKey()
}
