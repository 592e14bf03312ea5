package llm

import (
	"errors"
	"net"
	"sync"
	"time"
)

// downFor is how long the breaker stays open.
const downFor = 10 * time.Second

// Reach remembers that no connection to an endpoint could be made, so that those who share it do not all wait for the
// same refusals: for ten seconds questions fail at once, then one of them tries a single connection while the others
// still fail, and the first connection that is made ends it (a circuit breaker with a half-open state; M. Nygard,
// Release It!, 2007). Only failures to connect count: an endpoint that answers, with whatever error, is there. The zero
// value is an endpoint of which nothing is known; it may be used from any goroutine.
type Breaker struct {
	mu      sync.Mutex
	down    *Error // why the breaker is open; nil = closed
	until   time.Time
	probing bool // one request tries to connect
}

// allow reports why a request may not be sent, nil if it may. probe tells the caller to try only once. A caller that is
// allowed must call done.
func (r *Breaker) allow(now time.Time) (probe bool, err *Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.down == nil:
		return false, nil
	case r.probing || now.Before(r.until):
		e := *r.down
		e.Message = "not asked, because a moment ago there was no connection: " + e.Message
		return false, &e
	}
	r.probing = true
	return true, nil
}

// done records the result of a request that allow admitted.
func (r *Breaker) done(now time.Time, probe bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if probe {
		r.probing = false
	}
	var e *Error
	switch {
	case err == nil, errors.As(err, &e) && !e.unconnected:
		r.down = nil
	case e != nil:
		r.down, r.until = e, now.Add(downFor)
	}
}

// unconnected reports whether no connection was made: refused, no route, no such host.
func unconnected(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial"
}
