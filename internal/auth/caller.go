package auth

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
)

// Caller is the sender of a request with its permissions on arrival. It is a small comparable value. The zero Caller
// has no name and may use nothing.
type Caller struct {
	Name      string  // name of the key, subject of the token, or "anonymous"
	ID        string  // stable identity for limits: "key:NAME", "oauth:ISSUER SUBJECT" or "addr:ADDRESS"
	Login     string  // whose logins at servers the caller has: a hash of the key, or of issuer and subject; empty = none
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

// loginOf returns the Login of a caller, whose credential is unique within its kind.
func loginOf(kind, credential string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte("login\x00"+kind+"\x00"+credential)))
}

func newCaller(kc KeyConfig, digest [sha256.Size]byte) (Caller, error) {
	may, err := newAccess(kc.Limits())
	may.ops, may.edit = kc.Ops, kc.Edit
	return Caller{Name: kc.Name, ID: "key:" + kc.Name, Login: loginOf("key", string(digest[:])), access: may, rights: newRights(may)}, err
}

// Owner identifies the caller as the owner of what it has begun. Unlike for ID, another key of the same name is another
// owner.
func (c Caller) Owner() string { return c.ID + "\x00" + c.Login }

// Owns reports whether the caller owns what another caller has begun: whether they have the same Owner.
func (c Caller) Owns(begun Caller) bool { return c.ID == begun.ID && c.Login == begun.Login }

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
func (c Caller) MayUse(server, tool string) bool { return c.mayName(Tools, server, tool) }

// MayRead reports whether the caller may read, complete and subscribe to the resource or resource template of the
// server.
func (c Caller) MayRead(server, uri string) bool { return c.mayName(Resources, server, uri) }

// MayPrompt reports whether the caller may get and complete the prompt of the server.
func (c Caller) MayPrompt(server, prompt string) bool { return c.mayName(Prompts, server, prompt) }

func (c Caller) mayName(kind, server, name string) bool {
	return c.may(func(a *access) bool { return a.mayName(kind, server, name) })
}

// MaySee reports whether the caller may see the server: it may see anything of it.
func (c Caller) MaySee(server string) bool {
	return c.MaySeeAny(Tools, server) || c.MaySeeAny(Resources, server) || c.MaySeeAny(Prompts, server)
}

// MaySeeAny reports whether the server could have something of a kind that the caller may see: the server is among the
// caller's servers, a name could be allowed, and no pattern denies all of them.
func (c Caller) MaySeeAny(kind, server string) bool {
	return c.may(func(a *access) bool { return a.maySeeAny(kind, server) })
}

// MayAll reports whether the caller may use everything of the server, also what no pattern can name: methods of its
// own.
func (c Caller) MayAll(server string) bool {
	return c.may(func(a *access) bool { return a.mayAll(server) })
}

// Ops reports whether the caller's key lets it see what other callers do.
func (c Caller) Ops() bool { return c.access != nil && c.access.ops }

// Edits reports whether the caller's key lets it change the configuration, so that it can run any program.
func (c Caller) Edits() bool { return c.access != nil && c.access.edit }

// Local reports whether the caller needs no key and is on this machine.
func (c Caller) Local() bool {
	address, _ := strings.CutPrefix(c.ID, "addr:")
	ip, err := netip.ParseAddr(address)
	return c.Anonymous && (address == "local" || err == nil && ip.IsLoopback())
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

// Scope is what callers of a profile may use at most. It is immutable.
type Scope struct {
	name   string
	access *access
}

// NewScope returns a Scope with a unique name. The error names a malformed pattern.
func NewScope(name string, limits Limits) (*Scope, error) {
	may, err := newAccess(limits)
	return &Scope{name: name, access: may}, err
}

// Within returns the caller limited to a scope instead of its current one; nil means no limit.
func (c Caller) Within(s *Scope) Caller {
	c.scope = s
	return c
}

// ScopeName returns the name of the caller's scope; empty without one.
func (c Caller) ScopeName() string {
	if c.scope == nil {
		return ""
	}
	return c.scope.name
}

// ScopedID distinguishes the same caller in several scopes. Without a scope it is ID.
func (c Caller) ScopedID() string {
	if c.scope == nil {
		return c.ID
	}
	return c.ID + "@" + c.scope.name
}
