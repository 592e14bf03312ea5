package config

import (
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/auth"
)

// oauth checks the settings for access tokens. `oauth: {}` accepts none. At a reload, the settings in use stay if the
// files have none, and so do the claims.
func (d *decoder) oauth(access *auth.Config) {
	const path = "auth.oauth"
	place, given := d.places[path]
	if !given && d.used != nil && d.used.Auth.OAuth != nil {
		access.OAuth = d.used.Auth.OAuth
		d.warn(position{}, "%s is not set: the access tokens in use stay; write auth: {oauth: {}} to accept none", path)
	}
	if !given {
		return
	}
	if place.text == empty {
		access.OAuth = nil
	}
	c := access.OAuth
	if c == nil {
		return
	}
	d.needs(path, "issuer", auth.CheckIssuer(c.Issuer))
	d.needs(path, "audience", auth.CheckAudience(c.Audience))
	for i, scope := range c.Scopes {
		if scope == "" || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			d.failItem(path+".scopes", i, "want one scope, without spaces and quotation marks")
		}
	}
	switch _, given := d.places[path+".claims"]; {
	case given && len(c.Claims) == 0:
		d.wrong(path+".claims", "is empty, so that no token could use anything; leave it out to let all tokens use everything")
	case !given && d.used != nil && d.used.Auth.OAuth != nil && len(d.used.Auth.OAuth.Claims) > 0:
		c.Claims = d.used.Auth.OAuth.Claims
		d.warn(place.at, "%s.claims is not set: those in use stay; restart to let all tokens use everything", path)
	}
	for i, claim := range c.Claims {
		at := item(path+".claims", i)
		if d.failed[at] {
			continue
		}
		if claim.Claim == "" || claim.Value == "" {
			d.wrong(at, "needs a claim and its value")
		}
		d.patterns(at+".tools.allow", claim.Tools.Allow)
		d.patterns(at+".tools.deny", claim.Tools.Deny)
		d.namesServers(at+".servers", claim.Servers)
	}
}

// needs records a problem with a required member of the mapping at path.
func (d *decoder) needs(path, key string, err error) {
	_, given := d.places[join(path, key)]
	switch {
	case err == nil || d.failed[join(path, key)]:
	case given:
		d.wrong(join(path, key), "%v, got %s", err, d.places[join(path, key)].quoted())
	default:
		d.wrong(path, "needs %s: %v", key, err)
	}
}
