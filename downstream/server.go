package downstream

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/downstream/link"
)

// server is one configured server with its slots: one for the router itself, which clients may share, and one for
// each client that has its own session.
type server struct {
	*endpoint
	own  *slot
	open func(ctx context.Context, sl *slot) (*link.Session, error)

	mu    sync.Mutex
	slots map[*slot]struct{} // of clients
}

func newServer(e *endpoint, open func(ctx context.Context, sl *slot) (*link.Session, error)) *server {
	return &server{endpoint: e, own: newSlot(e, "", open), open: open, slots: map[*slot]struct{}{}}
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

// add creates the slot of a client, which closes with the server. It is nil if the server has stopped.
func (s *server) add(client string) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil
	}
	sl := newSlot(s.endpoint, client, s.open)
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
