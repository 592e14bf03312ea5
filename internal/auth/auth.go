// Package auth manages the API keys, access tokens and access rights of callers.
//
// [New] creates [Keys] from the configuration. [Keys.Authenticate] returns the [Caller] identified by a key or token
// in a request's headers, and [Keys.Identify] the holder of a key. [ClientAddr] and [Anonymous] identify callers
// without either. Keys and Caller are safe for concurrent use; a Caller is immutable. Keys are stored and looked up
// only by their SHA-256, so that lookup times reveal nothing about them. Of tokens only hashes and claims are stored.
package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

const maxKey = 4096 // bytes; longer keys are wrong without being hashed

// Keys is the set of valid API keys and the rules for access tokens.
type Keys struct {
	valid atomic.Pointer[valid]
}

// valid is an immutable snapshot of the valid keys and tokens.
type valid struct {
	keys   keySet
	tokens *tokens // nil = none
}

// Options of New. All are optional.
type Options struct {
	Logger *slog.Logger // for failures to fetch the keys of the issuer of tokens
	Now    func() time.Time
	Retry  time.Duration // minimum time between two attempts to fetch them; 0 = 10 s
}

// keySet maps the digests of keys to their holders. It is immutable.
type keySet map[[sha256.Size]byte]Caller

// New returns the keys of cfg, in which config.Load has replaced Env and File by Key. It fails if a key has no name,
// not exactly one of SHA256 and Key, or equals another key; if a pattern is malformed; and if oauth has no valid
// issuer, no audience, or a claim without name or value. Errors name the key, never its value. Nothing is fetched.
func New(cfg Config, o Options) (*Keys, error) {
	set := make(keySet, len(cfg.APIKeys))
	names := map[string]bool{}
	for i, kc := range cfg.APIKeys {
		if kc.Name == "" {
			return nil, fmt.Errorf("auth.api_keys[%d] has no name", i)
		}
		if names[kc.Name] {
			return nil, fmt.Errorf("auth.api_keys has two keys called %q", kc.Name)
		}
		names[kc.Name] = true
		if err := set.add(kc); err != nil {
			return nil, fmt.Errorf("API key %q: %w", kc.Name, err)
		}
	}
	v := &valid{keys: set}
	if cfg.OAuth != nil {
		var err error
		if v.tokens, err = newTokens(*cfg.OAuth, o); err != nil {
			return nil, err
		}
	}
	k := &Keys{}
	k.valid.Store(v)
	return k, nil
}

// Changes are the changes by Replace: names of keys in alphabetical order.
type Changes struct {
	Added, Removed []string
	Changed        []string // another key or other rights with the same name
	Rights         []string // IDs of the callers whose rights changed for the same key
	OAuth          bool     // the accepted tokens or their rights changed
}

// None reports whether no access has changed.
func (c Changes) None() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 && !c.OAuth }

// Replace makes the keys and tokens of other the only valid ones; other must not be used afterwards. A caller whose
// key keeps its name gets the new rights (see [Caller.Now]). Other callers with keys lose all rights, and so do all
// callers with tokens if the token configuration has changed. Calls must not overlap.
func (k *Keys) Replace(other *Keys) (done Changes) {
	was, is := k.valid.Load(), other.valid.Load()
	done = replaceKeys(was.keys, is.keys)
	next := &valid{keys: is.keys, tokens: is.tokens}
	switch {
	case was.tokens != nil && is.tokens != nil && reflect.DeepEqual(was.tokens.config, is.tokens.config):
		next.tokens = was.tokens
	case was.tokens != nil:
		was.tokens.revoked.Store(true)
		fallthrough
	default:
		done.OAuth = was.tokens != is.tokens
	}
	k.valid.Store(next)
	return done
}

// replaceKeys updates or revokes the rights of the keys' holders; holders that remain are put into after.
func replaceKeys(before, after keySet) (done Changes) {
	digests := func(set keySet) map[string][sha256.Size]byte {
		named := make(map[string][sha256.Size]byte, len(set))
		for digest, caller := range set {
			named[caller.Name] = digest
		}
		return named
	}
	was, is := digests(before), digests(after)
	for name, digest := range is {
		old, had := was[name]
		switch {
		case !had:
			done.Added = append(done.Added, name)
		case old != digest:
			done.Changed = append(done.Changed, name)
		}
	}
	for name, digest := range was {
		old := before[digest]
		switch now, stays := after[digest]; {
		case !stays || now.ID != old.ID:
			old.rights.access.Store(nil)
			if _, has := is[name]; !has {
				done.Removed = append(done.Removed, name)
			}
		case now.access.equal(old.access):
			after[digest] = old
		default:
			old.rights.access.Store(now.access)
			now.rights = old.rights
			after[digest] = now
			done.Changed = append(done.Changed, name)
			done.Rights = append(done.Rights, old.ID)
		}
	}
	for _, names := range [][]string{done.Added, done.Removed, done.Changed, done.Rights} {
		slices.Sort(names)
	}
	return done
}

