package edge

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
)

// homes tells where sessions are served.
type homes struct {
	directory  *cluster.Directory
	replicated bool          // the directory is that of replicas
	streams    *limit.Budget // of streams at other replicas
}

// place is a session that is served here: open, or to be revived from its record.
type place struct {
	session *session
	record  *sessionid.Record
}

const (
	homeTries = 4 // to pass on a request whose session moves meanwhile
	idleWait  = 5 * time.Second
)

// here finds out whether the session with an id is served here. If not, or if there is no such session, it answers the
// request: another replica serves it as it came. body is that of a POST.
func (t *streamable) here(w http.ResponseWriter, r *http.Request, src source, id string, body []byte) (place, bool) {
	owner := &t.edge.sessions
	for range homeTries {
		at, home, err := owner.locate(&t.endpoint, src, id)
		switch {
		case errors.Is(err, errNoSession), errors.Is(err, cluster.ErrEnded):
			t.reply.sessionNotFound(w, idOf(body))
			return place{}, false
		case err != nil:
			a := hop{replies: t.reply} // the lease may have ended since the request began
			if !owner.left() || !a.toAnother(w, r, src.caller, body) {
				a.homeUnavailable(w, idOf(body), "", err)
			}
			return place{}, false
		case !home.Here():
			if (hop{replies: t.reply}).forward(w, r, src.caller, home, body) {
				return place{}, false
			}
		case !owner.moves(src.ctx, at, r.Method, body):
			return at, true
		}
	}
	t.reply.homeUnavailable(w, idOf(body), "", cluster.ErrMoved)
	return place{}, false
}

// locate returns the session with an id, or its record, and where it is served.
func (r *registry) locate(ep *endpoint, src source, id string) (at place, home cluster.Place, err error) {
	at.session = r.get(ep, src, id)
	if s := at.session; s != nil && s.home != r.directory.Self() { // another replica may have adopted it
		s.end(errFenced)
		at.session = nil
	}
	var of cluster.Session
	if at.session != nil {
		of = at.session.named
	} else {
		record, ok := r.sealed(src, id)
		if !ok {
			return at, home, errNoSession
		}
		at.record, of = record, r.named(record)
	}
	home, err = r.directory.Find(src.ctx, of)
	return at, home, err
}

// named returns how the directory knows the session of a record.
func (h *homes) named(record *sessionid.Record) cluster.Session {
	if !h.replicated {
		return cluster.Session{}
	}
	return cluster.Session{Home: record.Home, Tag: strconv.FormatUint(record.Tag, 16), Ends: record.Ends()}
}

// remains reports whether a session that was revived is still served here.
func (h *homes) remains(ctx context.Context, s *session) bool {
	home, err := h.directory.Find(ctx, s.named)
	return err == nil && home.Here()
}

// left reports whether the lease of this replica has ended, or ends, after it has handed its sessions over: nothing is
// served here any more.
func (h *homes) left() bool { return h.directory.Draining() && h.directory.Acts() != nil }

// moves hands the session of a request over if this replica drains. It reports whether it did or tried; then the
// session is to be found again. A session in use stays until it is idle; requests wait a while for that.
func (h *homes) moves(ctx context.Context, at place, method string, body []byte) bool {
	if !h.directory.Draining() {
		return false
	}
	s := at.session
	switch {
	case s == nil:
	case method == http.MethodDelete, method == http.MethodPost && len(requestsIn(body)) == 0:
		return false
	case method == http.MethodPost:
		wait, cancel := context.WithTimeout(ctx, idleWait)
		defer cancel()
		s.awaitIdle(wait)
	}
	if s == nil {
		return !errors.Is(h.handOver(ctx, h.named(at.record), nil), cluster.ErrBusy)
	}
	return !errors.Is(h.handOver(ctx, s.named, s), cluster.ErrBusy)
}

// keeps reports whether a session is served also while the edge stops: one that other replicas take over when its calls
// have ended.
func (h *homes) keeps(s *session) bool { return s != nil && s.path != "" && h.directory.Draining() }

// drain hands the idle ones of these sessions over if this replica drains.
func (h *homes) drain(all []*session) {
	if !h.directory.Draining() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), idleWait)
	defer cancel()
	for _, s := range all {
		if s.path == "" || s.inUse() {
			continue
		}
		if err := h.handOver(ctx, s.named, s); errors.Is(err, cluster.ErrUnavailable) {
			return
		}
	}
}

// handOver makes another replica the home of a session; s is nil if it is not open. The error is ErrBusy if the session
// stays, because it is in use or there is no other replica. Otherwise it is to be found again.
func (h *homes) handOver(ctx context.Context, of cluster.Session, s *session) error {
	to, ok := h.directory.Elsewhere()
	if !ok {
		return cluster.ErrBusy
	}
	return h.directory.HandOver(ctx, of, to, func() ([]byte, bool) {
		if s == nil {
			return nil, true
		}
		ended := s.endIdle()
		return s.moving.encode(), ended // what a request has set before the end, too
	})
}

// prefix returns the beginning of a name that tells its home; empty if there are no replicas.
func (h *homes) prefix(home uint64) string {
	if !h.replicated {
		return ""
	}
	return strconv.FormatUint(home, 16) + "-"
}
