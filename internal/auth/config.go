package auth

import "github.com/agenticnexus/agenticnexus/internal/secret"

// Config says who may use the router. In files, each key sets exactly one of SHA256, Env and File.
type Config struct {
	APIKeys   []KeyConfig  `yaml:"api_keys"`
	OAuth     *OAuthConfig `yaml:"oauth"`     // nil = no access tokens
	Anonymous bool         `yaml:"anonymous"` // allow binding beyond loopback without keys and tokens
}

// Required reports whether callers need a key or a token.
func (c Config) Required() bool { return len(c.APIKeys) > 0 || c.OAuth != nil }

// OAuthConfig says which access tokens count, and what their holders may use.
type OAuthConfig struct {
	Issuer   string        `yaml:"issuer"`   // URL, as its metadata and its tokens have it
	Audience string        `yaml:"audience"` // that tokens must be for; the public URL of the router, if it is one
	Scopes   []string      `yaml:"scopes"`   // that tokens must have, all of them
	Claims   []ClaimConfig `yaml:"claims"`   // none = a token may use everything
}

// ClaimConfig is what a token with a claim may use, like a key with the same lists. A token may use what any of its
// claims allows.
type ClaimConfig struct {
	Claim   string   `yaml:"claim"` // name, or the path to it with dots between the names
	Value   string   `yaml:"value"` // of the claim, one of its list, or a word of scope and scp
	Servers []string `yaml:"servers"`
	Tools   Filter   `yaml:"tools"`
}

// KeyConfig is one API key and what it may use.
type KeyConfig struct {
	Name    string        `yaml:"name"`
	SHA256  string        `yaml:"sha256"` // hex of the key's SHA-256
	Env     string        `yaml:"env"`    // variable that holds the key
	File    string        `yaml:"file"`   // file that holds the key
	Key     secret.String `yaml:"-"`      // the key itself, from NEXUS_API_KEY, Env or File
	Servers []string      `yaml:"servers"`
	Tools   Filter        `yaml:"tools"`
}

// Filter holds shell patterns (path.Match) over server__tool. An empty Allow allows all; Deny wins.
type Filter struct {
	Allow []string `yaml:"allow"`
	Deny  []string `yaml:"deny"`
}
