package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// hello is how a client of a proxy surface introduced itself; its sessions with servers repeat it.
type hello struct {
	params      []byte
	initialized bool // the client has sent notifications/initialized
}

// Enter notes a client of a proxy surface, with the raw params of its initialize. Its sessions with
// servers open when they are first used.
func (m *Manager) Enter(client string, params []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hellos[client] = &hello{params: params}
}

// Leave closes the client's sessions with servers and ends its subscriptions.
func (m *Manager) Leave(client string) {
	m.mu.Lock()
	delete(m.hellos, client)
	m.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { m.forget(client) })
	for _, s := range m.everyServer() {
		wg.Go(func() { s.leave(client) })
	}
	wg.Wait()
}

// knows reports whether the client has entered and not left.
func (m *Manager) knows(client string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hellos[client] != nil
}

// helloOf returns the params of initialize for a session, and whether it may begin at once.
func (m *Manager) helloOf(client string) (params []byte, initialized bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.hellos[client]; client != "" && h != nil {
		return h.params, h.initialized
	}
	own, _ := json.Marshal(map[string]any{
		"protocolVersion": ProtocolVersion,
		// What a server asks is passed on to the client whose call caused it, which may be able to answer.
		"capabilities": map[string]any{"elicitation": map[string]any{}, "roots": map[string]any{}, "sampling": map[string]any{}},
		"clientInfo":   map[string]string{"name": "agenticnexus-router", "version": m.opts.Version},
	})
	return own, true
}

// Initialized returns a server's raw answer to initialize in the client's session, connecting if need be.
func (m *Manager) Initialized(ctx context.Context, name, client string) (answer []byte, err error) {
	err = m.use(name, func(s *server) error {
		session, err := s.slot(client).reach(ctx)
		if err == nil {
			answer = session.Initialized
		}
		return err
	})
	return answer, err
}

// Notify passes a client's notification on to a server. On a session that clients share,
// notifications/initialized was sent long ago.
func (m *Manager) Notify(ctx context.Context, name, client, method string, params []byte) error {
	return m.use(name, func(s *server) error {
		if method == "notifications/initialized" && !m.initialized(s, client) {
			return nil
		}
		sl := s.slot(client)
		for again := false; ; again = true {
			session, err := sl.reach(ctx)
			if err != nil {
				return err
			}
			err = session.Notify(ctx, method, params)
			if again || !isLost(err) || mayHaveArrived(err) {
				return err
			}
		}
	})
}

// initialized notes that a client has sent notifications/initialized, and reports whether the server is to hear
// of it.
func (m *Manager) initialized(s *server, client string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.hellos[client]; h != nil {
		h.initialized = true
	}
	return client != "" && s.perClient()
}

// List returns the raw items of a list in the client's session, all pages; nil where the server does not
// know the method. Of tools it leaves out what the server's filter hides. Equal lists are the same slice.
func (m *Manager) List(ctx context.Context, name, client, method string) ([]json.RawMessage, error) {
	var items []json.RawMessage
	err := m.use(name, func(s *server) error {
		l, err := s.slot(client).list(ctx, method, false)
		if err == nil {
			items = l.items
		}
		return err
	})
	if errors.As(err, new(*UnknownError)) {
		return nil, nil
	}
	return items, err
}

// LeftOut says in the log that a client was answered without a server that should have had a part in it.
func (m *Manager) LeftOut(server, method string, err error) {
	if s := m.server(server); s != nil {
		s.leftOut(method, err)
	}
}

// Shared reports whether clients share one session with the server.
func (m *Manager) Shared(server string) bool {
	s := m.server(server)
	return s != nil && !s.perClient()
}

// Filters reports whether some of the server's tools may be hidden by its configuration.
func (m *Manager) Filters(server string) bool {
	s := m.server(server)
	return s != nil && len(s.config.Tools.Allow)+len(s.config.Tools.Deny) > 0
}

// Message is a notification of a server that belongs to no call.
type Message struct {
	Server  string
	Client  string // whose session it came on; empty for the router's own, which is also the shared one
	Message jsonrpc.Message
}
