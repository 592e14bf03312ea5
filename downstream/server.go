package downstream

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/agenticnexus/agenticnexus/downstream/link"
)

// States of a server.
const (
	StateConnecting   = "connecting"   // the first attempt, or one after a loss, is under way
	StateConnected    = "connected"    // the handshake is done and pings are answered
	StateDegraded     = "degraded"     // it does not answer pings
	StateDisconnected = "disconnected" // it cannot be reached, or the session was lost
	StateQuarantined  = "quarantined"  // something answers, but does not speak MCP
	StateDisabled     = "disabled"     // by the configuration
)

// server is one configured server: its sessions and how it is.
type server struct {
	config   ServerConfig
	health   HealthConfig
	deadline time.Duration // of a list
	logger   *slog.Logger
	open     func(ctx context.Context, sl *slot) (*link.Session, error)
	knows    func(client string) bool // has entered and not left
	standing *standing
	returned func() // is called when a server that was left out can be reached again
	own      *slot  // the router's own session, which is also the shared one
	gate     *gate
	breaker  breaker
	reached  chan struct{} // has a token once a session could be opened

	mu      sync.Mutex
	slots   map[string]*slot // by client
	listed  map[string]known // by method
	asked   atomic.Int64     // lists that were asked for
	state   string
	since   time.Time // when that state began
	failing bool      // the last attempt to open the router's own session has failed
	resting error     // why supervise lets the server be for a while; until it could be reached
	tried   time.Time // when the last attempt of others began or ended meanwhile
	missed  time.Time // when a warning last said that something was answered without the server; zero = not since it was down
	lastErr *link.Failure
	lastOK  time.Time
	latency latencies

	ctx    context.Context // ends with stop; bounds connections and lists under way
	cancel context.CancelFunc
	wg     sync.WaitGroup // connections and lists under way
}

func newServer(c ServerConfig, o *Options) *server {
	s := &server{
		config: c, health: o.Health, deadline: o.ListDeadline, logger: o.Logger,
		slots: map[string]*slot{}, listed: map[string]known{}, state: StateConnecting, since: time.Now(),
		reached: make(chan struct{}, 1),
	}
	if s.gate = newGate(c.MaxParallel); c.MaxParallel <= 0 {
		s.gate = newGate(DefaultMaxParallel)
	}
	if c.Disabled {
		s.state = StateDisabled
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.own = newSlot(s, "")
	return s
}

// perClient reports whether each client has a session of its own on the proxy surfaces.
func (s *server) perClient() bool {
	if s.config.Session != "" {
		return s.config.Session == SessionPerClient
	}
	return s.config.URL != ""
}

// slot returns the place of a client's session; clients that have not entered share the router's own.
func (s *server) slot(client string) *slot {
	if client == "" || !s.perClient() || !s.knows(client) {
		return s.own
	}
	s.mu.Lock()
	sl := s.slots[client]
	if sl != nil || s.ctx.Err() != nil {
		s.mu.Unlock()
		if sl == nil {
			return s.own // which is closed, too
		}
		return sl
	}
	sl = newSlot(s, client)
	s.slots[client] = sl
	s.mu.Unlock()
	if !s.knows(client) { // it has left in the meantime
		s.leave(client) // nobody else would close it
		return s.own
	}
	return sl
}

// leave closes a client's session.
func (s *server) leave(client string) {
	s.mu.Lock()
	sl := s.slots[client]
	delete(s.slots, client)
	s.mu.Unlock()
	if sl != nil {
		sl.close(stopTime)
	}
}

// connecting notes that the router's own session is being opened. Attempts that follow one which failed do not
// make a server another than it was.
func (s *server) connecting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.failing && s.state != StateDegraded && s.state != StateQuarantined {
		s.setState(StateConnecting)
	}
}

// connected notes how an attempt to connect went.
func (s *server) connected(client string, session *link.Session, err error) {
	if err != nil {
		s.failed(err)
		s.logger.Warn("cannot connect to server", "server", s.config.Name, "error", err)
		if client == "" {
			s.unreachable(err)
		}
		s.mu.Lock()
		if s.tried = time.Now(); s.resting != nil {
			s.resting = err
		}
		s.mu.Unlock()
		return
	}
	s.logger.Info("connected to server", "server", s.config.Name, "protocol", session.Version)
	select {
	case s.reached <- struct{}{}:
	default: // there is a token
	}
	if client != "" {
		return
	}
	s.breaker.reached()
	s.become(StateConnected)
	s.mu.Lock()
	missed := !s.missed.IsZero()
	s.failing, s.resting, s.missed = false, nil, time.Time{}
	s.mu.Unlock()
	if missed {
		s.returned()
	}
}

// unreachable notes that the router's own session cannot be opened.
func (s *server) unreachable(err error) {
	state := StateDisconnected
	var f *link.Failure
	if errors.As(err, &f) && f.Reason == link.ReasonProtocol {
		state = StateQuarantined // something answers, but nothing that we understand
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = true
	s.setState(state)
}

// rest waits before the next attempt to open the router's own session, or until one of another's could be
// opened. From here on until an attempt succeeds, whoever does not need the server in particular mostly gets why
// at once; see refuses.
func (s *server) rest(ctx context.Context, d time.Duration, why error) bool {
	select {
	case <-s.reached: // that was before
	default:
	}
	s.mu.Lock()
	s.resting = why
	s.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.reached:
	case <-ctx.Done():
		return false
	case <-s.ctx.Done():
		return false
	}
	return true
}

