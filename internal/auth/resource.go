package auth

import (
	"net/url"
	"strings"
)

// Base returns the public URL of the router without a trailing slash: the audience without the path of an MCP
// endpoint. It is empty if the audience is not a URL.
func (c *OAuthConfig) Base() string {
	u, err := url.Parse(c.Audience)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	whole := strings.TrimSuffix(c.Audience, "/")
	for i := len(u.Scheme) + len("://"); i < len(whole); i++ {
		if whole[i] == '/' && Endpoint(whole[i:]) == whole[i:] {
			return whole[:i]
		}
	}
	return whole
}

// Resource returns the audience of tokens for an MCP endpoint; an empty path stands for the router. It is empty if
// the configured audience is not a URL.
func (c *OAuthConfig) Resource(endpoint string) string {
	switch base := c.Base(); {
	case base == "":
		return ""
	case c.accepts(base + endpoint):
		return base + endpoint
	}
	return c.Audience
}

// accepts reports whether tokens for an audience are accepted: the configured audience or, if that is the router's
// base URL, an MCP endpoint below it. A trailing slash makes no difference.
func (c *OAuthConfig) accepts(audience string) bool {
	base := c.Base()
	if base == "" {
		return audience == c.Audience
	}
	audience, whole := strings.TrimSuffix(audience, "/"), strings.TrimSuffix(c.Audience, "/")
	if base != whole {
		return audience == whole
	}
	path, below := strings.CutPrefix(audience, base)
	return below && (path == "" || Endpoint(path) == path)
}

// admits reports whether a token for audiences is valid at a path of the router. A token for one MCP endpoint is valid
// at that endpoint only, one for the router everywhere.
func (c *OAuthConfig) admits(audiences []string, path string) (here, everywhere bool) {
	base := c.Base()
	for _, audience := range audiences {
		if !c.accepts(audience) {
			continue
		}
		endpoint := strings.TrimPrefix(strings.TrimSuffix(audience, "/"), base)
		switch {
		case base == "" || endpoint == "":
			return true, true
		case endpoint == Endpoint(path):
			here = true
		}
	}
	return here, false
}

// Endpoint returns the public path of the MCP endpoint that serves a path, such as /sse for /messages/. It is empty
// for other paths.
func Endpoint(path string) string {
	prefix, proxied := strings.CutPrefix(path, "/proxy")
	within := ""
	if proxied {
		path, within = prefix, "/proxy"
	}
	switch path {
	case "/mcp", "/sse":
		return within + path
	case "/messages", "/messages/":
		return within + "/sse"
	}
	name, isMCP := strings.CutSuffix(path, "/mcp")
	for _, group := range []string{"/servers/", "/profiles/"} {
		if name, in := strings.CutPrefix(name, group); in && isMCP && !proxied && isName(name) {
			return path
		}
	}
	return ""
}

// isName reports whether s has only characters allowed in server names.
func isName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	})
}
