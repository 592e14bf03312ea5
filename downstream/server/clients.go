package server

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

const (
	maxSubscriptions = 10_000  // of one client, and resources per server on its shared session
	maxClientBytes   = 1 << 20 // of one client's subscriptions and log levels
	maxParents       = 64      // resources considered to contain an updated one, nearest first
)

// Resource is a resource of a server. Server is the server's Key.
type Resource struct{ Server, URI string }

// Name returns the name of the resource's server.
func (of Resource) Name() string {
	name, _, _ := strings.Cut(of.Server, "\x00")
	return name
}

// Caller returns the caller whose login the resource is read with; empty = the router's.
func (of Resource) Caller() string {
	_, caller, _ := strings.Cut(of.Server, "\x00")
	return caller
}

// Hold charges n bytes to a caller until release, which must be called once. ok is false if the caller holds too
// much. A nil Hold charges nothing.
type Hold func(n int) (release func(), ok bool)

// Clients holds what applies to whole client sessions: their initialize, log levels and subscriptions. It refers to
// servers by name, so that levels and subscriptions survive sessions with servers and configurations. It is safe for
// concurrent use.
type Clients struct {
	mu          sync.Mutex
	levels      int64 // number of log levels set so far
	byID        map[string]*client
	subscribers map[Resource]*subscribers
	resources   map[string]int // number of subscribers by server
}

// client is one client session. Clients.mu guards it.
type client struct {
	id            string
	initialize    []byte // params; nil = not sent
	initialized   bool   // it has sent notifications/initialized
	levels        map[string]logLevel
	subscriptions map[Resource]subscription
	bytes         int  // size of levels and subscriptions
	left          bool // no more sessions are opened for it
}

// logLevel is the log level that a client requested from a server.
type logLevel struct {
	params []byte // of logging/setLevel
	number int64  // on a shared session the level with the highest number is in force
}

type subscription struct {
	caller  string // of the client
	params  []byte // of resources/subscribe
	release func() // ends the charge to the caller
}

// subscribers are the clients subscribed to one resource. On a shared session, calls about the resource are
// serialized, so that the last call at the server matches the subscriptions.
type subscribers struct {
	lock    chan struct{} // capacity 1
	calls   int           // that hold or await the lock
	clients map[*client]struct{}
}

// NewClients returns the state of no clients.
func NewClients() *Clients {
	return &Clients{byID: map[string]*client{}, subscribers: map[Resource]*subscribers{}, resources: map[string]int{}}
}

// shares reports whether the client uses the router's own session with a server. perClient tells whether the server
// has a session per client; only clients that have sent initialize have one.
func (c *client) shares(perClient bool) bool { return !perClient || c.initialize == nil }

// client returns the state of a client, adding it if there is none. The caller holds cs.mu.
func (cs *Clients) client(id string) *client {
	c := cs.byID[id]
	if c == nil {
		c = &client{id: id, levels: map[string]logLevel{}, subscriptions: map[Resource]subscription{}}
		cs.byID[id] = c
	}
	return c
}

// tidy removes a client that is not known by initialize and has nothing. The caller holds cs.mu.
func (cs *Clients) tidy(c *client) {
	if c.initialize == nil && !c.left && len(c.levels)+len(c.subscriptions) == 0 {
		delete(cs.byID, c.id)
	}
}

// Enter stores the raw params of a client's initialize, whose size the edge limits.
func (cs *Clients) Enter(id string, params []byte) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.client(id)
	c.initialize, c.left = bytes.Clone(params), false
}

// SetInitialized records that a client has sent notifications/initialized.
func (cs *Clients) SetInitialized(id string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.byID[id]; c != nil {
		c.initialized = true
	}
}

// Initialize returns the params of a client's initialize, nil if it has not entered or has left, and whether the
// client has sent notifications/initialized.
func (cs *Clients) Initialize(id string) (params []byte, initialized bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.byID[id]; c != nil && !c.left {
		return c.initialize, c.initialized
	}
	return nil, false
}

// Leave returns the resources that a client is subscribed to, with its caller. The client gets no more sessions.
// entered tells whether it had sessions of its own. Forget must follow.
func (cs *Clients) Leave(id string) (subscribed map[Resource]string, entered bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.byID[id]
	if c == nil {
		return nil, false
	}
	c.left = true
	subscribed = make(map[Resource]string, len(c.subscriptions))
	for of, s := range c.subscriptions {
		subscribed[of] = s.caller
	}
	return subscribed, c.initialize != nil
}

// Forget removes a client that has left.
func (cs *Clients) Forget(id string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.byID[id]; c != nil {
		for of := range c.subscriptions {
			cs.remove(c, of)
		}
		delete(cs.byID, id)
	}
}

// SetLevel records a level before it is sent. undo reverts it unless another level has been set since.
func (cs *Clients) SetLevel(server, id string, params []byte) (undo func(), err error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.client(id)
	before, was := c.levels[server]
	grows := len(params) - len(before.params)
	if c.bytes+grows > maxClientBytes {
		cs.tidy(c)
		return nil, tooManyBytes(Resource{Server: server})
	}
	cs.levels++
	number := cs.levels
	c.levels[server] = logLevel{bytes.Clone(params), number}
	c.bytes += grows
	return func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		if c.levels[server].number != number {
			return
		}
		c.bytes -= grows
		if was {
			c.levels[server] = before
		} else {
			delete(c.levels, server)
		}
		cs.tidy(c)
	}, nil
}

