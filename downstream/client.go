package downstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

const (
	maxSubscriptions = 10_000   // of one client, and of one server on its shared session
	maxRecord        = 1 << 20  // bytes of one client's subscriptions and log levels
	maxIntroduction  = 64 << 10 // bytes of initialize params that are kept whole
)

// record is what a client has said that holds for its whole session. Its sessions with servers are opened
// and restored from it, so a process that has the record can serve the client.
type record struct {
	Initialize    json.RawMessage                       `json:"initialize,omitempty"` // params; nil = the client has sent no initialize
	Initialized   bool                                  `json:"initialized,omitempty"`
	Levels        map[string]logLevel                   `json:"levels,omitempty"`        // by server
	Subscriptions map[string]map[string]json.RawMessage `json:"subscriptions,omitempty"` // params of resources/subscribe, by server and URI
}

// logLevel is the level of log messages that a client asked of a server.
type logLevel struct {
	Params json.RawMessage `json:"params"` // of logging/setLevel
	Turn   int64           `json:"turn"`   // on a shared session the level with the highest turn is in force
}

// client is one client session: its record, and the sessions with servers that it has in this process.
// It is guarded by clients.mu.
type client struct {
	id            string
	record        record
	subscriptions int                 // in all
	bytes         int                 // of subscriptions and levels
	releases      map[resource]func() // of what subscriptions are charged
	slots         map[*server]*slot
	left          bool // it gets no sessions any more
}

// clients owns the state of all clients. Servers are known by name, so that subscriptions and levels outlive
// sessions and configurations.
type clients struct {
	mu       sync.Mutex
	turn     int64 // of the last level
	byID     map[string]*client
	interest map[string]*interest // by server
}

// interest is what clients have asked of one server.
type interest struct {
	clients map[*client]struct{} // those with a level or a subscription
	watches map[string]*watch    // by URI
}

// watch is who is subscribed to one resource. On a shared session, calls about the resource take turns, so
// that the last one the server hears agrees with clients.
type watch struct {
	turn    chan struct{} // has room for one
	users   int           // who have the turn or wait for it
	clients map[*client]struct{}
}

func newClients() *clients {
	return &clients{byID: map[string]*client{}, interest: map[string]*interest{}}
}

// client returns the state of a client, adding it if need be. cs.mu is held.
func (cs *clients) client(id string) *client {
	c := cs.byID[id]
	if c == nil {
		c = &client{id: id}
		cs.byID[id] = c
	}
	return c
}

// enter keeps the raw params of a client's initialize.
func (cs *clients) enter(id string, params []byte) {
	params = introduction(params)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.client(id)
	c.record.Initialize, c.left = params, false
}

// introduction returns a copy of initialize params to keep: of large ones only what the protocol defines,
// which the edge bounds.
func introduction(params []byte) []byte {
	if len(params) <= maxIntroduction {
		return bytes.Clone(params)
	}
	var kept []byte
	for _, name := range [...]string{"clientInfo", "capabilities", "protocolVersion"} {
		if value := jsonrpc.Get(params, name); value != nil {
			kept = jsonrpc.Set(kept, name, value)
		}
	}
	return kept
}

// initialized notes that a client has sent notifications/initialized.
func (cs *clients) initialized(id string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.byID[id]; c != nil {
		c.record.Initialized = true
	}
}

// introduced returns the params of a client's initialize, nil if it has not entered, and whether it has sent
// notifications/initialized.
func (cs *clients) introduced(id string) (params []byte, initialized bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.byID[id]; c != nil && !c.left {
		return c.record.Initialize, c.record.Initialized
	}
	return nil, false
}

// slot returns the place of a client's own session with a server. Clients that have not entered, or have left,
// share the router's own.
func (cs *clients) slot(id string, s *server) *slot {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.byID[id]
	if c == nil || c.record.Initialize == nil || c.left {
		return s.own
	}
	if sl := c.slots[s]; sl != nil {
		return sl
	}
	sl := newSlot(s, id)
	if !s.adopt(sl) {
		sl.cancel()
		return s.own // which is closed, too
	}
	if c.slots == nil {
		c.slots = map[*server]*slot{}
	}
	c.slots[s] = sl
	return sl
}

// existing returns the place of a client's own session with a server, nil if it has none yet.
func (cs *clients) existing(id string, s *server) *slot {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.byID[id]; c != nil {
		return c.slots[s]
	}
	return nil
}

// drop forgets the slots of a server that has stopped.
func (cs *clients) drop(s *server, slots []*slot) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, sl := range slots {
		if c := cs.byID[sl.client]; c != nil {
			delete(c.slots, s)
		}
	}
}

// leave takes away a client's sessions and returns them, with the resources that it is subscribed to. It gets
// no others.
func (cs *clients) leave(id string) (slots []*slot, subscribed []resource) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.byID[id]
	if c == nil {
		return nil, nil
	}
	c.left = true
	slots = slices.Collect(maps.Values(c.slots))
	c.slots = nil
	for server, of := range c.record.Subscriptions {
		for uri := range of {
			subscribed = append(subscribed, resource{server, uri})
		}
	}
	return slots, subscribed
}

// forget drops a client that has left.
func (cs *clients) forget(id string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.byID[id]
	if c == nil {
		return
	}
	for server, of := range c.record.Subscriptions {
		for uri := range of {
			cs.remove(c, resource{server, uri})
		}
	}
	for server := range c.record.Levels {
		delete(c.record.Levels, server)
		cs.settle(c, server)
	}
	delete(cs.byID, id)
}

