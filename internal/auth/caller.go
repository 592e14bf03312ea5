package auth

import (
	"path"
	"slices"
	"strings"
	"sync/atomic"
)

// Caller is who sent a request, with the rights of then. It is a small value; copies are equal in every respect
// and comparable. The zero Caller has no name and may use nothing.
type Caller struct {
	Name      string                  // of the key, or "anonymous"
	ID        string                  // stable identity for limits: "key:NAME" or "addr:ADDRESS"
	Anonymous bool                    // no key was given
	access    *access                 // nil for anonymous callers
	rights    *atomic.Pointer[access] // what the key stands for by now; nil for anonymous callers
}

func newCaller(kc KeyConfig) Caller {
	c := Caller{Name: kc.Name, ID: "key:" + kc.Name, access: newAccess(kc), rights: &atomic.Pointer[access]{}}
	c.rights.Store(c.access)
	return c
}

// Now returns the caller with the rights that its key has by now. It is false once the key is not valid any
// more; then the caller may use nothing.
func (c Caller) Now() (Caller, bool) {
	if c.rights == nil {
		return c, c.Anonymous
	}
	c.access = c.rights.Load()
	return c, c.access != nil
}

// access is what a key may use; it never changes.
type access struct {
	servers     []string // empty = all
	allow, deny []string // with slashes masked
}

func newAccess(kc KeyConfig) *access {
	masked := func(patterns []string) (out []string) {
		for _, p := range patterns {
			out = append(out, mask(p))
		}
		return out
	}
	return &access{servers: slices.Clone(kc.Servers), allow: masked(kc.Tools.Allow), deny: masked(kc.Tools.Deny)}
}

func (a *access) equal(b *access) bool {
	return slices.Equal(a.servers, b.servers) && slices.Equal(a.allow, b.allow) && slices.Equal(a.deny, b.deny)
}

// mask hides slashes from path.Match. A * has to cover them: else deny: ["a__*"] would let a__x/y pass.
func mask(s string) string { return strings.ReplaceAll(s, "/", "\x00") }

// Restricted reports whether there may be tools that the caller must not use.
func (c Caller) Restricted() bool {
	if c.access == nil {
		return !c.Anonymous
	}
	return len(c.access.servers)+len(c.access.allow)+len(c.access.deny) > 0
}

// Visible returns a function that reports whether the caller may see and use a tool of a server. An empty tool stands
// for the server itself. The function is nil for a caller who may use everything.
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

// MayUse reports whether the caller may use the tool of the server, both by their own names. What it may
// not use it may not see either.
func (c Caller) MayUse(server, tool string) bool {
	if c.access == nil {
		return c.Anonymous
	}
	name := mask(server + "__" + tool)
	return c.access.has(server) && (len(c.access.allow) == 0 || matchesAny(c.access.allow, name)) &&
		!matchesAny(c.access.deny, name)
}

// MaySee reports whether the caller may know of the server: it is among the caller's servers, some tool of
// it could be allowed, and no pattern denies them all.
func (c Caller) MaySee(server string) bool {
	if c.access == nil {
		return c.Anonymous
	}
	prefix := server + "__"
	could := func(pattern string) bool { return couldMatch(pattern, prefix) }
	return c.access.has(server) && (len(c.access.allow) == 0 || slices.ContainsFunc(c.access.allow, could)) &&
		!slices.ContainsFunc(c.access.deny, func(pattern string) bool { return matchesAll(pattern, prefix) })
}

func (a *access) has(server string) bool {
	return len(a.servers) == 0 || slices.Contains(a.servers, server)
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// matchesAll reports whether the pattern surely matches every name that starts with prefix: it ends in a
// star and matches the prefix alone.
func matchesAll(pattern, prefix string) bool {
	return strings.HasSuffix(pattern, "*") && !strings.HasSuffix(pattern, `\*`) && matchesAny([]string{pattern}, prefix)
}

// couldMatch reports whether the pattern matches some name that starts with prefix. Up to its first star a
// pattern matches character by character; a star swallows the rest of the prefix.
func couldMatch(pattern, prefix string) bool {
	for _, r := range prefix {
		element, rest := cutElement(pattern)
		if element == "*" {
			return true
		}
		if !matchesAny([]string{element}, string(r)) {
			return false
		}
		pattern = rest
	}
	return true
}

// cutElement splits a well-formed pattern after its first star, question mark, class or character.
func cutElement(pattern string) (element, rest string) {
	switch {
	case pattern == "":
		return "", ""
	case pattern[0] == '\\' && len(pattern) > 1:
		return cutRune(pattern, 1)
	case pattern[0] != '[':
		return cutRune(pattern, 0)
	}
	for i := 1; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case ']':
			return pattern[:i+1], pattern[i+1:]
		}
	}
	return pattern, ""
}

// cutRune splits after the character that starts at the byte i.
func cutRune(s string, i int) (head, tail string) {
	for j := range s[i:] {
		if j > 0 {
			return s[:i+j], s[i+j:]
		}
	}
	return s, ""
}