// Subscribe records a subscription before it is sent, because the first update may directly follow the response. hold
// charges it to the caller until it ends. undo reverts it.
func (cs *Clients) Subscribe(of Resource, id, caller string, params []byte, hold Hold) (undo func(), err error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.client(id)
	defer cs.tidy(c)
	if _, ok := c.subscriptions[of]; ok {
		return func() {}, nil
	}
	size := len(of.URI) + len(params)
	switch {
	case len(c.subscriptions) >= maxSubscriptions:
		return nil, tooMany(of)
	case c.bytes+size > maxClientBytes:
		return nil, tooManyBytes(of)
	}
	release := func() {}
	if hold != nil {
		var ok bool
		if release, ok = hold(size); !ok {
			return nil, &link.Failure{Server: of.Name(), Reason: reason.Overloaded,
				Message: "the caller holds too many bytes; unsubscribe from some resources, or read the pending responses"}
		}
	}
	c.subscriptions[of] = subscription{caller, bytes.Clone(params), release}
	c.bytes += size
	cs.subscribersOf(of).clients[c] = struct{}{}
	return func() { cs.Unsubscribe(of, id, false) }, nil
}

func tooMany(of Resource) error {
	return &link.Failure{Server: of.Name(), Reason: reason.Overloaded, Message: fmt.Sprintf(
		"there are %d subscriptions already; unsubscribe from some resources first", maxSubscriptions)}
}

func tooManyBytes(of Resource) error {
	return &link.Failure{Server: of.Name(), Reason: reason.Overloaded, Message: fmt.Sprintf(
		"the client's subscriptions exceed %d bytes; unsubscribe from some resources first", maxClientBytes)}
}

// Unsubscribe ends a subscription and returns how many others there are to the resource on the router's own session.
func (cs *Clients) Unsubscribe(of Resource, id string, perClient bool) (others int) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.byID[id]; c != nil {
		cs.remove(c, of)
		cs.tidy(c)
	}
	if s := cs.subscribers[of]; s != nil {
		for c := range s.clients {
			if c.shares(perClient) {
				others++
			}
		}
	}
	return others
}

// remove ends a subscription. The caller holds cs.mu.
func (cs *Clients) remove(c *client, of Resource) {
	ended, ok := c.subscriptions[of]
	if !ok {
		return
	}
	delete(c.subscriptions, of)
	c.bytes -= len(of.URI) + len(ended.params)
	ended.release()
	s := cs.subscribers[of]
	delete(s.clients, c)
	cs.free(of, s)
}

// subscribersOf returns the subscribers of a resource, adding them if there are none. The caller holds cs.mu.
func (cs *Clients) subscribersOf(of Resource) *subscribers {
	s := cs.subscribers[of]
	if s == nil {
		s = &subscribers{lock: make(chan struct{}, 1), clients: map[*client]struct{}{}}
		cs.subscribers[of] = s
		cs.resources[of.Server]++
	}
	return s
}

// free removes a resource without subscribers and calls. The caller holds cs.mu.
func (cs *Clients) free(of Resource, s *subscribers) {
	if s.calls == 0 && len(s.clients) == 0 {
		delete(cs.subscribers, of)
		if cs.resources[of.Server]--; cs.resources[of.Server] == 0 {
			delete(cs.resources, of.Server)
		}
	}
}

// Lock serializes calls about a resource on a shared session, and limits the number of resources.
func (cs *Clients) Lock(ctx context.Context, of Resource) (unlock func(), err error) {
	cs.mu.Lock()
	if cs.subscribers[of] == nil && cs.resources[of.Server] >= maxSubscriptions {
		cs.mu.Unlock()
		return nil, tooMany(of)
	}
	s := cs.subscribersOf(of)
	s.calls++
	cs.mu.Unlock()
	leave := func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		s.calls--
		cs.free(of, s)
	}
	select {
	case s.lock <- struct{}{}:
		return func() { <-s.lock; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// Interested returns the clients with a log level or a subscription at a server.
func (cs *Clients) Interested(server string) (ids []string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for id, c := range cs.byID {
		_, interested := c.levels[server]
		for of := range c.subscriptions {
			interested = interested || of.Server == server
		}
		if interested {
			ids = append(ids, id)
		}
	}
	return ids
}

// replay returns the requests that restore a session: the log level and the subscriptions of its client or, on the
// router's own session, of the clients that share it.
func (cs *Clients) replay(server, id string, perClient bool) (calls []*link.Call) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var newest logLevel
	subscribed := map[string]bool{}
	add := func(c *client) {
		if l := c.levels[server]; l.number > newest.number {
			newest = l
		}
		for of, s := range c.subscriptions {
			if of.Server == server && !subscribed[of.URI] {
				subscribed[of.URI] = true
				calls = append(calls, &link.Call{Method: "resources/subscribe", Params: s.params, Caller: s.caller})
			}
		}
	}
	for _, c := range cs.byID {
		if c.id == id || id == "" && c.shares(perClient) {
			add(c)
		}
	}
	if newest.params != nil {
		calls = append(calls, &link.Call{Method: "logging/setLevel", Params: newest.params})
	}
	return calls
}

// Subscribers returns the clients subscribed to a resource, or to one that contains it, on the router's own session.
func (cs *Clients) Subscribers(of Resource, perClient bool) []string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	found := map[string]struct{}{}
	add := func(uri string) {
		if s := cs.subscribers[Resource{of.Server, uri}]; s != nil {
			for c := range s.clients {
				if c.shares(perClient) {
					found[c.id] = struct{}{}
				}
			}
		}
	}
	add(of.URI)
	end := len(of.URI)
	for range maxParents {
		if end = strings.LastIndexAny(of.URI[:end], "/?#"); end < 0 {
			break
		}
		add(of.URI[:end+1])
		add(of.URI[:end])
	}
	return slices.Collect(maps.Keys(found))
}
