package limit

import (
	"time"

	"github.com/agenticnexus/agenticnexus/internal/size"
)

// Config bounds what clients and servers can make the router hold.
type Config struct {
	QueryChars      int           `yaml:"query_chars"` // Unicode characters
	QueryBytes      size.Bytes    `yaml:"query_bytes"` // of the results that a query holds
	BodyBytes       size.Bytes    `yaml:"body_bytes"`
	ResultBytes     size.Bytes    `yaml:"result_bytes"`
	Sessions        int           `yaml:"sessions"`
	TrackedRequests int           `yaml:"tracked_requests"`
	SessionIdle     time.Duration `yaml:"session_idle"`
}

// Default returns the documented defaults.
func Default() Config {
	return Config{
		QueryChars: 10_000, QueryBytes: 128 << 20, BodyBytes: 4 << 20, ResultBytes: 64 << 20,
		Sessions: 10_000, TrackedRequests: 10_000, SessionIdle: 30 * time.Minute,
	}
}

const (
	leastOwn    = 64 << 20  // bytes of results that a caller may have in memory, at least
	ownShare    = 4         // how many callers may hold all that they may hold at the same time
	callerFloor = 256 << 10 // bytes that a caller gets whatever others hold
	inFlight    = 36 << 10  // bytes of a request in flight beside its message: stacks, and buffers of connections
)

// Bounds returns what callers may hold: one result of the largest size and one body each. While others ask, the
// requests of one caller take no more memory than that either.
func (c Config) Bounds() Bounds {
	own := max(leastOwn, int64(c.ResultBytes)) + int64(c.BodyBytes)
	return Bounds{
		Requests: c.TrackedRequests, Share: int(own / inFlight), Total: ownShare * own, Own: own, Floor: callerFloor,
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
