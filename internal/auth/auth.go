// Package auth knows the API keys and what each caller may use.
//
// Keys and Caller are safe for concurrent use; a Caller is immutable. A key is held as its SHA-256 only and
// looked up by that, so the time of a lookup tells nothing about how much of a guess was right.
package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
)

const (
	maxKey     = 4096    // bytes; longer keys are wrong without being hashed
	maxKeyFile = 1 << 16 // bytes
)

// Keys is the set of valid API keys.
type Keys struct {
	set atomic.Pointer[keySet]
}

// keySet is who holds which key, by digest. It never changes.
type keySet map[[sha256.Size]byte]Caller

// Sources is where keys come from. The zero value is the process environment and the file system.
type Sources struct {
	LookupEnv func(name string) (value string, ok bool)
	ReadFile  func(name string) ([]byte, error) // at most maxKeyFile bytes are used
}

// New reads the keys of cfg. White space around a key in a variable or file is dropped. It fails where a
// key has no name, no source or several, cannot be read or equals another, and where a pattern is
// malformed; errors name the key, never its value.
func New(cfg Config, from Sources) (*Keys, error) {
	if from.LookupEnv == nil {
		from.LookupEnv = os.LookupEnv
	}
	if from.ReadFile == nil {
		from.ReadFile = readFile
	}
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
		if err := set.add(kc, from); err != nil {
			return nil, fmt.Errorf("API key %q: %w", kc.Name, err)
		}
	}
	k := &Keys{}
	k.set.Store(&set)
	return k, nil
}

// Changes are what Replace did, by the names of keys in alphabetical order.
type Changes struct {
	Added, Removed []string
	Changed        []string // another key or other rights under the same name
	Rights         []string // IDs of the callers who have other rights than before with the same key
}

// None reports whether everybody has the access that they had.
func (c Changes) None() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

// Replace makes the keys of other, which is not used any more, the only ones that are valid. Callers whose key
// stays under its name have the rights that it has now (see Caller.Now); the others have none. Calls must not overlap.
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

func (s keySet) add(kc KeyConfig, from Sources) error {
	digest, err := digestOf(kc, from)
	if err != nil {
		return err
	}
	for _, pattern := range append(kc.Tools.Allow[:len(kc.Tools.Allow):len(kc.Tools.Allow)], kc.Tools.Deny...) {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("the tool pattern %q is malformed", pattern)
		}
	}
	if other, taken := s[digest]; taken {
		return fmt.Errorf("it is the same as %q", other.Name)
	}
	s[digest] = newCaller(kc)
	return nil
}

func digestOf(kc KeyConfig, from Sources) (digest [sha256.Size]byte, err error) {
	set := 0
	for _, source := range []string{kc.SHA256, kc.Env, kc.File, kc.Key.Reveal()} {
		if source != "" {
			set++
		}
	}
	if set != 1 {
		return digest, errors.New("set exactly one of sha256, env and file")
	}
	var key string
	switch {
	case kc.SHA256 != "":
		if raw, err := hex.DecodeString(kc.SHA256); err != nil || copy(digest[:], raw) != len(raw) ||
			len(raw) != len(digest) {
			return digest, errors.New("sha256 is not 64 hexadecimal digits")
		}
		return digest, nil
	case kc.Env != "":
		value, ok := from.LookupEnv(kc.Env)
		if !ok {
			return digest, fmt.Errorf("the variable %s is not set", kc.Env)
		}
		key = value
	case kc.File != "":
		content, err := from.ReadFile(kc.File)
		if err != nil {
			return digest, fmt.Errorf("reading its file: %w", err)
		}
		key = string(content)
	default:
		key = kc.Key.Reveal()
	}
	key = strings.TrimSpace(key)
	if key == "" || len(key) > maxKey {
		return digest, fmt.Errorf("it is empty or longer than %d bytes", maxKey)
	}
	return sha256.Sum256([]byte(key)), nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxKeyFile))
}

// Required reports whether callers need a key, which they do as soon as there is one.
func (k *Keys) Required() bool { return len(*k.set.Load()) > 0 }

// Identify returns the caller that holds the key, or false if it is wrong.
func (k *Keys) Identify(key string) (Caller, bool) {
	if key == "" || len(key) > maxKey {
		return Caller{}, false
	}
	c, ok := (*k.set.Load())[sha256.Sum256([]byte(key))]
	return c, ok
}

// FromHeaders returns the key that a request carries in "Authorization: Bearer" or "X-API-Key", and
// whether it carries one. Other Authorization schemes count as none. A request with several keys has to
// get all of them right and all of the same caller; otherwise the returned key is one that Identify
// refuses.
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

// Anonymous returns a caller without a key, known by its remote address; an IPv6 address counts as its /64, which one
// host may have to itself. It may use everything.
func Anonymous(addr string) Caller {
	if ip, err := netip.ParseAddr(addr); err == nil && ip.Is6() && !ip.Is4In6() && !ip.IsLoopback() {
		if prefix, err := ip.WithZone("").Prefix(64); err == nil {
			addr = prefix.String()
		}
	}
	return Caller{Name: "anonymous", ID: "addr:" + addr, Anonymous: true}
}
