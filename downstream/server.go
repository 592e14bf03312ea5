package downstream

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/health"
)

// server is one configured server with its slots: one for the router itself, which clients may share, and one for
// each client that has its own session.
type server struct {
	*endpoint
	own  *slot
	dial dialFunc

	mu    sync.Mutex
	slots map[*slot]struct{} // of clients
}

func newServer(e *endpoint, dial dialFunc) *server {
	return &server{endpoint: e, own: newSlot(e, "", dial), dial: dial, slots: map[*slot]struct{}{}}
}

// slot returns the slot of a client. Clients that have not entered share the router's own.
func (s *server) slot(client string) *slot {
	if client == "" || !s.perClient() {
		return s.own
	}
	if sl := s.clients.slot(client, s.endpoint, s.add); sl != nil {
		return sl
	}
	return s.own
}

// newSlot returns the slot of a client, or the router's own if client is empty.
func newSlot(e *endpoint, client string, dial dialFunc) *slot {
	sl := &slot{s: e, client: client, dial: dial}
	sl.ctx, sl.cancel = context.WithCancel(e.ctx)
	sl.lists = newListCache(sl)
	return sl
}

// add creates the slot of a client, which closes with the server. It is nil if the server has stopped.
func (s *server) add(client string) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil
	}
	sl := newSlot(s.endpoint, client, s.dial)
	sl.gone = func() { s.remove(sl) }
	s.slots[sl] = struct{}{}
	return sl
}

// remove removes a closed slot.
func (s *server) remove(sl *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.slots, sl)
}

// sessions returns the number of clients with a slot.
func (s *server) sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.slots)
}

// stop closes every session, each within limit, and waits for connection attempts.
func (s *server) stop(limit time.Duration) {
	s.mu.Lock()
	s.cancel() // prevents new slots
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
	s.clients.drop(s.endpoint, slots)
	s.wg.Wait()
	if s.tokens != nil {
		s.tokens.Close()
	}
	s.health.on(health.Ended, nil)
}
