package downstream

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/safe"
)

// server is one configured server: its sessions and how it is.
type server struct {
	config   ServerConfig
	checks   HealthConfig
	deadline time.Duration // of a list
	logger   *slog.Logger
	open     func(ctx context.Context, sl *slot) (*link.Session, error)
	clients  *clients
	say      func(Message) // hands a notification over
	returned func()        // is called when a server that was left out can be reached again
	own      *slot         // the router's own session, which is also the shared one
	queue    *admission.Queue
	breaker  admission.Breaker
	health   *health.Machine
	reached  chan struct{} // has a token once a session could be opened
	doubted  chan struct{} // has a token once a connection failed while the router's own session seems to live

	mu      sync.Mutex
	slots   map[*slot]struct{} // of clients
	listed  map[string]known   // by method
	asked   atomic.Int64       // lists that were asked for
	latency latencies

	ctx    context.Context // ends with stop; bounds connections and lists under way
	cancel context.CancelFunc
	wg     sync.WaitGroup // connections and lists under way
}

func newServer(c ServerConfig, o *Options) *server {
	s := &server{
		config: c, checks: o.Health, health: health.New(c.Disabled), deadline: o.ListDeadline, logger: o.Logger, say: o.OnMessage,
		slots: map[*slot]struct{}{}, listed: map[string]known{},
		reached: make(chan struct{}, 1), doubted: make(chan struct{}, 1),
	}
	s.queue = admission.NewQueue(c.places(), c.room())
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
	if client == "" || !s.perClient() {
		return s.own
	}
	return s.clients.slot(client, s)
}

// adopt lists the slot of a client, to be closed with the server. It is false if the server has stopped.
func (s *server) adopt(sl *slot) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.slots[sl] = struct{}{}
	return true
}

// release forgets the slot of a client that has left.
func (s *server) release(sl *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.slots, sl)
}

// on takes an event of the server's health.
func (s *server) on(e health.Event, err error) {
	if s.health.On(e, err) {
		defer s.rescue("reporting that it is back", nil)
		s.returned()
	}
}

// rescue is deferred by what uses the server in a goroutine of its own: a panic becomes an error there, which failed
// gets if it is not nil.
func (s *server) rescue(doing string, failed func(f *link.Failure)) {
	safe.Caught(recover(), s.logger, doing+", server "+s.config.Name, func(err error) {
		if failed != nil {
			failed(&link.Failure{Server: s.config.Name, Reason: link.ReasonUnavailable, Message: err.Error()})
		}
	})
}

// connected notes how an attempt to connect went.
func (s *server) connected(client string, session *link.Session, err error) {
	if err != nil {
		s.failed(err)
		s.logger.Warn("cannot connect to server", "server", s.config.Name, "error", err)
		s.unconnected(err, client == "")
		return
	}
	level := slog.LevelInfo
	if client != "" {
		level = slog.LevelDebug // clients set the rate
	}
	s.logger.Log(s.ctx, level, "connected to server", "server", s.config.Name, "protocol", session.Version)
	select {
	case s.reached <- struct{}{}:
	default: // there is a token
	}
	s.breaker.Reached()
	s.on(health.Opened, nil)
}

// unconnected notes that an attempt to connect failed. Of a client's, only failures of the connection count: what the
// server says to one client is no concern of others.
func (s *server) unconnected(err error, own bool) {
	var f *link.Failure
	known := errors.As(err, &f)
	switch {
	case own && known && f.Reason == link.ReasonProtocol:
		s.on(health.Garbled, err)
	case own, known && (f.Reason == link.ReasonUnavailable || f.Reason == link.ReasonTimeout || f.Reason == link.ReasonDisconnected):
		s.on(health.Refused, err)
		s.doubt()
	}
}

// unreached notes that a request failed, which may be because there was no connection for it.
func (s *server) unreached(err error) {
	if f := (*link.Failure)(nil); errors.As(err, &f) && f.Reason == link.ReasonUnavailable && !f.Delivered {
		s.on(health.Refused, err)
		s.doubt()
	}
}

// doubt has watch look whether the router's own session is still of use.
func (s *server) doubt() {
	select {
	case s.doubted <- struct{}{}:
	default: // there is a token
	}
}

// rest waits before the next attempt to open the router's own session, or until one of another's could be opened.
func (s *server) rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-s.reached: // that was before
	default:
	}
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

// leftOut says in the log that something was answered without the server: as a warning now and then.
func (s *server) leftOut(method string, err error) {
	level := slog.LevelDebug
	if s.health.LeftOut() {
		level = slog.LevelWarn
	}
	s.logger.Log(s.ctx, level, "server is left out", "server", s.config.Name, "method", method, "error", err)
}

// failed keeps err as the server's last error.
func (s *server) failed(err error) {
	var f *link.Failure
	if !errors.As(err, &f) {
		f = &link.Failure{Server: s.config.Name, Reason: link.ReasonDisconnected, Message: err.Error()}
	}
	s.health.Failed(f)
}

// supervise keeps the slot's session alive until ctx ends: it connects, watches and reconnects. rest makes the
// pauses.
func (sl *slot) supervise(ctx context.Context, watch func(ctx context.Context, session *link.Session), rest func(ctx context.Context, d time.Duration) bool) {
	s := sl.s
	connect := sl.get
	if sl.client != "" {
		connect = func(ctx context.Context) (*link.Session, error) {
			return sl.getUnless(ctx, s.health.Cause) // one attempt for all clients tells whether the server is back
		}
	}
	short := 0 // sessions in a row that did not last
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(min(time.Second, s.checks.Interval)), backoff.WithMaxInterval(s.checks.Interval), backoff.WithMaxElapsedTime(0))
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
			// It did not last: a server that ends right after the handshake is not started without pause.
			if short++; short > 1 && sl.client == "" {
				s.on(health.Refused, session.Err())
			}
		}
		if !rest(ctx, wait.NextBackOff()) {
			return
		}
	}
}

const checkAgain = time.Second // from one ping to the next that a failed connection causes

// watch pings the session at the health interval, and once a connection has failed, until it is lost or a ping fails.
func (s *server) watch(ctx context.Context, session *link.Session) {
	// Servers that started together are not asked together.
	first := time.Duration(rand.Int64N(int64(s.checks.Interval)/4 + 1))
	timer := time.NewTimer(s.checks.Interval - first)
	defer timer.Stop()
	var checked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-session.Done():
			s.failed(session.Err())
			s.on(health.Ended, nil)
			return
		case <-s.doubted: // a ping tells whether the session is of use, but not each failed connection causes one
			timer.Reset(time.Until(checked.Add(checkAgain)))
			continue
		case <-timer.C:
		}
		checked = time.Now()
		err := s.ping(ctx, session)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			s.on(health.Pinged, nil)
		} else {
			s.logger.Warn("Health check failed for "+s.config.Name+": "+err.Error(), "server", s.config.Name)
			s.failed(err)
			s.on(health.Silent, nil)
			if session.InFlight() == 0 {
				session.Close() // nobody waits on it: begin anew
				return
			}
		}
		timer.Reset(s.checks.Interval)
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
	cause := errors.New("no answer to ping within " + s.checks.Timeout.String())
	ctx, cancel := context.WithTimeoutCause(ctx, s.checks.Timeout, cause)
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
	slots := slices.Collect(maps.Keys(s.slots))
	clear(s.slots)
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, sl := range append(slots, s.own) {
		wg.Go(func() {
			defer s.rescue("closing a session", nil)
			sl.close(limit)
		})
	}
	wg.Wait()
	s.clients.drop(s, slots)
	s.wg.Wait()
	s.on(health.Ended, nil)
}
