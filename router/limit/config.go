package limit

import (
	"time"

	"github.com/agenticnexus/agenticnexus/internal/size"
)

// Config bounds what clients and servers can make the router hold.
type Config struct {
	QueryChars      int           `yaml:"query_chars"` // Unicode characters
	BodyBytes       size.Bytes    `yaml:"body_bytes"`
	ResultBytes     size.Bytes    `yaml:"result_bytes"`
	Sessions        int           `yaml:"sessions"`
	TrackedRequests int           `yaml:"tracked_requests"`
	SessionIdle     time.Duration `yaml:"session_idle"`
}

// Default returns the documented defaults.
func Default() Config {
	return Config{
		QueryChars: 10_000, BodyBytes: 4 << 20, ResultBytes: 64 << 20,
		Sessions: 10_000, TrackedRequests: 10_000, SessionIdle: 30 * time.Minute,
	}
}

// RateConfig is the rate limit of a caller: Requests calls of the named tools in any window of length Per.
type RateConfig struct {
	Requests int           `yaml:"requests"`
	Per      time.Duration `yaml:"per"`
	Tools    []string      `yaml:"tools"`
}

// DefaultRate returns the documented defaults.
func DefaultRate() RateConfig {
	return RateConfig{Requests: 100, Per: time.Minute, Tools: []string{"process_query"}}
}
