package access

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/auth"
)

// MetadataPath is where clients find the metadata of the router as a protected resource (RFC 9728): there, and with
// the path of an MCP endpoint after it.
const MetadataPath = "/.well-known/oauth-protected-resource"

// ServeMetadata serves the metadata. It answers with 404 where no access tokens count, and for other paths.
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
	w.Header().Set("Cache-Control", "no-store") // a reload changes it
	_, _ = w.Write(document)
}

// Challenge returns the value of WWW-Authenticate for a request that is refused; refused is nil if it has neither key
// nor token.
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

// Missing says what a request without key and token lacks.
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
