// Package auth has the API keys and the access rights of callers.
//
// [New] makes [Keys] of the configuration, and [Keys.Identify] returns the [Caller] that holds a key. [ClientAddr]
// and [Anonymous] identify callers without a key. Keys and Caller are safe for concurrent use; a Caller is immutable.
// Keys are stored and looked up by their SHA-256 only, so the time of a lookup does not depend on how much of a guess
// is right.
package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
)

const maxKey = 4096 // bytes; longer keys are wrong without being hashed

// Keys is the set of valid API keys.
type Keys struct {
	set atomic.Pointer[keySet]
}

// keySet maps the digests of keys to their holders. It never changes.
type keySet map[[sha256.Size]byte]Caller

// New returns the keys of cfg; config.Load has replaced Env and File by Key. It fails where a key has no name, not
// exactly one of SHA256 and Key, or equals another, and where a pattern is malformed. Errors name the key, never its
// value.
func New(cfg Config) (*Keys, error) {
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
	k := &Keys{}
	k.set.Store(&set)
	return k, nil
}

// Changes are the changes by Replace: names of keys in alphabetical order.
type Changes struct {
	Added, Removed []string
	Changed        []string // another key or other rights with the same name
	Rights         []string // IDs of the callers whose rights changed for the same key
}

// None reports whether all access stays the same.
func (c Changes) None() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

// Replace makes the keys of other the only valid ones; other must not be used afterwards. A caller whose key keeps
// its name gets the new rights (see [Caller.Now]); other callers lose all. Calls must not overlap.
func (k *Keys) Replace(other *Keys) (done Changes) {
	before, after := *k.set.Load(), *other.set.Load()
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
			old.rights.Store(nil)
			if _, has := is[name]; !has {
				done.Removed = append(done.Removed, name)
			}
		case now.access.equal(old.access):
			after[digest] = old
		default:
			old.rights.Store(now.access)
			now.rights = old.rights
			after[digest] = now
			done.Changed = append(done.Changed, name)
			done.Rights = append(done.Rights, old.ID)
		}
	}
	for _, names := range [][]string{done.Added, done.Removed, done.Changed, done.Rights} {
		slices.Sort(names)
	}
	k.set.Store(&after)
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
	s[digest], err = newCaller(kc)
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

// Required reports whether callers need a key: if there is at least one.
func (k *Keys) Required() bool { return len(*k.set.Load()) > 0 }

// Identify returns the caller that holds the key, false if the key is wrong.
func (k *Keys) Identify(key string) (Caller, bool) {
	if key == "" || len(key) > maxKey {
		return Caller{}, false
	}
	c, ok := (*k.set.Load())[sha256.Sum256([]byte(key))]
	return c, ok
}

// FromHeaders returns the key of a request in "Authorization: Bearer" or "X-API-Key", and whether it has one. Other
// Authorization schemes do not count. If a request has several keys, all must be valid and of the same caller;
// otherwise Identify refuses the returned key.
func (k *Keys) FromHeaders(h http.Header) (key string, present bool) {
	keys := append([]string(nil), h.Values("X-API-Key")...)
	for _, value := range h.Values("Authorization") {
		if scheme, token, _ := strings.Cut(strings.TrimSpace(value), " "); strings.EqualFold(scheme, "Bearer") {
			keys = append(keys, token)
		}
	}
	if len(keys) == 0 {
		return "", false
	}
	key = strings.TrimSpace(keys[0])
	for _, other := range keys[1:] {
		if other = strings.TrimSpace(other); other == key {
			continue
		}
		a, aOK := k.Identify(key)
		b, bOK := k.Identify(other)
		if !aOK || !bOK || a.ID != b.ID {
			return "", true
		}
	}
	return key, true
}

// Anonymous returns a caller without a key, identified by its remote address. An IPv6 address counts as its /64,
// because one host may have all of it. The caller may use everything.
func Anonymous(addr string) Caller {
	if ip, err := netip.ParseAddr(addr); err == nil && ip.Is6() && !ip.Is4In6() && !ip.IsLoopback() {
		if prefix, err := ip.WithZone("").Prefix(64); err == nil {
			addr = prefix.String()
		}
	}
	return Caller{Name: "anonymous", ID: "addr:" + addr, Anonymous: true}
}
