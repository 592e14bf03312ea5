package downstream

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

const (
	maxStanding = 10_000 // subscriptions of one session
	restoring   = 16     // requests at once when they are renewed
)

// standing is what was asked of a session once for all time: a level of logging, and word of resources that
// change. A session that takes the place of a lost one, or of one with a server that was replaced, is asked for
// the same. The zero value is empty.
type standing struct {
	mu            sync.Mutex
	level         []byte            // raw params of the last logging/setLevel; nil = none
	subscriptions map[string][]byte // raw params of resources/subscribe, by URI
}

// note keeps a request before it is sent: whichever session answers it, the next one will know. undo takes
// it back. It fails if there are too many.
func (st *standing) note(r *Request) (undo func(), err error) {
	uri := jsonrpc.Text(jsonrpc.Get(r.Params, "uri"))
	undo = func() {}
	st.mu.Lock()
	defer st.mu.Unlock()
	switch r.Method {
	case "logging/setLevel":
		before, now := st.level, r.Params
		st.level = now
		undo = func() {
			st.mu.Lock()
			defer st.mu.Unlock()
			if len(now) > 0 && len(st.level) > 0 && &st.level[0] == &now[0] { // nobody has set another one since
				st.level = before
			}
		}
	case "resources/subscribe":
		if st.subscriptions[uri] != nil {
			break
		}
		if len(st.subscriptions) == maxStanding {
			return undo, &link.Failure{Server: r.Server, Reason: link.ReasonOverloaded, Message: "there are too many subscriptions"}
		}
		if st.subscriptions == nil {
			st.subscriptions = map[string][]byte{}
		}
		st.subscriptions[uri] = r.Params
		undo = func() { st.forget(uri) }
	case "resources/unsubscribe":
		delete(st.subscriptions, uri)
	}
	return undo, nil
}

func (st *standing) forget(uri string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	delete(st.subscriptions, uri)
}

// calls are the requests that ask for all of it.
func (st *standing) calls() (calls []*link.Call) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.level != nil {
		calls = append(calls, &link.Call{Method: "logging/setLevel", Params: st.level})
	}
	for _, uri := range slices.Sorted(maps.Keys(st.subscriptions)) {
		calls = append(calls, &link.Call{Method: "resources/subscribe", Params: st.subscriptions[uri]})
	}
	return calls
}

// remember keeps what is asked of a session once for all time.
func (m *Manager) remember(next caller) caller {
	return func(ctx context.Context, r *Request) (link.Reply, error) {
		switch r.Method {
		case "logging/setLevel", "resources/subscribe":
			if !r.Proxied {
				return next(ctx, r) // whoever asks has no session to hear it on
			}
		case "resources/unsubscribe":
		default:
			return next(ctx, r)
		}
		sl := r.server.slot(r.session())
		undo, err := sl.standing.note(r)
		if err != nil {
			return link.Reply{}, err
		}
		reply, err := next(ctx, r)
		if err != nil || reply.Err != nil {
			undo()
		} else {
			sl.keep()
		}
		return reply, err
	}
}

// restore asks a new session for what was asked of the one before it.
func (sl *slot) restore(ctx context.Context, session *link.Session) {
	ctx, cancel := context.WithTimeout(ctx, sl.s.deadline)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(restoring)
	for _, call := range sl.standing.calls() {
		g.Go(func() error {
			reply, err := session.Call(ctx, call)
			if err == nil && reply.Err == nil {
				return nil
			}
			sl.s.logger.Warn("cannot renew what a session was asked for", "server", sl.s.config.Name, "method", call.Method, "error", err,
				"answer", jsonrpc.Text(jsonrpc.Get(reply.Err, "message")))
			return nil // the others may fare better
		})
	}
	_ = g.Wait() // it has no error
}
