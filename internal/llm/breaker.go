package llm

import (
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/breaker"
)

// Breaker is the circuit breaker of an endpoint, which clients can share. A failure to connect opens it for ten
// seconds; then one request tries. Other failures come from the endpoint, so they close it.
type Breaker struct {
	breaker.Breaker
	last atomic.Pointer[Error] // the last failure to connect
}

// NewBreaker returns a closed Breaker.
func NewBreaker() *Breaker {
	return &Breaker{Breaker: breaker.Breaker{Limit: 1, Pause: 10 * time.Second, Longest: 10 * time.Second}}
}

// allow returns nil if a request may be sent, else the reason. before is for done.
func (b *Breaker) allow() (before uint64, err *Error) {
	before = b.Failures()
	if ok, _ := b.Allow(); ok {
		return before, nil
	}
	e := *b.last.Load()
	e.Message = "not sent, because the last connection attempt failed: " + e.Message
	return 0, &e
}

// done records the result of a request that allow admitted. A cancellation by the caller says nothing.
func (b *Breaker) done(before uint64, err error) {
	var e *Error
	switch {
	case err == nil, errors.As(err, &e) && !e.unconnected:
		b.Succeeded()
	case e != nil:
		b.last.Store(e)
		b.Failed(before, true)
	}
}

// unconnected reports whether no connection was made: refused, no route, no such host.
func unconnected(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial"
}
