package limit

import (
	"time"
)

// Config limits what clients and servers can make the router hold.
type Config struct {
	QueryChars      int           `yaml:"query_chars"` // Unicode characters
	QueryBytes      Bytes         `yaml:"query_bytes"` // total size of the results of a query
	BodyBytes       Bytes         `yaml:"body_bytes"`
	ResultBytes     Bytes         `yaml:"result_bytes"`
	Sessions        int           `yaml:"sessions"`
	TrackedRequests int           `yaml:"tracked_requests"`
	SessionIdle     time.Duration `yaml:"session_idle"`
}

// Default returns the default limits.
func Default() Config {
	return Config{
		QueryChars: 10_000, QueryBytes: 128 << 20, BodyBytes: 4 << 20, ResultBytes: 64 << 20,
		Sessions: 10_000, TrackedRequests: 10_000, SessionIdle: 30 * time.Minute,
	}
}

const (
	leastOwn    = 64 << 20  // minimum of Bounds.Own, in bytes
	ownShare    = 4         // number of callers that can use their full limit at once
	callerFloor = 256 << 10 // bytes guaranteed to every caller
	inFlight    = 36 << 10  // bytes of a request besides its message: stacks and connection buffers
)

// Bounds returns the limits of callers: each may hold one result of maximum size and one body. While others are
// active, the requests of one caller also take no more memory than that.
func (c Config) Bounds() Bounds {
	own := max(leastOwn, int64(c.ResultBytes)) + int64(c.BodyBytes)
	return Bounds{
		Requests: c.TrackedRequests, Share: int(own / inFlight), Total: ownShare * own, Own: own, Floor: callerFloor,
	}
}

// RateConfig is the rate limit per caller: Requests calls of the named tools in any window of length Per.
type RateConfig struct {
	Requests int           `yaml:"requests"`
	Per      time.Duration `yaml:"per"`
	Tools    []string      `yaml:"tools"`
}

// DefaultRate returns the default rate limit.
func DefaultRate() RateConfig {
	return RateConfig{Requests: 100, Per: time.Minute, Tools: []string{"process_query"}}
}
