package downstream

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

const connectTimeout = 15 * time.Second // for the handshake; a package runner may have to start first

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
	connecting chan struct{}
	err        error
	closed     bool
	lists      map[string]*listing // by method: of this session, or under way
	last       map[string]*listing // by method: the last complete ones, whichever session they came from
	nothing    listing             // what a disabled server lists

	opened  atomic.Int64 // sessions so far
	speech  sync.Mutex
	speaker int64 // the last session that has said something to nobody's call
}

func newSlot(s *server, client string) *slot {
	sl := &slot{s: s, client: client, lists: map[string]*listing{}, last: map[string]*listing{}}
	sl.ctx, sl.cancel = context.WithCancel(s.ctx)
	return sl
}

// inTurn runs f for what the nth session says. Once a later one has spoken, a lost one's words, which may still be
// read from its connection, would be out of place and are dropped.
func (sl *slot) inTurn(nth int64, f func()) {
	sl.speech.Lock()
	defer sl.speech.Unlock()
	if nth >= sl.speaker {
		sl.speaker = nth
		f()
	}
}

// get returns the session, connecting if there is none that lives. The connection does not end with ctx:
// others may wait for it, too. Where another server has taken the place of this one it fails with errRetired.
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
	if sl.s.gate.isRetired() {
		sl.mu.Unlock()
		return nil, errRetired
	}
	if sl.connecting == nil {
		sl.connecting = make(chan struct{})
		if sl.client == "" {
			sl.s.connecting()
		}
		old := sl.session
		sl.s.wg.Go(func() { sl.connect(old) })
	}
	wait := sl.connecting
	sl.mu.Unlock()
	select {
	case <-wait:
	case <-sl.s.gate.retired:
		return nil, errRetired
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.err != nil {
		return nil, sl.err
	}
	return sl.session, nil
}

// reach is get for what no client asks of this server in particular, such as lists: while a server that cannot
// be reached is left alone, it is not connected to for them.
func (sl *slot) reach(ctx context.Context) (*link.Session, error) {
	if session := sl.alive(); session != nil {
		return session, nil
	}
	if err := sl.s.refuses(); err != nil {
		return nil, err
	}
	return sl.get(ctx)
}

func (sl *slot) unused() error {
	return &link.Failure{Server: sl.s.config.Name, Reason: link.ReasonUnavailable, Message: "it is not in use"}
}

func (sl *slot) connect(old *link.Session) {
	switch {
	case old == nil:
	case sl.s.config.URL != "":
		sl.s.wg.Go(func() {
			limit := stopTime
			if old.Drain(sl.s.ctx); sl.s.ctx.Err() != nil {
				limit = 0 // it was lost anyway
			}
			old.CloseWithin(limit)
		})
	default:
		old.Close() // a process must be gone before its successor starts
	}
	// It ends with the slot: then nobody waits for it any more.
	ctx, cancel := context.WithTimeoutCause(sl.ctx, connectTimeout, errors.New("the handshake took too long"))
	defer cancel()
	session, err := sl.s.open(ctx, sl)
	if err == nil {
		sl.restore(ctx, session)
	}
	if err == nil || sl.ctx.Err() == nil {
		sl.s.connected(sl.client, session, err) // before those who wait look
	}

	sl.mu.Lock()
	sl.session, sl.err = session, err
	if err == nil {
		sl.forget() // another process may have other things to list
	}
	close(sl.connecting)
	sl.connecting = nil
	closed := sl.closed
	sl.mu.Unlock()
	if closed && session != nil {
		session.Close()
	}
}

// forget drops the lists that are complete; one that is under way waits for the session that is new now.
// sl.mu is held.
func (sl *slot) forget() {
	for method, l := range sl.lists {
		select {
		case <-l.done:
			delete(sl.lists, method)
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
		sl.supervise(sl.ctx, func(ctx context.Context, session *link.Session) {
			select {
			case <-session.Done():
			case <-ctx.Done():
			}
		}, func(ctx context.Context, d time.Duration, _ error) bool { return sleep(ctx, d, sl.s.ctx.Done()) })
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
			delete(sl.lists, method)
		}
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
