package downstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/agenticnexus/agenticnexus/downstream/admission"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// slot is the place of one session with a server: connected, connecting or empty. A session that is lost
// is replaced when it is next needed.
type slot struct {
	s      *server
	client string // whose it is; empty for the router's own, which is also the shared one

	ctx    context.Context // ends when the slot is closed
	cancel context.CancelFunc

	mu         sync.Mutex
	kept       bool // somebody sees to it that the session lives
	session    *link.Session
	connecting chan struct{} // closed when the attempt that is under way has ended; nil if there is none
	began      time.Time     // when that attempt began
	tried      bool          // an attempt before that has ended, well or not
	err        error
	closed     bool
	lists      map[string]*listing // by method: of this session, or under way
	last       map[string]*listing // by method: the last complete ones, whichever session they came from
	relists    *rate.Limiter       // of lists that are asked for only because something is missing
	nothing    listing             // what a disabled server lists

	current atomic.Pointer[held] // lists["tools/list"] once it is complete; nil after a change or a loss

	opened  atomic.Int64 // sessions so far
	mail    mail
	callers callers // who have used its sessions
}

func newSlot(s *server, client string) *slot {
	sl := &slot{s: s, client: client, lists: map[string]*listing{}, last: map[string]*listing{}, relists: rate.NewLimiter(relistRate, relistBurst)}
	sl.ctx, sl.cancel = context.WithCancel(s.ctx)
	if s.config.Disabled {
		sl.current.Store(&held{listing: &sl.nothing})
	}
	return sl
}

