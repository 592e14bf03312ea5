package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"github.com/agenticnexus/agenticnexus/internal/redact"
)

// NewKey returns a new random key and its SHA-256 in hex.
func NewKey() (key, hash string) {
	key = "nx_" + rand.Text() + rand.Text()
	return key, fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
}

// Config configures the access to the router. In files, each key sets exactly one of SHA256, Env and File.
type Config struct {
	APIKeys   []KeyConfig  `yaml:"api_keys"`
	OAuth     *OAuthConfig `yaml:"oauth"`     // nil = no access tokens
	Anonymous bool         `yaml:"anonymous"` // allow binding beyond loopback without keys and tokens
}

// Required reports whether callers need a key or a token.
func (c Config) Required() bool { return len(c.APIKeys) > 0 || c.OAuth != nil }

// OAuthConfig configures which access tokens are accepted, and the rights of their holders.
type OAuthConfig struct {
	Issuer   string        `yaml:"issuer"`   // URL, exactly as in its metadata and tokens
	Audience string        `yaml:"audience"` // required audience of tokens; usually the router's public URL
	Scopes   []string      `yaml:"scopes"`   // scopes that a token must have, all of them
	Claims   []ClaimConfig `yaml:"claims"`   // empty = any token may use everything
}

// ClaimConfig grants rights to tokens with a claim, like a key with the same lists. A token has the rights of all its
// claims.
type ClaimConfig struct {
	Claim     string    `yaml:"claim"` // name, or the path to it with dots between the names
	Value     string    `yaml:"value"` // value of the claim, an element of it, or a word of scope or scp
	Servers   []string  `yaml:"servers"`
	Tools     Filter    `yaml:"tools"`
	Resources AllowList `yaml:"resources"`
	Prompts   AllowList `yaml:"prompts"`
}

// KeyConfig is one API key and its rights.
type KeyConfig struct {
	Name      string        `yaml:"name"`
	SHA256    string        `yaml:"sha256"` // hex of the key's SHA-256
	Env       string        `yaml:"env"`    // variable that holds the key
	File      string        `yaml:"file"`   // file that holds the key
	Key       redact.Secret `yaml:"-"`      // the key itself, from NEXUS_API_KEY, Env or File
	Servers   []string      `yaml:"servers"`
	Tools     Filter        `yaml:"tools"`
	Resources AllowList     `yaml:"resources"`
	Prompts   AllowList     `yaml:"prompts"`
	Ops       bool          `yaml:"ops"`  // the operators' pages show the key everything
	Edit      bool          `yaml:"edit"` // the page changes the configuration for the key, if it has no limits
}

// Limits returns the limits of the key.
func (k KeyConfig) Limits() Limits { return Limits{k.Servers, k.Tools, k.Resources, k.Prompts} }

// Limits returns the limits of tokens with the claim.
func (c ClaimConfig) Limits() Limits { return Limits{c.Servers, c.Tools, c.Resources, c.Prompts} }

// Limits are the limits of a key, a claim or a profile. With Tools, nothing but tools is allowed beyond what Resources
// and Prompts name.
type Limits struct {
	Servers   []string // empty = all
	Tools     Filter
	Resources AllowList
	Prompts   AllowList
}

// Filter holds shell patterns (path.Match) over server__tool. An empty Allow allows all; Deny wins.
type Filter struct {
	Allow []string `yaml:"allow"`
	Deny  []string `yaml:"deny"`
}

// AllowList holds shell patterns (path.Match) over server__uri or server__name. If it is empty, the limits of tools
// decide, see Limits.
type AllowList struct {
	Allow []string `yaml:"allow"`
}
