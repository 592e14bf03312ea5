package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/reason"
)

const (
	maxSubscriptions = 10_000 // per client, and per server on its shared session
	restoring        = 16     // concurrent requests that replay or end subscriptions
	maxLevels        = 64     // resources considered to contain an updated one, nearest first
)

// Hold charges n bytes to a caller until release, which must be called once. ok is false if the caller holds too
// much.
type Hold func(n int) (release func(), ok bool)

// take calls h. A nil Hold charges nothing.
func (h Hold) take(n int) (release func(), ok bool) {
	if h == nil {
		return func() {}, true
	}
	return h(n)
}

// interests are the log levels and subscriptions of clients, by server. They are guarded by clients.mu.
type interests map[string]*interest

// interest holds the log levels and subscriptions at one server.
type interest struct {
	clients map[*client]struct{} // clients with a level or a subscription
	watches map[string]*watch    // by URI
}

// watch holds the subscribers of one resource. On a shared session, calls about the resource take turns, so that the
// last call at the server matches the record.
type watch struct {
	turn    chan struct{} // capacity 1
	users   int           // calls that hold or await the turn
	clients map[*client]struct{}
}

// about returns the interest in a server, adding it if there is none. The caller holds clients.mu.
func (is interests) about(server string) *interest {
	in := is[server]
	if in == nil {
		in = &interest{clients: map[*client]struct{}{}, watches: map[string]*watch{}}
		is[server] = in
	}
	return in
}

// watch returns the watch of a resource, adding it if there is none. The caller holds clients.mu.
func (is interests) watch(of resource) *watch {
	in := is.about(of.server)
	w := in.watches[of.uri]
	if w == nil {
		w = &watch{turn: make(chan struct{}, 1), clients: map[*client]struct{}{}}
		in.watches[of.uri] = w
	}
	return w
}

// tidy removes a server without interest. The caller holds clients.mu.
func (is interests) tidy(server string) {
	if in := is[server]; in != nil && len(in.clients)+len(in.watches) == 0 {
		delete(is, server)
	}
}

// release removes a resource without subscribers and calls. The caller holds clients.mu.
func (is interests) release(of resource, w *watch) {
	if w.users == 0 && len(w.clients) == 0 {
		delete(is[of.server].watches, of.uri)
		is.tidy(of.server)
	}
}

// settle updates the interest of a client in a server and removes empty entries. The caller holds cs.mu.
func (cs *clients) settle(c *client, server string) {
	in := cs.interest.about(server)
	if _, level := c.record.Levels[server]; level || len(c.record.Subscriptions[server]) > 0 {
		in.clients[c] = struct{}{}
	} else {
		delete(in.clients, c)
	}
	cs.interest.tidy(server)
	if c.record.Initialize == nil && !c.left && len(c.record.Levels)+c.subscriptions == 0 {
		delete(cs.byID, c.id)
	}
}

// setLevel records a level before it is sent. undo reverts it unless another level has been set since.
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

// subscribe records a subscription before it is sent, because the first update may directly follow the response. hold
// charges it to the caller until it ends. undo reverts it.
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
	case c.subscriptions >= maxSubscriptions, shared && len(cs.interest.about(of.server).watches) > maxSubscriptions:
		err = &link.Failure{Server: of.server, Reason: reason.Overloaded, Message: fmt.Sprintf(
			"there are %d subscriptions already; unsubscribe from some resources first", maxSubscriptions)}
	case c.bytes+size > maxRecord:
		err = tooMuch(of.server)
	}
	var release func()
	if err == nil {
		var ok bool
		if release, ok = hold.take(size); !ok {
			err = &link.Failure{Server: of.server, Reason: reason.Overloaded,
				Message: "the caller holds too many bytes; unsubscribe from some resources, or read the pending responses"}
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
	cs.interest.watch(of).clients[c] = struct{}{}
	cs.settle(c, of.server)
	return func() { cs.unsubscribe(of, id, false) }, nil
}

func tooMuch(server string) error {
	return &link.Failure{Server: server, Reason: reason.Overloaded, Message: fmt.Sprintf(
		"the client's subscriptions exceed %d bytes; unsubscribe from some resources first", maxRecord)}
}

// unsubscribe ends a subscription and returns how many others there are to the resource on the router's own session.
func (cs *clients) unsubscribe(of resource, id string, perClient bool) (others int) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.byID[id]; c != nil {
		cs.remove(c, of)
	}
	if in := cs.interest[of.server]; in != nil && in.watches[of.uri] != nil {
		for c := range in.watches[of.uri].clients {
			if c.shares(perClient) {
				others++
			}
		}
	}
	return others
}

// remove ends a subscription. The caller holds cs.mu.
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
	w := cs.interest.watch(of)
	delete(w.clients, c)
	cs.interest.release(of, w)
	cs.settle(c, of.server)
}

// begin waits for the turn of calls about a resource; end returns the turn.
func (cs *clients) begin(ctx context.Context, of resource) (end func(), err error) {
	cs.mu.Lock()
	w := cs.interest.watch(of)
	w.users++
	cs.mu.Unlock()
	leave := func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		w.users--
		cs.interest.release(of, w)
	}
	select {
	case w.turn <- struct{}{}:
		return func() { <-w.turn; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// interested returns the clients with a log level or a subscription at a server.
func (cs *clients) interested(server string) (ids []string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if in := cs.interest[server]; in != nil {
		for c := range in.clients {
			ids = append(ids, c.id)
		}
	}
	return ids
}

// replay returns the requests that restore a session: the log level and the subscriptions of its client or, on the
// router's own session, of the clients that share it.
func (cs *clients) replay(server, id string, perClient bool) (calls []*link.Call) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var newest logLevel
	subscribe := func(params []byte) {
		calls = append(calls, &link.Call{Method: "resources/subscribe", Params: params})
	}
	if perClient && id != "" {
		if c := cs.byID[id]; c != nil {
			newest = c.record.Levels[server]
			for _, params := range c.record.Subscriptions[server] {
				subscribe(params)
			}
		}
	} else if in := cs.interest[server]; in != nil {
		for c := range in.clients {
			if l := c.record.Levels[server]; c.shares(perClient) && l.Turn > newest.Turn {
				newest = l
			}
		}
		for uri, w := range in.watches {
			for c := range w.clients {
				if c.shares(perClient) {
					subscribe(c.record.Subscriptions[server][uri])
					break
				}
			}
		}
	}
	if newest.Params != nil {
		calls = append(calls, &link.Call{Method: "logging/setLevel", Params: newest.Params})
	}
	return calls
}

// subscribers returns the clients subscribed to a resource, or to one that contains it, on the router's own session.
func (cs *clients) subscribers(server, uri string, perClient bool) []string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	in := cs.interest[server]
	if in == nil {
		return nil
	}
	found := map[string]struct{}{}
	add := func(uri string) {
		if w := in.watches[uri]; w != nil {
			for c := range w.clients {
				if c.shares(perClient) {
					found[c.id] = struct{}{}
				}
			}
		}
	}
	add(uri)
	end := len(uri)
	for range maxLevels {
		if end = strings.LastIndexAny(uri[:end], "/?#"); end < 0 {
			break
		}
		add(uri[:end+1])
		add(uri[:end])
	}
	return slices.Collect(maps.Keys(found))
}
