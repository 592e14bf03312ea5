package auth

import "github.com/agenticnexus/agenticnexus/internal/secret"

// Config says who may use the router. In files, each key sets exactly one of SHA256, Env and File.
type Config struct {
	APIKeys   []KeyConfig `yaml:"api_keys"`
	Anonymous bool        `yaml:"anonymous"` // allow binding beyond loopback without keys
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
