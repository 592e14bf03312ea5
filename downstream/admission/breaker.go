package admission

import "github.com/agenticnexus/agenticnexus/internal/breaker"

// Breaker is the circuit breaker of a server.
type Breaker = breaker.Breaker

// States of a Breaker.
const (
	Closed   = breaker.Closed
	Open     = breaker.Open
	HalfOpen = breaker.HalfOpen
)
