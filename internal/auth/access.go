package auth

import (
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

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
	edit   bool // see Caller.Edits
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
	contains := func(string) bool { return true }
	switch kind {
	case Tools:
		shown = mask(server + "__" + texts.VisibleName(name))
	case Resources:
		contains = containing(server+"__", name)
	}
	return a.any(func(g grant) bool { return g.has(server) && g.mayName(kind, full, shown, contains) })
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

// mayName reports whether the patterns allow what has a masked full name; contains tells which patterns may allow it.
func (g grant) mayName(kind, full, shown string, contains func(pattern string) bool) bool {
	allows := func(pattern string) bool { return matchesAny([]string{pattern}, full) && contains(pattern) }
	return (g.open(kind) || slices.ContainsFunc(g.allow[kind], allows)) &&
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

// containing returns a function that reports whether a pattern that matches the URI of a server's resource also allows
// what the server may read for it. A server that resolves the URI leaves out segments "."; then the pattern has to be a
// folder with a star, or to allow all of the server, whose prefix is given. It may read anything if the URI has a
// segment ".." or a NUL; then the pattern has to allow all of the server.
func containing(prefix, uri string) func(pattern string) bool {
	same, up := segments(uri)
	if !same && !up {
		return func(string) bool { return true }
	}
	return func(pattern string) bool {
		folder, isFolder := strings.CutSuffix(pattern, mask("/*"))
		return matchesAll(pattern, prefix) || isFolder && !up && !strings.ContainsAny(folder, `*?[\`)
	}
}

// segments reports whether a URI has a segment ".", and a segment ".." or a NUL, also encoded, with parameters after a
// semicolon, and in characters that servers may normalize to these.
func segments(uri string) (same, up bool) {
	for range 3 { // servers may decode more than once
		uri = strings.Trim(ignored.Replace(norm.NFKC.String(uri)), " ")
		up = up || strings.ContainsRune(uri, 0)
		for segment := range strings.FieldsFuncSeq(uri, func(r rune) bool { return strings.ContainsRune(`/\?#:`, r) }) {
			segment, _, _ = strings.Cut(segment, ";")
			same, up = same || segment == ".", up || segment == ".."
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
	return same, up
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
