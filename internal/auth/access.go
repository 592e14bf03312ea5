package auth

import (
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Kinds of things that servers have and patterns name. Resource templates are resources.
const (
	Tools     = "tools"
	Resources = "resources"
	Prompts   = "prompts"
)

// access is what a caller may use: the union of its grants. It is immutable.
type access struct {
	grants []grant
	ops    bool // see Caller.Ops
}

// grant allows a part of the servers and of what they have. Where there are patterns for tools, resources and prompts
// need patterns of their own.
type grant struct {
	servers []string            // empty = all
	allow   map[string][]string // by kind; slashes are masked
	deny    []string            // of tools
}

func newAccess(l Limits) (*access, error) {
	g, err := newGrant(l)
	return &access{grants: []grant{g}}, err
}

func newGrant(l Limits) (grant, error) {
	masked := func(kind string, patterns []string) (out []string, err error) {
		for _, pattern := range patterns {
			if _, err := path.Match(pattern, ""); err != nil {
				return nil, fmt.Errorf("the %s pattern %q is malformed", kind, pattern)
			}
			out = append(out, mask(pattern))
		}
		return out, nil
	}
	g := grant{servers: slices.Clone(l.Servers), allow: map[string][]string{}}
	for kind, patterns := range map[string][]string{
		Tools: l.Tools.Allow, Resources: l.Resources.Allow, Prompts: l.Prompts.Allow,
	} {
		allow, err := masked(kind, patterns)
		if err != nil {
			return grant{}, err
		}
		if allow != nil {
			g.allow[kind] = allow
		}
	}
	var err error
	g.deny, err = masked(Tools, l.Tools.Deny)
	return g, err
}

func (a *access) any(allows func(grant) bool) bool { return slices.ContainsFunc(a.grants, allows) }

func (a *access) equal(b *access) bool {
	return a.ops == b.ops && slices.EqualFunc(a.grants, b.grants, grant.equal)
}

func (a *access) limits() bool {
	return !a.any(func(g grant) bool { return len(g.servers) == 0 && !g.limits() })
}

func (a *access) mayName(kind, server, name string) bool {
	full := mask(server + "__" + name)
	shown := full // what people see and write; nothing that is denied by that name may be used
	if kind == Tools {
		shown = mask(server + "__" + texts.VisibleName(name))
	}
	unsafe := kind == Resources && climbs(name)
	return a.any(func(g grant) bool {
		return g.has(server) && g.mayName(kind, full, shown) && !(unsafe && len(g.allow[Resources]) > 0)
	})
}

func (a *access) maySeeAny(kind, server string) bool {
	return a.any(func(g grant) bool { return g.has(server) && g.maySeeAny(kind, server+"__") })
}

func (a *access) mayAll(server string) bool {
	return a.any(func(g grant) bool { return g.has(server) && !g.limits() })
}

func (g grant) equal(b grant) bool {
	return slices.Equal(g.servers, b.servers) && slices.Equal(g.deny, b.deny) &&
		maps.EqualFunc(g.allow, b.allow, slices.Equal[[]string])
}

// limits reports whether the grant has any patterns.
func (g grant) limits() bool { return len(g.deny)+len(g.allow) > 0 }

// open reports whether the grant has no allow list for a kind and none is needed.
func (g grant) open(kind string) bool {
	return len(g.allow[kind]) == 0 && (kind == Tools || len(g.allow[Tools])+len(g.deny) == 0)
}

// mayName reports whether the patterns allow what has a masked full name.
func (g grant) mayName(kind, full, shown string) bool {
	return (g.open(kind) || matchesAny(g.allow[kind], full)) &&
		!(kind == Tools && (matchesAny(g.deny, full) || shown != full && matchesAny(g.deny, shown)))
}

func (g grant) maySeeAny(kind, prefix string) bool {
	could := func(pattern string) bool { return couldMatch(pattern, prefix) }
	return (g.open(kind) || slices.ContainsFunc(g.allow[kind], could)) &&
		!(kind == Tools && slices.ContainsFunc(g.deny, func(pattern string) bool { return matchesAll(pattern, prefix) }))
}

func (g grant) has(server string) bool {
	return len(g.servers) == 0 || slices.Contains(g.servers, server)
}

var (
	escape  = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	ignored = strings.NewReplacer("\t", "", "\r", "", "\n", "") // by parsers of URLs
)

// climbs reports whether a URI has a segment ".." or "." or a NUL, also encoded: a server that resolves it reads
// another resource than the one that a pattern has matched.
func climbs(uri string) bool {
	for range 3 { // servers may decode more than once
		uri = strings.Trim(ignored.Replace(uri), " ")
		if strings.ContainsRune(uri, 0) {
			return true
		}
		for segment := range strings.FieldsFuncSeq(uri, func(r rune) bool { return strings.ContainsRune(`/\?#:`, r) }) {
			if segment == ".." || segment == "." {
				return true
			}
		}
		decoded := escape.ReplaceAllStringFunc(uri, func(e string) string {
			b, _ := hex.DecodeString(e[1:]) // matches escape
			return string(b)
		})
		if decoded == uri {
			break
		}
		uri = decoded
	}
	return false
}

// mask hides slashes from path.Match, because * must match them: deny: ["a__*"] denies a__x/y.
func mask(s string) string { return strings.ReplaceAll(s, "/", "\x00") }

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