// rests returns why supervise lets the server be; nil if it does not.
func (s *server) rests() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resting
}

// refuses returns why the server is not tried at the moment; nil if it may be. Supervise comes back to it with
// growing pauses; where it merely was not there, which an attempt finds out without delay, one of those who ask
// for it may look again before.
func (s *server) refuses() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var f *link.Failure
	if s.resting == nil || !errors.As(s.resting, &f) || f.Reason != link.ReasonUnavailable || time.Since(s.tried) < lookAgain {
		return s.resting
	}
	s.tried = time.Now()
	return nil
}

// lookAgain is how long after one look at a server that was not there another may follow.
const lookAgain = 2 * time.Second

// leftOut says in the log that something was answered without the server: as a warning now and then, for it is
// clients who set the rate.
func (s *server) leftOut(method string, err error) {
	level := slog.LevelWarn
	s.mu.Lock()
	if time.Since(s.missed) < missedAgain {
		level = slog.LevelDebug
	} else {
		s.missed = time.Now()
	}
	s.mu.Unlock()
	s.logger.Log(s.ctx, level, "server is left out", "server", s.config.Name, "method", method, "error", err)
}

// missedAgain is how long after one warning of leftOut there is no other.
const missedAgain = 30 * time.Second

// failed keeps err as the server's last error.
func (s *server) failed(err error) {
	var f *link.Failure
	if !errors.As(err, &f) {
		f = &link.Failure{Server: s.config.Name, Reason: link.ReasonDisconnected, Message: err.Error()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastErr = f
}

// supervise keeps the slot's session alive until ctx ends: it connects, watches and reconnects. rest makes the
// pauses; why is what went wrong, nil if it may have been a restart.
func (sl *slot) supervise(ctx context.Context, watch func(ctx context.Context, session *link.Session), rest func(ctx context.Context, d time.Duration, why error) bool) {
	s := sl.s
	connect := sl.get
	if sl.client != "" {
		connect = func(ctx context.Context) (*link.Session, error) {
			if err := s.rests(); err != nil && sl.alive() == nil {
				return nil, err // one attempt for all clients tells whether the server is back
			}
			return sl.get(ctx)
		}
	}
	short := 0 // sessions in a row that did not last
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(min(time.Second, s.health.Interval)), backoff.WithMaxInterval(s.health.Interval), backoff.WithMaxElapsedTime(0))
	for {
		session, err := connect(ctx)
		if ctx.Err() != nil || errors.Is(err, errRetired) {
			return
		}
		if err == nil {
			began := time.Now()
			watch(ctx, session)
			if time.Since(began) >= s.health.Interval/2 {
				wait.Reset()
				short = 0
				continue
			}
			// It did not last: a server that ends right after the handshake is not started without pause.
			if short++; short > 1 {
				err = session.Err()
			}
		}
		if !rest(ctx, wait.NextBackOff(), err) {
			return
		}
	}
}

// watch pings the session at the health interval until it is lost or a ping fails.
func (s *server) watch(ctx context.Context, session *link.Session) {
	// Servers that started together are not asked together.
	first := time.Duration(rand.Int64N(int64(s.health.Interval)/4 + 1))
	timer := time.NewTimer(s.health.Interval - first)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-session.Done():
			s.failed(session.Err())
			s.become(StateDisconnected)
			return
		case <-timer.C:
		}
		err := s.ping(ctx, session)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			s.become(StateConnected)
		} else {
			s.logger.Warn("Health check failed for "+s.config.Name+": "+err.Error(), "server", s.config.Name)
			s.failed(err)
			s.become(StateDegraded)
			if session.InFlight() == 0 {
				session.Close() // nobody waits on it: begin anew
				return
			}
		}
		timer.Reset(s.health.Interval)
	}
}

func (s *server) become(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.setState(state); state == StateConnected {
		s.lastOK = time.Now()
	}
}

// setState notes since when the state is what it is. s.mu is held.
func (s *server) setState(state string) {
	if s.state != state {
		s.state, s.since = state, time.Now()
	}
}

// observed notes how long a call took and, if it failed, why. What we refused ourselves says nothing new.
func (s *server) observed(took time.Duration, err error) {
	if err != nil {
		var failure *link.Failure
		switch errors.As(err, &failure); {
		case errors.As(err, new(refused)):
			return
		case failure != nil:
			s.failed(failure)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency.add(took)
}

// ping asks for a sign of life. Any JSON-RPC answer is one, an error too.
func (s *server) ping(ctx context.Context, session *link.Session) error {
	cause := errors.New("no answer to ping within " + s.health.Timeout.String())
	ctx, cancel := context.WithTimeoutCause(ctx, s.health.Timeout, cause)
	defer cancel()
	err := session.Ping(ctx)
	if errors.Is(err, cause) {
		return &link.Failure{Server: s.config.Name, Reason: link.ReasonTimeout, Message: cause.Error()}
	}
	return err
}

// sleep waits for d and reports true, unless ctx or stop ends before.
func sleep(ctx context.Context, d time.Duration, stop <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-stop:
	}
	return false
}

// stop closes every session, each within limit, and waits for connections under way.
func (s *server) stop(limit time.Duration) {
	s.mu.Lock()
	s.cancel() // no slot is added from here on
	open := []*slot{s.own}
	for _, sl := range s.slots {
		open = append(open, sl)
	}
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, sl := range open {
		wg.Go(func() { sl.close(limit) })
	}
	wg.Wait()
	s.wg.Wait()
	if !s.config.Disabled {
		s.become(StateDisconnected)
	}
}
