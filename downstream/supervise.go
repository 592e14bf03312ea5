package downstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// supervise keeps a session in the slot until ctx ends: it connects, watches and reconnects. rest pauses between
// attempts and returns false when supervise has to end.
func (sl *slot) supervise(
	ctx context.Context,
	watch func(ctx context.Context, session *link.Session),
	rest func(ctx context.Context, d time.Duration) bool,
) {
	s := sl.s
	connect := sl.connect
	if sl.client != "" {
		connect = func(ctx context.Context) (*link.Session, error) {
			if why := s.health.machine.Cause(); why != nil && sl.current() == nil {
				return nil, why // one attempt for all clients detects the server's return
			}
			return sl.connect(ctx)
		}
	}
	short := 0 // consecutive short sessions
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(min(time.Second, s.checks.Interval)),
		backoff.WithMaxInterval(s.checks.Interval), backoff.WithMaxElapsedTime(0))
	for {
		session, err := connect(ctx)
		if ctx.Err() != nil || errors.Is(err, admission.ErrRetired) {
			return
		}
		if err == nil {
			began := time.Now()
			func() {
				defer s.rescue("watching a session", func(*link.Failure) { session.Close() })
				watch(ctx, session)
			}()
			if time.Since(began) >= s.checks.Interval/2 {
				wait.Reset()
				short = 0
				continue
			}
			// A server that ends right after the handshake is restarted with pauses.
			if short++; short > 1 && sl.client == "" {
				s.health.on(health.Refused, session.Err())
			}
		}
		if !rest(ctx, wait.NextBackOff()) {
			return
		}
	}
}

const checkAgain = time.Second // between pings caused by failed connections

// watch pings a session at the health interval and after failed connections, until the session is lost or a ping
// fails.
func (e *endpoint) watch(ctx context.Context, session *link.Session) {
	// The random start spreads the pings of servers that start together.
	first := time.Duration(rand.Int64N(int64(e.checks.Interval)/4 + 1))
	timer := time.NewTimer(e.checks.Interval - first)
	defer timer.Stop()
	var checked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-session.Done():
			e.health.failed(session.Err())
			e.health.on(health.Ended, nil)
			return
		case <-e.health.doubted: // rate-limited pings after failed connections
			timer.Reset(time.Until(checked.Add(checkAgain)))
			continue
		case <-timer.C:
		}
		checked = time.Now()
		err := e.ping(ctx, session)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			e.health.on(health.Pinged, nil)
		} else {
			e.logger.Warn("Health check failed for "+e.config.Name+": "+err.Error(), "server", e.config.Name)
			e.health.failed(err)
			e.health.on(health.Silent, nil)
			if session.InFlight() == 0 {
				session.Close() // no call can use it
				return
			}
		}
		timer.Reset(e.checks.Interval)
	}
}

// ping succeeds with any JSON-RPC response, also an error.
func (e *endpoint) ping(ctx context.Context, session *link.Session) error {
	cause := errors.New("no answer to ping within " + e.checks.Timeout.String())
	ctx, cancel := context.WithTimeoutCause(ctx, e.checks.Timeout, cause)
	defer cancel()
	err := session.Ping(ctx)
	if errors.Is(err, cause) {
		return e.failure(reason.Timeout, cause.Error())
	}
	return err
}

// loginLook is the interval at which a server without a token looks for one.
const loginLook = time.Second

// rest waits before the next attempt to open the router's own session. It ends early when a client's session opens or
// when someone logs in.
func (e *endpoint) rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-e.health.reached: // an old token
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	var look <-chan time.Time
	if e.tokens != nil {
		ticker := time.NewTicker(loginLook)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-timer.C:
			return true
		case <-e.health.reached:
			return true
		case <-look:
			if e.tokens.Changed() {
				return true
			}
		case <-ctx.Done():
			return false
		case <-e.ctx.Done():
			return false
		}
	}
}