func (s keySet) add(kc KeyConfig) error {
	digest, err := digestOf(kc)
	if err != nil {
		return err
	}
	if other, taken := s[digest]; taken {
		return fmt.Errorf("it is the same as %q", other.Name)
	}
	s[digest], err = newCaller(kc, digest)
	return err
}

func digestOf(kc KeyConfig) (digest [sha256.Size]byte, err error) {
	key := strings.TrimSpace(kc.Key.Reveal())
	switch {
	case (kc.SHA256 == "") == (kc.Key == "") || kc.Env != "" || kc.File != "":
		return digest, errors.New("set exactly one of sha256 and key")
	case kc.SHA256 != "":
		raw, err := hex.DecodeString(kc.SHA256)
		if err != nil || copy(digest[:], raw) != len(raw) || len(raw) != len(digest) {
			return digest, errors.New("sha256 is not 64 hexadecimal digits")
		}
		return digest, nil
	case key == "" || len(key) > maxKey:
		return digest, fmt.Errorf("it is empty or longer than %d bytes", maxKey)
	}
	return sha256.Sum256([]byte(key)), nil
}

// Required reports whether callers need a key or a token.
func (k *Keys) Required() bool {
	v := k.valid.Load()
	return len(v.keys) > 0 || v.tokens != nil
}

// Alone reports whether the holder of one key is the only caller.
func (k *Keys) Alone() bool {
	v := k.valid.Load()
	return len(v.keys) == 1 && v.tokens == nil
}

// Any reports whether there is any key.
func (k *Keys) Any() bool { return len(k.valid.Load().keys) > 0 }

// OAuth returns the configuration of access tokens; nil = none are accepted.
func (k *Keys) OAuth() *OAuthConfig {
	if t := k.valid.Load().tokens; t != nil {
		return &t.config
	}
	return nil
}

// Identify returns the holder of a key, false if the key is wrong. Tokens are not keys.
func (k *Keys) Identify(key string) (Caller, bool) {
	if key == "" || len(key) > maxKey {
		return Caller{}, false
	}
	c, ok := k.valid.Load().keys[sha256.Sum256([]byte(key))]
	return c, ok
}

// Named returns the holder of the key with a name, false if there is none.
func (k *Keys) Named(name string) (Caller, bool) {
	for _, c := range k.valid.Load().keys {
		if c.Name == name {
			return c, true
		}
	}
	return Caller{}, false
}

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

// Authenticate returns the caller identified by the headers of a request to a path: by a key in
// "Authorization: Bearer" or "X-API-Key", or by a token in "Authorization: Bearer". Other Authorization schemes are
// ignored; present is false if no key or token is left. If there are several, all must be valid and belong to the same
// caller. ctx limits the wait for the keys of the token's issuer.
func (k *Keys) Authenticate(
	ctx context.Context, h http.Header, path string,
) (c Caller, present bool, refused *Refusal) {
	var seen []string
	for i, credential := range credentials(h) {
		if slices.Contains(seen, credential.text) {
			continue
		}
		seen = append(seen, credential.text)
		other, refused := k.identify(ctx, credential, path)
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

func (k *Keys) identify(ctx context.Context, c credential, path string) (Caller, *Refusal) {
	if caller, ok := k.Identify(c.text); ok {
		return caller, nil
	}
	if t := k.valid.Load().tokens; t != nil && c.bearer && (!k.Any() || strings.Count(c.text, ".") == 2) {
		return t.identify(ctx, c.text, path)
	}
	return Caller{}, WrongKey()
}

// Anonymous returns a caller without a key, identified by its remote address. An IPv6 address counts as its /64,
// because one host may own all of it. The caller's access is unlimited.
func Anonymous(addr string) Caller {
	if ip, err := netip.ParseAddr(addr); err == nil && ip.Is6() && !ip.Is4In6() && !ip.IsLoopback() {
		if prefix, err := ip.WithZone("").Prefix(64); err == nil {
			addr = prefix.String()
		}
	}
	return Caller{Name: "anonymous", ID: "addr:" + addr, Anonymous: true}
}
