package downstream

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

const (
	maxRecord     = 1 << 20  // bytes of one client's subscriptions and log levels
	maxInitialize = 64 << 10 // bytes of initialize params that are kept whole
)

// record holds the requests of a client that apply to its whole session. Sessions with servers are opened and
// restored from it, so any process that has the record can serve the client.
type record struct {
	Initialize    json.RawMessage                       `json:"initialize,omitempty"` // params; nil = not sent
	Initialized   bool                                  `json:"initialized,omitempty"`
	Levels        map[string]logLevel                   `json:"levels,omitempty"`        // by server
	Subscriptions map[string]map[string]json.RawMessage `json:"subscriptions,omitempty"` // params, by server and URI
}

// logLevel is the log level that a client requested from a server.
type logLevel struct {
	Params json.RawMessage `json:"params"` // of logging/setLevel
	Turn   int64           `json:"turn"`   // on a shared session the level with the highest turn is in force
}

// resource is a resource of a server.
type resource struct{ server, uri string }

// client is one client session: its record, and its sessions with servers in this process. The fields are guarded by
// clients.mu.
type client struct {
	id            string
	record        record
	subscriptions int                 // total number
	bytes         int                 // size of subscriptions and levels
	releases      map[resource]func() // release the charges of subscriptions
	slots         map[*endpoint]*slot
	left          bool // no more sessions are opened for it
}

// entered reports whether the client has sent initialize. Only then it has its own sessions with servers. The caller
// holds clients.mu.
func (c *client) entered() bool { return c.record.Initialize != nil }

// shares reports whether the client uses the router's own session with a server. perClient tells whether the server
// has a session per client. The caller holds clients.mu.
func (c *client) shares(perClient bool) bool { return !perClient || !c.entered() }

// clients owns the state of all clients. It refers to servers by name, so that subscriptions and levels survive
// sessions and configurations.
type clients struct {
	mu       sync.Mutex
	turn     int64 // turn of the last level
	byID     map[string]*client
	interest interests
}

func newClients() *clients {
	return &clients{byID: map[string]*client{}, interest: interests{}}
}

// client returns the state of a client, adding it if there is none. The caller holds cs.mu.
func (cs *clients) client(id string) *client {
	c := cs.byID[id]
	if c == nil {
		c = &client{id: id}
		cs.byID[id] = c
	}
	return c
}

// enter stores the raw params of a client's initialize.
func (cs *clients) enter(id string, params []byte) {
	params = keptInitialize(params)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.client(id)
	c.record.Initialize, c.left = params, false
}

// keptInitialize returns the initialize params to store. Large params are reduced to the members that the protocol
// defines, whose size the edge limits.
func keptInitialize(params []byte) []byte {
	if len(params) <= maxInitialize {
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

// initialized records that a client has sent notifications/initialized.
func (cs *clients) initialized(id string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.byID[id]; c != nil {
		c.record.Initialized = true
	}
}

// initialize returns the params of a client's initialize, nil if it has not entered, and whether the client has sent
// notifications/initialized.
func (cs *clients) initialize(id string) (params []byte, initialized bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.byID[id]; c != nil && !c.left {
		return c.record.Initialize, c.record.Initialized
	}
	return nil, false
}

// slot returns a client's slot with a server, calling add to create it. It is nil if the client has not entered or
// has left, or if add returns nil.
func (cs *clients) slot(id string, e *endpoint, add func(id string) *slot) *slot {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.byID[id]
	if c == nil || c.record.Initialize == nil || c.left {
		return nil
	}
	if sl := c.slots[e]; sl != nil {
		return sl
	}
	sl := add(id)
	if sl == nil {
		return nil
	}
	if c.slots == nil {
		c.slots = map[*endpoint]*slot{}
	}
	c.slots[e] = sl
	return sl
}

// existing returns a client's slot with a server; nil if there is none.
func (cs *clients) existing(id string, e *endpoint) *slot {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.byID[id]; c != nil {
		return c.slots[e]
	}
	return nil
}

// drop removes the slots of a server that has stopped.
func (cs *clients) drop(e *endpoint, slots []*slot) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, sl := range slots {
		if c := cs.byID[sl.client]; c != nil {
			delete(c.slots, e)
		}
	}
}

// leave removes and returns the slots of a client and its subscribed resources. The client gets no more slots. entered
// tells whether it had sessions of its own.
func (cs *clients) leave(id string) (slots []*slot, subscribed []resource, entered bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.byID[id]
	if c == nil {
		return nil, nil, false
	}
	c.left = true
	slots = slices.Collect(maps.Values(c.slots))
	c.slots = nil
	for server, of := range c.record.Subscriptions {
		for uri := range of {
			subscribed = append(subscribed, resource{server, uri})
		}
	}
	return slots, subscribed, c.entered()
}

// forget removes a client that has left.
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