// about returns what clients have asked of a server, making a place for it. cs.mu is held.
func (cs *clients) about(server string) *interest {
	in := cs.interest[server]
	if in == nil {
		in = &interest{clients: map[*client]struct{}{}, watches: map[string]*watch{}}
		cs.interest[server] = in
	}
	return in
}

// watch returns who is subscribed to a resource, making a place for them. cs.mu is held.
func (cs *clients) watch(of resource) *watch {
	in := cs.about(of.server)
	w := in.watches[of.uri]
	if w == nil {
		w = &watch{turn: make(chan struct{}, 1), clients: map[*client]struct{}{}}
		in.watches[of.uri] = w
	}
	return w
}

// settle updates what is known of a client's interest in a server, and forgets what nobody is interested in.
// cs.mu is held.
func (cs *clients) settle(c *client, server string) {
	in := cs.about(server)
	if _, level := c.record.Levels[server]; level || len(c.record.Subscriptions[server]) > 0 {
		in.clients[c] = struct{}{}
	} else {
		delete(in.clients, c)
	}
	cs.tidy(server)
	if c.record.Initialize == nil && !c.left && len(c.record.Levels)+c.subscriptions == 0 {
		delete(cs.byID, c.id)
	}
}

// tidy forgets a server that nobody asked for anything. cs.mu is held.
func (cs *clients) tidy(server string) {
	if in := cs.interest[server]; in != nil && len(in.clients)+len(in.watches) == 0 {
		delete(cs.interest, server)
	}
}

// release forgets a resource that nobody is subscribed to or talks about. cs.mu is held.
func (cs *clients) release(of resource, w *watch) {
	if w.users == 0 && len(w.clients) == 0 {
		delete(cs.interest[of.server].watches, of.uri)
		cs.tidy(of.server)
	}
}

// setLevel notes a level before it is sent. undo takes it back, unless another has been set since.
func (cs *clients) setLevel(server, id string, params []byte) (undo func(), err error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.client(id)
	before, was := c.record.Levels[server]
	grows := len(params) - len(before.Params)
	if c.bytes+grows > maxRecord {
		cs.settle(c, server)
		return nil, tooMuch(server)
	}
	cs.turn++
	turn := cs.turn
	if c.record.Levels == nil {
		c.record.Levels = map[string]logLevel{}
	}
	c.record.Levels[server] = logLevel{bytes.Clone(params), turn}
	c.bytes += grows
	cs.settle(c, server)
	return func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		if c.record.Levels[server].Turn != turn {
			return
		}
		c.bytes -= grows
		if was {
			c.record.Levels[server] = before
		} else {
			delete(c.record.Levels, server)
		}
		cs.settle(c, server)
	}, nil
}

// subscribe notes a subscription before it is sent: its first update may follow the answer at once. hold charges it
// to the caller until it ends. undo takes it back.
func (cs *clients) subscribe(of resource, id string, shared bool, params []byte, hold Hold) (undo func(), err error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.client(id)
	subscriptions := c.record.Subscriptions[of.server]
	if _, ok := subscriptions[of.uri]; ok {
		return func() {}, nil
	}
	size := len(of.uri) + len(params)
	switch {
	case c.subscriptions >= maxSubscriptions, shared && len(cs.about(of.server).watches) > maxSubscriptions:
		err = &link.Failure{Server: of.server, Reason: link.ReasonOverloaded, Message: fmt.Sprintf(
			"there are %d subscriptions already; unsubscribe from some resources first", maxSubscriptions)}
	case c.bytes+size > maxRecord:
		err = tooMuch(of.server)
	}
	var release func()
	if err == nil {
		var ok bool
		if release, ok = hold.take(size); !ok {
			err = &link.Failure{Server: of.server, Reason: link.ReasonOverloaded,
				Message: "the caller holds too many bytes; unsubscribe from some resources, or read the answers that wait"}
		}
	}
	if err != nil {
		cs.settle(c, of.server)
		return nil, err
	}
	if subscriptions == nil {
		if c.record.Subscriptions == nil {
			c.record.Subscriptions = map[string]map[string]json.RawMessage{}
		}
		subscriptions = map[string]json.RawMessage{}
		c.record.Subscriptions[of.server] = subscriptions
	}
	subscriptions[of.uri] = bytes.Clone(params)
	if c.releases == nil {
		c.releases = map[resource]func(){}
	}
	c.releases[of] = release
	c.subscriptions++
	c.bytes += size
	cs.watch(of).clients[c] = struct{}{}
	cs.settle(c, of.server)
	return func() { cs.unsubscribe(of, id) }, nil
}

func tooMuch(server string) error {
	return &link.Failure{Server: server, Reason: link.ReasonOverloaded, Message: fmt.Sprintf(
		"the client's subscriptions take more than %d bytes; unsubscribe from some resources first", maxRecord)}
}

// unsubscribe ends a subscription and returns how many others there are to the resource.
func (cs *clients) unsubscribe(of resource, id string) (others int) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.byID[id]; c != nil {
		cs.remove(c, of)
	}
	if in := cs.interest[of.server]; in != nil && in.watches[of.uri] != nil {
		return len(in.watches[of.uri].clients)
	}
	return 0
}

// remove ends a subscription. cs.mu is held.
func (cs *clients) remove(c *client, of resource) {
	subscriptions := c.record.Subscriptions[of.server]
	params, ok := subscriptions[of.uri]
	if !ok {
		return
	}
	if delete(subscriptions, of.uri); len(subscriptions) == 0 {
		delete(c.record.Subscriptions, of.server)
	}
	c.subscriptions--
	c.bytes -= len(of.uri) + len(params)
	c.releases[of]()
	delete(c.releases, of)
	w := cs.watch(of)
	delete(w.clients, c)
	cs.release(of, w)
	cs.settle(c, of.server)
}
