package proxy

import (
	"context"
	"strings"
	"sync"
)

const maxWatches = 10_000 // resources of shared sessions that one client watches

// watched is a resource of a server.
type watched struct{ server, uri string }

// watches are the resources that clients subscribed to on sessions that they share. The server knows one
// subscriber; who is behind it stands here.
type watches struct {
	mu        sync.Mutex
	byThing   map[watched]*watch
	bySession map[string]map[watched]bool
}

// watch is who watches one resource. Whoever talks to the server about it holds the turn, so that what the
// server hears last agrees with sessions.
type watch struct {
	turn     chan struct{} // has room for one
	users    int           // who have the turn or wait for it
	sessions map[string]bool
}

func newWatches() watches {
	return watches{byThing: map[watched]*watch{}, bySession: map[string]map[watched]bool{}}
}

// begin waits for the turn to talk about a resource; end gives it back.
func (w *watches) begin(ctx context.Context, thing watched) (end func(), err error) {
	w.mu.Lock()
	b := w.byThing[thing]
	if b == nil {
		b = &watch{turn: make(chan struct{}, 1), sessions: map[string]bool{}}
		w.byThing[thing] = b
	}
	b.users++
	w.mu.Unlock()
	leave := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		b.users--
		w.tidy(thing, b)
	}
	select {
	case b.turn <- struct{}{}:
		return func() { <-b.turn; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// add notes that a session watches a resource. The caller has the turn.
func (w *watches) add(session string, thing watched) (added, full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.bySession[session]
	switch {
	case of[thing]:
		return false, false
	case len(of) == maxWatches:
		return false, true
	case of == nil:
		of = map[watched]bool{}
		w.bySession[session] = of
	}
	of[thing] = true
	w.byThing[thing].sessions[session] = true
	return true, false
}

// tidy forgets a resource that nobody watches or talks about. w.mu is held.
func (w *watches) tidy(thing watched, b *watch) {
	if b.users == 0 && len(b.sessions) == 0 {
		delete(w.byThing, thing)
	}
}

// remove notes that a session watches a resource no more. The caller has the turn, or the session does
// watch it.
func (w *watches) remove(session string, thing watched) (others int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.byThing[thing]
	delete(b.sessions, session)
	if of := w.bySession[session]; of[thing] {
		if delete(of, thing); len(of) == 0 {
			delete(w.bySession, session)
		}
	}
	w.tidy(thing, b)
	return len(b.sessions)
}

// things returns what a session watches.
func (w *watches) things(session string) []watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []watched
	for thing := range w.bySession[session] {
		out = append(out, thing)
	}
	return out
}

// sessions returns who watches a resource of a server, or what it is a part of: servers may tell of
// something below what was subscribed to.
func (w *watches) sessions(server, uri string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := func(uri string) (out []string) {
		if b := w.byThing[watched{server, uri}]; b != nil {
			for session := range b.sessions {
				out = append(out, session)
			}
		}
		return out
	}
	out := of(uri)
	for end := len(uri); len(out) == 0 && end > 0; {
		end = strings.LastIndexAny(uri[:end], "/?#")
		if end < 0 {
			break
		}
		if out = of(uri[:end+1]); len(out) == 0 {
			out = of(uri[:end])
		}
	}
	return out
}