// get returns the session, connecting if there is none that lives. The connection does not end with ctx:
// others may wait for it, too. Where another server has taken the place of this one it fails with admission.ErrRetired.
func (sl *slot) get(ctx context.Context) (*link.Session, error) {
	sl.mu.Lock()
	if sl.session != nil && sl.session.Err() == nil {
		defer sl.mu.Unlock()
		return sl.session, nil
	}
	if sl.closed || sl.s.ctx.Err() != nil || sl.s.config.Disabled {
		sl.mu.Unlock()
		return nil, sl.unused()
	}
	if sl.s.queue.IsRetired() {
		sl.mu.Unlock()
		return nil, admission.ErrRetired
	}
	if sl.connecting == nil {
		sl.connecting, sl.began = make(chan struct{}), time.Now()
		if sl.client == "" {
			sl.s.on(health.Dialing, nil)
		}
		old := sl.session
		sl.s.wg.Go(func() {
			defer sl.s.rescue("connecting", sl.abandon)
			sl.connect(old)
		})
	}
	wait := sl.connecting
	sl.mu.Unlock()
	select {
	case <-wait:
	case <-sl.s.queue.Retired():
		return nil, admission.ErrRetired
	case <-ctx.Done():
		return nil, sl.gaveUp(ctx)
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.err != nil {
		return nil, sl.err
	}
	return sl.session, nil
}

// gaveUp returns the error of a request that could not wait any longer for the session.
func (sl *slot) gaveUp(ctx context.Context) error {
	cause := context.Cause(ctx)
	if timedOut(cause) || errors.Is(cause, context.DeadlineExceeded) {
		if f := sl.starting(); f != nil {
			return f
		}
	}
	return cause
}

// starting returns a failure that says so during the first attempt to connect, which may take a command long that
// has to be installed. It is nil otherwise.
func (sl *slot) starting() *link.Failure {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.connecting == nil || sl.tried {
		return nil
	}
	return &link.Failure{Server: sl.s.config.Name, Reason: link.ReasonUnavailable, Message: fmt.Sprintf("still starting (%s of at most %s)",
		seconds(time.Since(sl.began).Round(time.Second)), seconds(sl.s.config.ConnectLimit()))}
}

// reach is get for what no client asks of this server in particular, such as lists: while a server that cannot
// be reached is left alone, it is not connected to for them.
func (sl *slot) reach(ctx context.Context) (*link.Session, error) {
	return sl.getUnless(ctx, sl.s.health.Refuses)
}

// getUnless is get where there is no reason not to connect.
func (sl *slot) getUnless(ctx context.Context, refuses func() error) (*link.Session, error) {
	if session := sl.alive(); session != nil {
		return session, nil
	}
	if err := refuses(); err != nil {
		return nil, err
	}
	return sl.get(ctx)
}

func (sl *slot) unused() error {
	reason := link.ReasonUnavailable
	if sl.s.ctx.Err() == nil && !sl.s.config.Disabled {
		reason = link.ReasonDisconnected // its client has left: that says nothing about the server
	}
	return &link.Failure{Server: sl.s.config.Name, Reason: reason, Message: "it is not in use"}
}

func (sl *slot) connect(old *link.Session) {
	switch {
	case old == nil:
	case sl.s.config.URL != "":
		sl.s.wg.Go(func() {
			defer sl.s.rescue("closing a session", nil)
			limit := stopTime
			if old.Drain(sl.s.ctx); sl.s.ctx.Err() != nil {
				limit = 0 // it was lost anyway
			}
			old.CloseWithin(limit)
		})
	default:
		old.Close() // a process must be gone before its successor starts
	}
	// It ends with the slot: then nobody waits for it any more. The limits of those who wait do not end it: a command
	// that is killed while it is being installed begins anew.
	ctx, cancel := context.WithTimeoutCause(sl.ctx, sl.s.config.ConnectLimit(), errors.New("the handshake took too long"))
	defer cancel()
	session, err := sl.s.open(ctx, sl)
	if err == nil {
		sl.begin(ctx, session)
		sl.restore(ctx, session)
	}
	if err == nil || sl.ctx.Err() == nil {
		sl.s.connected(sl.client, session, err) // before those who wait look
	}

	sl.mu.Lock()
	sl.session, sl.err, sl.tried = session, err, true
	if err == nil {
		sl.forget() // another process may have other things to list
	}
	close(sl.connecting)
	sl.connecting = nil
	closed := sl.closed
	sl.mu.Unlock()
	if session == nil {
		return
	}
	if closed {
		session.Close()
		return
	}
	sl.begin(ctx, session) // if the client has said so since: a session that was not there yet could not be told
}

// begin sends notifications/initialized in a client's session if the client has sent it, before anything else.
func (sl *slot) begin(ctx context.Context, session *link.Session) {
	if sl.client == "" {
		return
	}
	if _, initialized := sl.s.clients.introduced(sl.client); !initialized {
		return
	}
	if err := session.Notify(ctx, "notifications/initialized", nil); err != nil {
		sl.s.logger.Debug("cannot send notifications/initialized", "server", sl.s.config.Name, "error", err)
	}
}

// abandon ends an attempt to connect after a panic in it.
func (sl *slot) abandon(f *link.Failure) {
	sl.s.connected(sl.client, nil, f)
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.connecting != nil {
		sl.session, sl.err, sl.tried = nil, f, true
		close(sl.connecting)
		sl.connecting = nil
	}
}

// forget drops the lists that are complete; one that is under way waits for the session that is new now.
// sl.mu is held.
func (sl *slot) forget() {
	for method, l := range sl.lists {
		select {
		case <-l.done:
			sl.drop(method)
		default:
		}
	}
}

// keep sees to it from now on that a lost session is replaced at once, not when it is next needed: the client
// waits for what only the server can tell. The router's own session is kept anyway.
func (sl *slot) keep() {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.client == "" || sl.kept || sl.closed || sl.s.ctx.Err() != nil {
		return
	}
	sl.kept = true
	if sl.s.config.Disabled {
		return // until a new configuration changes that
	}
	sl.s.wg.Go(func() {
		defer sl.s.rescue("keeping a session", nil)
		sl.supervise(sl.ctx, func(ctx context.Context, session *link.Session) {
			select {
			case <-session.Done():
			case <-ctx.Done():
			}
		}, func(ctx context.Context, d time.Duration) bool { return sleep(ctx, d, sl.s.ctx.Done()) })
	})
}

// alive returns the session if there is one, without connecting.
func (sl *slot) alive() *link.Session {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.session == nil || sl.session.Err() != nil {
		return nil
	}
	return sl.session
}

// tell sends a notification in the session that there is, without connecting.
func (sl *slot) tell(ctx context.Context, method string, params []byte) error {
	session := sl.alive()
	if session == nil {
		return sl.unused()
	}
	return session.Notify(ctx, method, params)
}

// close ends the session within limit; there will be no other.
func (sl *slot) close(limit time.Duration) {
	sl.mu.Lock()
	sl.closed = true
	sl.cancel()
	session := sl.session
	sl.mu.Unlock()
	if session != nil {
		session.CloseWithin(limit)
	}
}

// changed forgets the lists of one kind, tools, prompts or resources, those that are being read as well.
func (sl *slot) changed(notification string) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	for method := range sl.lists {
		if changes[method] == notification {
			sl.drop(method)
		}
	}
}

// drop forgets a list. sl.mu is held.
func (sl *slot) drop(method string) {
	delete(sl.lists, method)
	if method == "tools/list" {
		sl.current.Store(nil)
	}
}

// changes are the notifications that make lists void.
var changes = map[string]string{
	"tools/list":               "notifications/tools/list_changed",
	"prompts/list":             "notifications/prompts/list_changed",
	"resources/list":           "notifications/resources/list_changed",
	"resources/templates/list": "notifications/resources/list_changed",
}

// Member returns where the items of a list's result stand; empty for a method that is no list.
func Member(method string) string { return members[method] }

var members = map[string]string{
	"tools/list":               "tools",
	"prompts/list":             "prompts",
	"resources/list":           "resources",
	"resources/templates/list": "resourceTemplates",
}

// announces returns which watch on changes of a list is on, 0 if the server does not announce them.
func announces(s *link.Session, method string) int64 {
	kind := members[method]
	if kind == "resourceTemplates" {
		kind = "resources"
	}
	if string(jsonrpc.Get(s.Initialized, "capabilities", kind, "listChanged")) != "true" {
		return 0
	}
	return s.Watching()
}
