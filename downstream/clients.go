package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Enter notes a client of a proxy surface, with the raw params of its initialize. Its sessions with
// servers open when they are first used.
func (m *Manager) Enter(client string, params []byte) { m.clients.enter(client, params) }

// Leave closes the client's sessions with servers and ends its subscriptions.
func (m *Manager) Leave(client string) {
	slots, subscribed := m.clients.leave(client)
	var wg sync.WaitGroup
	for _, sl := range slots {
		wg.Go(func() {
			defer sl.s.rescue("closing a client's session", nil)
			sl.close(stopTime)
			sl.s.release(sl)
		})
	}
	m.endSubscriptions(client, subscribed)
	wg.Wait()
	m.clients.forget(client)
}

// introduction returns the params of initialize for a client's session, and whether it may begin at once.
func (m *Manager) introduction(client string) (params []byte, initialized bool) {
	if client != "" {
		if params, initialized = m.clients.introduced(client); params != nil {
			return params, initialized
		}
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

// Introduce begins to open the client's session with a server, and returns the server's raw answer to
// initialize in it or, if that does not come before ctx ends, the one in the router's own session. It fails if
// there is neither.
func (m *Manager) Introduce(ctx context.Context, name, client string) (answer []byte, err error) {
	answer, err = m.Initialized(ctx, name, client)
	if err == nil {
		return answer, nil
	}
	if s := m.server(name); s != nil {
		if own := s.own.alive(); own != nil {
			return own.Initialized, nil
		}
	}
	return nil, err
}

// Notify passes a client's notification on to a server. On a session that clients share,
// notifications/initialized was sent long ago.
func (m *Manager) Notify(ctx context.Context, name, client, method string, params []byte) error {
	return m.use(name, func(s *server) error {
		if method == "notifications/initialized" {
			if m.clients.initialized(client); client == "" || !s.perClient() {
				return nil
			}
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

// Held returns a list of List if it is there and still valid; ok is false where the server has to be asked.
func (m *Manager) Held(name, client, method string) (items []json.RawMessage, ok bool) {
	s := m.server(name)
	if s == nil || s.config.Disabled {
		return nil, false
	}
	sl := s.own
	if client != "" && s.perClient() {
		if sl = m.clients.existing(client, s); sl == nil {
			return nil, false
		}
	}
	return sl.held(method)
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

// OwnSession reports whether a client has, or gets, a session of its own with the server.
func (m *Manager) OwnSession(server, client string) bool {
	s := m.server(server)
	if s == nil || !s.perClient() {
		return false
	}
	params, _ := m.clients.introduced(client)
	return params != nil
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
	Caller  string // the only caller that it concerns; empty for all
	Message jsonrpc.Message
}
