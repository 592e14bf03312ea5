package access

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/auth"
)

// MetadataPath serves the protected resource metadata of the router (RFC 9728). The path of an MCP endpoint may
// follow it.
const MetadataPath = "/.well-known/oauth-protected-resource"

// ServeMetadata serves the metadata. It answers 404 if access tokens are not configured, and for unknown paths.
func (p *Policy) ServeMetadata(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, MetadataPath)
	c := p.oauth()
	if c == nil || path != "" && auth.Endpoint(path) != path {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		http.Error(w, "want GET", http.StatusMethodNotAllowed)
		return
	}
	resource := c.Resource(path)
	if resource == "" {
		resource = auth.ClientURL(r, p.trusted) + path
	}
	document, err := json.Marshal(struct {
		Resource string   `json:"resource"`
		Issuers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
	}{resource, []string{c.Issuer}, c.Scopes, []string{"header"}})
	if err != nil {
		http.Error(w, "the metadata cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store") // a reload may change it
	_, _ = w.Write(document)
}

// Challenge returns the WWW-Authenticate value for a refused request; refused is nil if it has neither key nor token.
func (p *Policy) Challenge(r *http.Request, refused *auth.Refusal) string {
	challenge := `Bearer realm="agenticnexus"`
	c := p.oauth()
	if refused != nil && refused.Code != "" {
		challenge += `, error="` + refused.Code + `"`
		if c != nil {
			challenge += `, error_description="` + refused.Text + `"`
		}
	}
	if c == nil {
		return challenge
	}
	if len(c.Scopes) > 0 {
		challenge += `, scope="` + strings.Join(c.Scopes, " ") + `"`
	}
	base := c.Base()
	if base == "" {
		base = auth.ClientURL(r, p.trusted)
	}
	return challenge + `, resource_metadata="` + base + MetadataPath + auth.Endpoint(r.URL.Path) + `"`
}

// Missing describes the credentials that a request without any lacks.
func (p *Policy) Missing() string {
	switch {
	case p.oauth() == nil:
		return "an API key is needed"
	case p.keys.Any():
		return "an API key or an access token is needed"
	}
	return "an access token is needed"
}

func (p *Policy) oauth() *auth.OAuthConfig {
	if p.keys == nil {
		return nil
	}
	return p.keys.OAuth()
}
