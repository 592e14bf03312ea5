package proxy

import "time"

// Ways to write resource URIs of a server on the proxy surface.
const (
	ResourcePrefix = "prefix" // server__uri
	ResourceScheme = "scheme" // server+uri
)

// Config controls the transparent surfaces.
type Config struct {
	SearchAbove   int           `yaml:"search_above"`   // 0 = never narrow the list
	ResourceNames string        `yaml:"resource_names"` // prefix or scheme
	NameLimit     int           `yaml:"name_limit"`     // longest listed name; 0 = off
	Timeout       time.Duration `yaml:"timeout"`        // idle limit of a forwarded request
	ListDeadline  time.Duration `yaml:"list_deadline"`  // for one server's part of a list
}

// Default returns the documented defaults.
func Default() Config {
	return Config{ResourceNames: ResourcePrefix, NameLimit: 46, Timeout: 10 * time.Minute, ListDeadline: 5 * time.Second}
}
