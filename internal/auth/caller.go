package auth

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
)

// Caller is the sender of a request with its permissions on arrival. It is a small comparable value. The zero Caller
// has no name and may use nothing.
type Caller struct {
	Name      string  // name of the key, subject of the token, or "anonymous"
	ID        string  // stable identity for limits: "key:NAME", "oauth:ISSUER SUBJECT" or "addr:ADDRESS"
	Anonymous bool    // no key and no token was given
	access    *access // nil for anonymous callers
	rights    *rights // current rights; nil for anonymous callers
	scope     *Scope  // further limit; nil = none
}

// rights are the current rights of the holder of a key or token.
type rights struct {
	access atomic.Pointer[access] // nil = revoked
	tokens *tokens                // source of the rights; nil for a key
	until  atomic.Int64           // latest expiry of the holder's tokens, in Unix time
}

// newRights returns unrevoked rights.
func newRights(a *access) *rights {
	r := &rights{}
	r.access.Store(a)
	return r
}

// expired reports whether the rights ended only by the expiry of tokens.
func (r *rights) expired() bool {
	return r.tokens != nil && !r.tokens.revoked.Load() && r.tokens.now().Unix() >= r.until.Load()
}

func (r *rights) now() *access {
	if r.tokens != nil && (r.tokens.revoked.Load() || r.expired()) {
		return nil
	}
	return r.access.Load()
}

func newCaller(kc KeyConfig) (Caller, error) {
	may, err := newAccess(kc.Servers, kc.Tools)
	return Caller{Name: kc.Name, ID: "key:" + kc.Name, access: may, rights: newRights(may)}, err
}

// Now returns the caller with the current rights of its key or tokens. It reports false if the key, or every token
// that gave these rights, is no longer valid; then the caller may use nothing.
func (c Caller) Now() (Caller, bool) {
	if c.rights == nil {
		return c, c.Anonymous
	}
	c.access = c.rights.now()
	return c, c.access != nil
}

// Expired reports whether the caller has lost its rights only because its tokens have expired.
func (c Caller) Expired() bool { return c.rights != nil && c.rights.expired() }

// access is what a caller may use: the union of its grants. It is immutable.
type access []grant

// grant allows a part of the servers and tools.
type grant struct {
	servers     []string // empty = all
	allow, deny []string // slashes are masked
}

func newAccess(servers []string, tools Filter) (*access, error) {
	g, err := newGrant(servers, tools)
	return &access{g}, err
}

func newGrant(servers []string, tools Filter) (grant, error) {
	masked := func(patterns []string) (out []string) {
		for _, p := range patterns {
			out = append(out, mask(p))
		}
		return out
	}
	for _, pattern := range slices.Concat(tools.Allow, tools.Deny) {
		if _, err := path.Match(pattern, ""); err != nil {
			return grant{}, fmt.Errorf("the tool pattern %q is malformed", pattern)
		}
	}
	return grant{servers: slices.Clone(servers), allow: masked(tools.Allow), deny: masked(tools.Deny)}, nil
}

func (a *access) equal(b *access) bool { return slices.EqualFunc(*a, *b, grant.equal) }

func (a *access) limits() bool {
	return !slices.ContainsFunc(*a, func(g grant) bool { return !g.limits() })
}

func (a *access) mayUse(server, tool string) bool {
	name := mask(server + "__" + tool)
	return slices.ContainsFunc(*a, func(g grant) bool { return g.mayUse(server, name) })
}

func (a *access) maySee(server string) bool {
	return slices.ContainsFunc(*a, func(g grant) bool { return g.maySee(server) })
}

func (g grant) equal(b grant) bool {
	return slices.Equal(g.servers, b.servers) && slices.Equal(g.allow, b.allow) && slices.Equal(g.deny, b.deny)
}

func (g grant) limits() bool { return len(g.servers)+len(g.allow)+len(g.deny) > 0 }

// mayUse reports whether the grant allows a tool, given by its masked full name.
func (g grant) mayUse(server, name string) bool {
	return g.has(server) && (len(g.allow) == 0 || matchesAny(g.allow, name)) && !matchesAny(g.deny, name)
}

func (g grant) maySee(server string) bool {
	prefix := server + "__"
	could := func(pattern string) bool { return couldMatch(pattern, prefix) }
	return g.has(server) && (len(g.allow) == 0 || slices.ContainsFunc(g.allow, could)) &&
		!slices.ContainsFunc(g.deny, func(pattern string) bool { return matchesAll(pattern, prefix) })
}

func (g grant) has(server string) bool {
	return len(g.servers) == 0 || slices.Contains(g.servers, server)
}

// mask hides slashes from path.Match, because * must match them: deny: ["a__*"] denies a__x/y.
func mask(s string) string { return strings.ReplaceAll(s, "/", "\x00") }

// Restricted reports whether the caller may not use everything.
func (c Caller) Restricted() bool {
	if c.scope != nil && c.scope.access.limits() {
		return true
	}
	if c.access == nil {
		return !c.Anonymous
	}
	return c.access.limits()
}

// Visible returns a function that reports whether the caller may see and use a tool of a server. An empty tool means
// the server itself. The function is nil for a caller that may use everything.
func (c Caller) Visible() func(server, tool string) bool {
	if !c.Restricted() {
		return nil
	}
	return func(server, tool string) bool {
		if tool == "" {
			return c.MaySee(server)
		}
		return c.MayUse(server, tool)
	}
}

// MayUse reports whether the caller may see and use the tool of the server, both by their own names.
func (c Caller) MayUse(server, tool string) bool {
	return c.may(func(a *access) bool { return a.mayUse(server, tool) })
}

// MaySee reports whether the caller may see the server: the server is among the caller's servers, a tool of it could
// be allowed, and no pattern denies all of its tools.
func (c Caller) MaySee(server string) bool {
	return c.may(func(a *access) bool { return a.maySee(server) })
}

// may reports whether both the caller's access and its scope allow something.
func (c Caller) may(allows func(*access) bool) bool {
	if c.scope != nil && !allows(c.scope.access) {
		return false
	}
	if c.access == nil {
		return c.Anonymous
	}
	return allows(c.access)
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// matchesAll reports whether the pattern matches every name that starts with prefix: it ends in a star and matches
// the prefix itself.
func matchesAll(pattern, prefix string) bool {
	return strings.HasSuffix(pattern, "*") && !strings.HasSuffix(pattern, `\*`) && matchesAny([]string{pattern}, prefix)
}

// couldMatch reports whether the pattern matches any name that starts with prefix: a beginning of it matches the
// prefix.
func couldMatch(pattern, prefix string) bool {
	for end := range len(pattern) + 1 {
		if matchesAny([]string{pattern[:end]}, prefix) { // a beginning that is malformed matches nothing
			return true
		}
	}
	return false
}

// Scope is a part of the servers and tools that limits callers of a profile. It is immutable.
type Scope struct {
	name   string
	access *access
}

// NewScope returns a Scope with a unique name. It contains the named servers, or all if there are none, and their
// tools that the filter admits. The error names a malformed pattern.
func NewScope(name string, servers []string, tools Filter) (*Scope, error) {
	may, err := newAccess(servers, tools)
	return &Scope{name: name, access: may}, err
}

// Within returns the caller limited to a scope instead of its current one; nil means no limit.
func (c Caller) Within(s *Scope) Caller {
	c.scope = s
	return c
}

// ScopedID distinguishes the same caller in several scopes. Without a scope it is ID.
func (c Caller) ScopedID() string {
	if c.scope == nil {
		return c.ID
	}
	return c.ID + "@" + c.scope.name
}
