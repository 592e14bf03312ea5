package edge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Restorer is a Handler that keeps more of a session than its messages tell.
type Restorer interface {
	// Restore is called with the latest state that Save has got for a session, before other messages of the session,
	// if the session comes from another replica.
	Restore(session string, state []byte)
}

// Save stores the handler's state of the session of x for Restorer, at most some KiB of JSON. Without a session it does
// nothing.
func Save(x *Exchange, state []byte) {
	if x.session != nil {
		x.session.move(func(m *moving) { m.Handler = state })
	}
}

// moving is what a session takes along to another replica: the client's requests with lasting effect, which the handler
// serves again, and the handler's own state.
type moving struct {
	mu       sync.Mutex
	Requests map[string]lasting `json:"requests,omitempty"` // by what they set
	Handler  json.RawMessage    `json:"handler,omitempty"`
	size     int                // bytes of Requests and their keys
	over     bool               // there was no room for the last request
	warned   bool               // it is logged that something is lost
}

// lasting is a request with lasting effect.
type lasting struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// maxMoving bounds the bytes of the requests that a session takes along. The directory keeps 64 KiB, with the handler's
// state.
const maxMoving = 48 << 10

// note keeps a request of a session that has succeeded if it has lasting effect.
func note(s *session, m *jsonrpc.Message) {
	uri := func() string { return "resource " + jsonrpc.Text(jsonrpc.Get(m.Params, "uri")) }
	switch m.Method {
	case "logging/setLevel":
		s.move(func(to *moving) { to.keep("level", m) })
	case "resources/subscribe":
		s.move(func(to *moving) { to.keep(uri(), m) })
	case "resources/unsubscribe":
		s.move(func(to *moving) { to.drop(uri()) })
	}
}

// keep keeps a request if there is room for it.
func (m *moving) keep(key string, request *jsonrpc.Message) {
	m.drop(key)
	size := len(key) + len(request.Params)
	if m.over = m.size+size > maxMoving; m.over {
		return
	}
	if m.Requests == nil {
		m.Requests = map[string]lasting{}
	}
	m.Requests[key] = lasting{request.Method, bytes.Clone(request.Params)} // not the whole body
	m.size += size
}

func (m *moving) drop(key string) {
	if r, kept := m.Requests[key]; kept {
		m.size -= len(key) + len(r.Params)
		delete(m.Requests, key)
	}
}

// move changes what the session takes along and saves it in the directory. It logs once that something is lost.
func (s *session) move(change func(*moving)) {
	r := &s.endpoint.edge.sessions
	if s.path == "" || !r.replicated {
		return
	}
	m := &s.moving
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
	err := r.directory.Save(s.named, m.encodeLocked())
	if err == nil && m.over {
		err = fmt.Errorf("its subscriptions have more than %d bytes", maxMoving)
	}
	if err != nil && !m.warned {
		m.warned = true
		r.edge.log.Warn("A part of the state of a session is lost if it moves to another replica",
			"session", SessionLabel(s.id), "error", err)
	}
}

// encode returns what the session takes along; nil if that is nothing.
func (m *moving) encode() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Requests == nil && m.Handler == nil {
		return nil
	}
	return m.encodeLocked()
}

func (m *moving) encodeLocked() []byte {
	b, _ := json.Marshal(m) // the parts are valid JSON
	return b
}

// restore sets what a session has taken along.
func (m *moving) restore(state []byte) {
	if json.Unmarshal(state, m) != nil { // of another version
		m.Requests, m.Handler = nil, nil
	}
	for key, r := range m.Requests {
		m.size += len(key) + len(r.Params)
	}
}

const (
	restoreWidth = 16          // requests served again at once
	restoreWait  = time.Second // for them; then they go on beside the client's message
)

// restore lets the handler restore what a session has taken along.
func (ep *endpoint) restore(s *session, src source) {
	s.moving.mu.Lock()
	requests, state := slices.Collect(maps.Values(s.moving.Requests)), s.moving.Handler
	s.moving.mu.Unlock()
	if h, ok := ep.handler.(Restorer); ok && state != nil {
		h.Restore(s.id, state)
	}
	if len(requests) == 0 {
		return
	}
	done := make(chan struct{})
	ep.edge.life.spawn("restoring a session", func() {
		defer close(done)
		var group errgroup.Group
		group.SetLimit(restoreWidth)
		for _, q := range requests {
			group.Go(func() error {
				ep.serveAnswered(s, src, jsonrpc.Request(jsonrpc.StringID("nexus-restore"), q.Method, q.Params))
				return nil
			})
		}
		_ = group.Wait() // always nil
	})
	within(restoreWait, done)
}
