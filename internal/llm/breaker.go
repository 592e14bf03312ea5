package llm

import (
	"errors"
	"net"
	"sync"
	"time"
)

// downFor is how long the breaker stays open.
const downFor = 10 * time.Second

// Breaker is the circuit breaker of an endpoint (M. Nygard, Release It!, 2007); clients can share it. It opens when
// no connection can be made: for ten seconds requests fail at once. Then it is half-open: one request tries to
// connect while the others fail. The first connection closes it. Only failures to connect count, not error responses.
// The zero value is closed. A Breaker is safe for concurrent use.
type Breaker struct {
	mu      sync.Mutex
	down    *Error // why the breaker is open; nil = closed
	until   time.Time
	probing bool // one request tries to connect
}

// allow returns nil if a request may be sent, else the reason. probe tells the caller to try only once. A caller that
// is allowed must call done.
func (b *Breaker) allow(now time.Time) (probe bool, err *Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.down == nil:
		return false, nil
	case b.probing || now.Before(b.until):
		e := *b.down
		e.Message = "not sent, because the last connection attempt failed: " + e.Message
		return false, &e
	}
	b.probing = true
	return true, nil
}

// state returns closed or open.
func (b *Breaker) state() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down != nil {
		return "open"
	}
	return "closed"
}

// done records the result of a request that allow admitted.
func (b *Breaker) done(now time.Time, probe bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
	}
	var e *Error
	switch {
	case err == nil, errors.As(err, &e) && !e.unconnected:
		b.down = nil
	case e != nil:
		b.down, b.until = e, now.Add(downFor)
	}
}

// unconnected reports whether no connection was made: refused, no route, no such host.
func unconnected(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial"
}
