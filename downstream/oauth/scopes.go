package oauth

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

const (
	maxScopes     = 100
	maxScopeBytes = 200
)

// plausibleScopes limits the scopes that a server names and drops invalid ones.
func plausibleScopes(scopes []string) []string {
	var out []string
	for _, s := range scopes {
		if len(out) < maxScopes && ValidScope(s) {
			out = append(out, s)
		}
	}
	return out
}

// ValidScope reports whether s is a valid scope token (RFC 6749 §3.3).
func ValidScope(s string) bool {
	return s != "" && len(s) <= maxScopeBytes && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '"' || r == '\\'
	})
}

// union returns the scopes of all sets, each once and at most maxScopes.
func union(sets ...[]string) (all []string) {
	for _, scope := range slices.Concat(sets...) {
		if len(all) < maxScopes && !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// covers reports whether held has all of scopes.
func covers(held, scopes []string) bool {
	return !slices.ContainsFunc(scopes, func(scope string) bool { return !slices.Contains(held, scope) })
}

// denial is a server's refusal of a token; zero = none.
type denial struct {
	token  string
	lacks  bool     // the token is valid but lacks scopes
	scopes []string // those scopes; empty = the server does not name them
	said   string   // in the server's words; "" = it says nothing
}

// denied reads a response to a request with a token; nil if it is no denial.
func denied(resp *http.Response, token string) *denial {
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return nil
	}
	asked := challengeOf(resp)
	lacks := resp.StatusCode == http.StatusForbidden
	if lacks && asked["error"] != "insufficient_scope" {
		return nil
	}
	no := &denial{token: token, lacks: lacks}
	if lacks {
		no.scopes = plausibleScopes(strings.Fields(asked["scope"]))
	} else if asked["error"] != "" {
		no.said = ": " + said(redact.NewMasker([]string{token}), asked["error"], asked["error_description"])
	}
	return no
}

// shortage is a set of scopes that could not be had without a person, at most maxScopes, and for how long not to ask
// for them again.
type shortage struct {
	scopes []string
	until  time.Time
}

// has reports whether one of scopes is in the shortage. A full one stands for every scope.
func (sh *shortage) has(scopes []string, now time.Time) bool {
	return now.Before(sh.until) && (len(sh.scopes) == maxScopes ||
		slices.ContainsFunc(scopes, func(scope string) bool { return slices.Contains(sh.scopes, scope) }))
}

// add adds those of scopes that t, which may be nil, lacks.
func (sh *shortage) add(scopes []string, t *Token, now time.Time) {
	if !now.Before(sh.until) {
		sh.scopes = nil
	}
	lacking := slices.DeleteFunc(slices.Clone(scopes), func(scope string) bool {
		return t != nil && slices.Contains(t.Scopes, scope)
	})
	sh.scopes, sh.until = union(sh.scopes, lacking), now.Add(askAgain)
}

// canWiden reports whether a token with the scopes of a denial may be had without a person. The caller holds s.mu.
func (s *Source) canWiden(no denial, now time.Time) bool {
	t := s.token
	switch {
	case len(no.scopes) == 0 || s.short.has(no.scopes, now):
		return false
	case t == nil:
		return true // what is missing is a token
	case t.Access == no.token && covers(t.Scopes, no.scopes):
		return false // the server wants something else
	}
	// Asking for scopes narrows a token whose scopes are not known.
	return s.server.byCredentials() || len(t.Scopes) > 0 && t.Renewable()
}

// plainScope matches scopes that need no quotes in any shell.
var plainScope = regexp.MustCompile(`^[\w/][\w:/.+@=-]*$`)

// lacking returns an error that tells how to get the scopes of a denial. The caller holds s.mu.
func (s *Source) lacking(no denial) error {
	const add = "add the missing scopes to auth.scopes in its configuration"
	all := strings.Join(no.scopes, " ")
	named := texts.Line(all, maxReason)
	switch t := s.token; {
	case len(no.scopes) == 0:
		return s.person("its token lacks scopes; the server does not say which; " + add)
	case t != nil && t.Access == no.token && covers(t.Scopes, no.scopes):
		return &link.Unauthorized{Why: "it asks for the scopes " + named +
			", which its token has; whoever the token is for has to get the permission there"}
	case s.server.byCredentials():
		return s.person("its token lacks one of the scopes " + named + ", which the authorization server does not give")
	case s.server.Caller != "":
		s.short.add(no.scopes, t, time.Now()) // for the login
		return s.person("this caller's token lacks one of the scopes " + named)
	case all != named,
		slices.ContainsFunc(no.scopes, func(scope string) bool { return !plainScope.MatchString(scope) }):
		return s.person("its token lacks one of the scopes " + named + "; " + add)
	}
	return &link.Unauthorized{Why: "its token lacks one of the scopes " + named + "; run: " +
		LoginCommand(s.server.Name, no.scopes...)}
}
