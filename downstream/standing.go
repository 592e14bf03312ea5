package downstream

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// maxStanding bounds the subscriptions of one client, and those to one server on a session that clients share.
const maxStanding = 10_000

// standing is what clients have asked of servers once for all time: a level of logging, and word of resources
// that change. It outlives sessions and configurations: whichever session a client has with a server of that
// name is asked for it, a shared one for what all its clients want. Servers are known by name.
type standing struct {
	mu      sync.Mutex
	last    int64 // setting of a level
	levels  map[party]level
	watches map[string]map[string]*watch // by server and URI
	clients map[string]map[resource]bool // what each client watches
}

type party struct{ server, client string }

// level is what a client asked of a server's log.
type level struct {
	params []byte // raw, of logging/setLevel
	number int64  // of two clients on a shared session the later has its way
}

// resource is a resource of a server.
type resource struct{ server, uri string }

// watch is who watches one resource. Whoever talks to the server about it on a shared session holds the turn,
// so that what the server hears last agrees with params.
type watch struct {
	turn   chan struct{}     // has room for one
	users  int               // who have the turn or wait for it
	params map[string][]byte // raw, of resources/subscribe, by client
}

func newStanding() *standing {
	return &standing{levels: map[party]level{}, watches: map[string]map[string]*watch{}, clients: map[string]map[resource]bool{}}
}

// begin waits for the turn to talk about a resource; end gives it back.
func (st *standing) begin(ctx context.Context, of resource) (end func(), err error) {
	st.mu.Lock()
	w := st.watch(of)
	w.users++
	st.mu.Unlock()
	leave := func() {
		st.mu.Lock()
		defer st.mu.Unlock()
		w.users--
		st.tidy(of, w)
	}
	select {
	case w.turn <- struct{}{}:
		return func() { <-w.turn; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// watch returns who watches a resource, making a place for them. st.mu is held.
func (st *standing) watch(of resource) *watch {
	w := st.watches[of.server][of.uri]
	if w == nil {
		w = &watch{turn: make(chan struct{}, 1), params: map[string][]byte{}}
		if st.watches[of.server] == nil {
			st.watches[of.server] = map[string]*watch{}
		}
		st.watches[of.server][of.uri] = w
	}
	return w
}

// tidy forgets a resource that nobody watches or talks about. st.mu is held.
func (st *standing) tidy(of resource, w *watch) {
	if w.users > 0 || len(w.params) > 0 {
		return
	}
	if delete(st.watches[of.server], of.uri); len(st.watches[of.server]) == 0 {
		delete(st.watches, of.server)
	}
}

// subscribe notes a subscription before it is sent: its first update may follow the answer at once. undo takes
// it back.
func (st *standing) subscribe(of resource, client string, shared bool, params []byte) (undo func(), err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.clients[client][of] {
		return func() {}, nil
	}
	if len(st.clients[client]) >= maxStanding || shared && len(st.watches[of.server]) > maxStanding {
		return nil, &link.Failure{Server: of.server, Reason: link.ReasonOverloaded, Message: "there are too many subscriptions"}
	}
	st.watch(of).params[client] = params
	if st.clients[client] == nil {
		st.clients[client] = map[resource]bool{}
	}
	st.clients[client][of] = true
	return func() { st.unsubscribe(of, client) }, nil
}

// unsubscribe ends a subscription and returns how many others there are to the resource.
func (st *standing) unsubscribe(of resource, client string) (others int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if mine := st.clients[client]; mine[of] {
		if delete(mine, of); len(mine) == 0 {
			delete(st.clients, client)
		}
	}
	w := st.watches[of.server][of.uri]
	if w == nil {
		return 0
	}
	delete(w.params, client)
	st.tidy(of, w)
	return len(w.params)
}

// setLevel notes a level before it is sent. undo takes it back, unless another has been set since.
func (st *standing) setLevel(of party, params []byte) (undo func()) {
	st.mu.Lock()
	defer st.mu.Unlock()
	before, was := st.levels[of]
	st.last++
	number := st.last
	st.levels[of] = level{params, number}
	return func() {
		st.mu.Lock()
		defer st.mu.Unlock()
		switch {
		case st.levels[of].number != number:
		case was:
			st.levels[of] = before
		default:
			delete(st.levels, of)
		}
	}
}

// resources returns what a client watches.
func (st *standing) resources(client string) []resource {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.Collect(maps.Keys(st.clients[client]))
}

// forget drops all that a client has asked for.
func (st *standing) forget(client string) {
	for _, of := range st.resources(client) {
		st.unsubscribe(of, client)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	maps.DeleteFunc(st.levels, func(of party, _ level) bool { return of.client == client })
}

// of returns the clients that have asked a server for something.
func (st *standing) of(server string) []string {
	st.mu.Lock()
	defer st.mu.Unlock()
	clients := map[string]bool{}
	for of := range st.levels {
		if of.server == server {
			clients[of.client] = true
		}
	}
	for _, w := range st.watches[server] {
		for client := range w.params {
			clients[client] = true
		}
	}
	return slices.Collect(maps.Keys(clients))
}

// calls are the requests that ask a new session with a server for all that the client whose it is wants, or all
// clients if they share it.
func (st *standing) calls(server, client string, shared bool) (calls []*link.Call) {
	st.mu.Lock()
	defer st.mu.Unlock()
	var newest level
	for of, l := range st.levels {
		if of.server == server && (shared || of.client == client) && l.number > newest.number {
			newest = l
		}
	}
	if newest.params != nil {
		calls = append(calls, &link.Call{Method: "logging/setLevel", Params: newest.params})
	}
	for _, w := range st.watches[server] {
		for who, params := range w.params {
			if shared || who == client {
				calls = append(calls, &link.Call{Method: "resources/subscribe", Params: params})
				break
			}
		}
	}
	return calls
}

// subscribers returns who watches a resource of a server, or what it is a part of: servers may tell of
// something below what was subscribed to.
func (st *standing) subscribers(server, uri string) []string {
	st.mu.Lock()
	defer st.mu.Unlock()
	of := func(uri string) []string {
		if w := st.watches[server][uri]; w != nil {
			return slices.Collect(maps.Keys(w.params))
		}
		return nil
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

// resource returns what a request names.
func (r *Request) resource() resource {
	return resource{r.Server, jsonrpc.Text(jsonrpc.Get(r.Params, "uri"))}
}
