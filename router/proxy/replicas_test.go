package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/cluster"
	store "github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
	"github.com/agenticnexus/agenticnexus/tests/cuts"
)

// replicas are the router of a world: three processes that share a state, before a balancer that takes another one for
// each request. All connections are pipes, so that they work inside of synctest.
type replicas struct {
	w      *world
	places []place
	net    *cuts.Network
	state  *store.Memory
	ends   sync.WaitGroup // of processes

	mu       sync.Mutex
	all      [3]*replica
	next     int
	random   *rand.Rand
	kill     time.Time // the last one
	cut      time.Time // when a replica has lost the store the last time
	refusals []string  // with 503 and again, of requests that no loss explains
}

// replica is a process.
type replica struct {
	face
	host   string
	member *cluster.Replica
	store  *cuts.State
	door   *cuts.Listener
	server *http.Server
	served sync.WaitGroup
	dead   atomic.Bool // nothing that it does is seen by anybody

	mu    sync.Mutex
	conns []io.Closer // that it has opened

	phase  phase     // guarded by replicas.mu
	healed time.Time // when it got the store back, guarded by replicas.mu
}

// phase of a process.
type phase int

const (
	up       phase = iota
	draining       // it hands its sessions over
	retiring       // and then ends
	leaving        // without requests of clients
	gone
)

// newReplicated is newWorld with replicas. All places are pipes.
func newReplicated(t testing.TB, change func(*setup), places ...place) *world {
	t.Helper()
	w := prepare(t, change, places...)
	rs := &replicas{w: w, places: places, net: cuts.New(), state: store.NewMemory(), random: rand.New(rand.NewPCG(1, 2))}
	w.replicas, w.url = rs, "http://router"
	w.transport = &http.Transport{DisableKeepAlives: true, DialContext: rs.net.From("client")}
	t.Cleanup(w.stop)
	for i := range rs.all {
		rs.start(i)
	}
	return w
}

type sharedKey struct{}

func (sharedKey) Newest(string) (uint32, []byte) { return 1, slices.Repeat([]byte{7}, 32) }
func (sharedKey) Key(_ string, id uint32) ([]byte, bool) {
	return slices.Repeat([]byte{7}, 32), id == 1
}

// start starts a process.
func (rs *replicas) start(i int) {
	rs.w.t.Helper()
	r := &replica{host: fmt.Sprintf("r%d:80", i), store: cuts.NewState(rs.state)}
	r.member = cluster.New(cluster.Config{
		Leases: r.store, Sessions: r.store, Name: fmt.Sprint("r", i), Address: "http://" + r.host,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := rs.net.From(r.host)(ctx, network, address)
			if err == nil {
				err = r.opened(c)
			}
			return conn{c, r}, err
		},
		Keys:   func() [][]byte { return [][]byte{slices.Repeat([]byte{9}, 32)} },
		Digest: func() string { return "" },
		Count:  func() int { return r.edge.Sessions() },
		Ended:  func(uint64) { edge.Fenced(r.edge) }, Log: slog.New(slog.DiscardHandler),
	})
	s := rs.w.setup
	s.edge.Directory, s.edge.IDKeys = r.member.Directory(), sharedKey{}
	s.downstream.Embedded = map[string]downstream.DialFunc{}
	for _, p := range rs.places {
		s.downstream.Embedded[p.name] = func(ctx context.Context) (io.ReadWriteCloser, error) {
			c, err := p.server.pipeFrom(ctx, r)
			if err == nil {
				err = r.opened(c)
			}
			return pipe{c, r}, err
		}
	}
	r.face = newFace(s)
	r.server = &http.Server{Handler: r.member.Receive(r.handler), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	r.door = rs.net.Listen(r.host)
	served := output.CoalesceWrites(r.server, door{r.door, r})
	r.served.Go(func() { _ = r.server.Serve(served) })
	r.manager.Start()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	if err := r.member.Start(ctx); err != nil {
		rs.w.t.Errorf("starting %s: %v", r.host, err)
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.all[i] = r
}

// opened notes a connection.
func (r *replica) opened(c io.Closer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead.Load() {
		_ = c.Close()
		return net.ErrClosed
	}
	r.conns = append(r.conns, c)
	return nil
}

// door, conn and pipe are the ways of a process to the outside.
type (
	door struct {
		net.Listener
		r *replica
	}
	conn struct {
		net.Conn
		r *replica
	}
	pipe struct {
		io.ReadWriteCloser
		r *replica
	}
)

func (d door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	return conn{c, d.r}, err
}

func (c conn) Write(b []byte) (int, error) { return c.r.write(c.Conn, b) }
func (p pipe) Write(b []byte) (int, error) { return p.r.write(p.ReadWriteCloser, b) }

func (r *replica) write(w io.Writer, b []byte) (int, error) {
	if r.dead.Load() {
		return 0, net.ErrClosed
	}
	return w.Write(b)
}

// enter changes the phase of a process.
func (rs *replicas) enter(r *replica, p phase) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.phase = p
}

// in returns the processes in these phases.
func (rs *replicas) in(phases ...phase) (found []*replica) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.all {
		if slices.Contains(phases, r.phase) {
			found = append(found, r)
		}
	}
	return found
}

// send passes a request to the next process in service, which at tells.
func (rs *replicas) send(req *http.Request, at func(*replica)) (resp *http.Response, err error) {
	for range rs.all {
		all := rs.in(up, draining, retiring)
		rs.mu.Lock()
		rs.next += 1 + rs.random.IntN(2)
		r := all[rs.next%len(all)]
		rs.mu.Unlock()
		at(r)
		to := req.Clone(req.Context())
		to.URL.Host = r.host
		if to.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
		if resp, err = rs.w.transport.RoundTrip(to); !errors.Is(err, syscall.ECONNREFUSED) {
			return resp, err
		}
	}
	return resp, err
}

// adopts is how long it takes at most until others act for the sessions of a process that was killed.
const adopts = 2 * time.Second

// refused notes a request that was refused so many times, the last time after it was sent at a time. It reports whether
// its client tries again. The store comes back if nobody has it.
func (rs *replicas) refused(t testing.TB, times int, sent time.Time, what string) bool {
	rs.mu.Lock()
	if times > 2 && rs.cut.IsZero() && sent.After(rs.kill.Add(adopts)) { // a session that moves may be out of reach
		rs.refusals = append(rs.refusals, what)
	}
	rs.mu.Unlock()
	switch {
	case times%8 == 0 && rs.blackout():
		rs.heal(rs.all[:]...)
	case times > 30:
		t.Errorf("refused %d times: %s", times, what)
		return false
	}
	return true
}

// cutOff cuts a process off from the store.
func (rs *replicas) cutOff(r *replica) {
	rs.mu.Lock()
	rs.cut = time.Now()
	rs.mu.Unlock()
	r.store.SetCut(true)
}

// heal gives the store back to processes.
func (rs *replicas) heal(all ...*replica) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range all {
		if r.phase != gone && !r.store.Connected() {
			r.healed = time.Now()
			r.store.SetCut(false)
		}
	}
}

// noticed is how long the others take a process that loses the store for one that can take sessions.
const noticed = 3 * time.Second

// moving reports whether sessions are being handed over.
func (rs *replicas) moving() bool {
	return slices.ContainsFunc(rs.in(draining, retiring, leaving), func(r *replica) bool { return r.edge.Sessions() > 0 })
}

// behind reports whether what a process wants to store may not be stored.
func (rs *replicas) behind(r *replica) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return !r.store.Connected() || time.Since(r.healed) < 3*time.Second
}

// blackout reports whether nobody reaches the store who may take sessions.
func (rs *replicas) blackout() bool {
	return !slices.ContainsFunc(rs.in(up), func(r *replica) bool { return r.store.Connected() })
}

// crash ends a process without a word.
func (rs *replicas) crash(r *replica) {
	rs.enter(r, gone)
	rs.mu.Lock()
	rs.kill = time.Now()
	rs.mu.Unlock()
	r.dead.Store(true)
	r.store.SetCut(true)
	_ = r.server.Close()
	r.mu.Lock()
	conns := r.conns
	r.conns = nil
	r.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	rs.ends.Go(func() { rs.bury(r) })
}

// bury ends the goroutines of a process.
func (rs *replicas) bury(r *replica) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r.member.Stop()
	if err := r.edge.Stop(ctx); err != nil {
		rs.w.t.Errorf("Stop: got %v, want nil", err)
	}
	_ = r.server.Close()
	r.served.Wait()
	r.manager.Stop()
}

// leave ends a process as the App does.
func (rs *replicas) leave(r *replica) {
	r.member.Drain()
	for before, since := r.edge.Sessions(), time.Now(); before > 0 && time.Since(since) < 3*time.Second; time.Sleep(20 * time.Millisecond) {
		if now := r.edge.Sessions(); now != before {
			before, since = now, time.Now()
		}
	}
	rs.enter(r, leaving)
	time.Sleep(time.Millisecond) // for what the balancer has sent
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	edge.Drain(ctx, r.edge)
	if err := errors.Join(r.member.Leave(ctx), r.edge.Stop(ctx)); err != nil {
		rs.w.t.Errorf("leaving: got %v, want nil", err)
	}
	r.door.Refuse()
	time.Sleep(time.Second) // for what was passed on
	rs.bury(r)
	rs.enter(r, gone)
}

// stop ends all processes.
func (rs *replicas) stop() {
	for _, r := range rs.in(up, draining) {
		rs.crash(r)
	}
	rs.ends.Wait()
	rs.w.transport.CloseIdleConnections()
	rs.state.Close()
}

// replicaKinds are kinds of ops that happen to replicas.
var replicaKinds = strings.Fields(`kill kill kill drain retire start start start cut cut blackout heal pass pass part isolate`)

func (m *model) replicate(o op) {
	rs := m.rs
	rs.mu.Lock()
	r := rs.all[o.server]
	is := r.phase
	rs.mu.Unlock()
	others := slices.DeleteFunc(rs.in(up), func(of *replica) bool { return of == r })
	moves := slices.Contains([]string{"kill", "drain", "retire"}, o.kind)
	if moves && (is > draining || len(others) == 0) || o.kind == "start" && is != gone {
		return
	}
	switch o.kind {
	case "kill":
		m.unsettle(r, true)
		m.unlocked(func() { rs.crash(r) })
	case "drain", "retire":
		rs.heal(r)
		if !slices.ContainsFunc(others, func(of *replica) bool { return of.store.Connected() }) {
			rs.heal(others...) // else nobody can take its sessions, and they end with it
			m.unlocked(func() { time.Sleep(noticed) })
		}
		m.unsettle(r, false)
		if o.kind == "drain" {
			rs.enter(r, draining)
			r.member.Drain()
			return
		}
		rs.enter(r, retiring)
		rs.ends.Go(func() { rs.leave(r) })
	case "start":
		m.unlocked(func() { rs.start(o.server) })
	case "cut":
		if is == up && slices.ContainsFunc(others, func(of *replica) bool { return of.store.Connected() }) {
			m.cutOff(r)
		}
	case "blackout":
		m.cutOff(rs.in(up)...)
	case "part", "isolate":
		if is == up && len(others) > 0 && !rs.moving() {
			m.part(r, o.kind == "isolate")
		}
	case "heal":
		rs.heal(rs.all[:]...)
	case "pass":
		m.unlocked(func() { time.Sleep(time.Duration(o.pick%8000) * time.Millisecond) })
	}
}

// cutOff cuts replicas off from the store, unless they are to get sessions: they can take these only with it.
func (m *model) cutOff(all ...*replica) {
	if m.rs.moving() {
		return
	}
	m.settle() // so that they have taken those that they got
	for _, r := range all {
		m.rs.cutOff(r)
	}
	m.unlocked(func() { time.Sleep(noticed) }) // until then it may get sessions
}

// part cuts a replica off from the others for a while. Alone, also without the store, it loses its sessions to them, and
// has ended these by then. Else nothing moves, though it takes the others for silent.
func (m *model) part(r *replica, alone bool) {
	rs := m.rs
	rs.heal(rs.all[:]...)
	m.unlocked(func() { time.Sleep(noticed) })
	m.settle()
	var before [3][]*replica
	for i, a := range m.clients {
		before[i] = m.homes(a)
		crosses := len(before[i]) != 1 || (before[i][0] == r) != (a.own.through(a) == r)
		if crosses && !a.resumable(&a.own) {
			a.shaky = true
			a.moves++
		}
	}
	for _, c := range m.calls {
		if crosses := c.request == nil || (c.request.peer.at() == r) != (c.answer.through(c.actor) == r); crosses && !c.done() {
			m.cut(c) // by the replica that passes it on
		}
	}
	if alone {
		m.unsettle(r, true)
	}
	rs.mu.Lock()
	rs.cut = time.Now()
	rs.mu.Unlock()
	r.store.SetCut(alone)
	r.store.SetBlind(true)
	rs.net.Isolate(r.host, true)
	m.unlocked(func() { time.Sleep(10 * time.Second) })
	for i, a := range m.clients {
		if alone {
			m.unlocked(func() { m.recover(0, a); m.recover(1, a) })
		}
		switch homes := m.homes(a); {
		case alone && (len(homes) != 1 || homes[0] == r):
			m.wrong("%s: got %d replicas with its session, want one that is not cut off", a.name, len(homes))
		case !alone && !slices.Equal(homes, before[i]):
			m.wrong("%s: its session has moved, want it to stay", a.name)
		}
	}
	rs.net.Isolate(r.host, false)
	r.store.SetBlind(false)
	rs.heal(r)
	m.unlocked(func() { time.Sleep(noticed) })
}

// cut notes that a call may end now.
func (m *model) cut(c *modelCall) {
	c.cut = true
	m.disturb(func(of *modelCall) bool { return of == c })
}

// homes returns the replicas with sessions of a client at servers that have one for each.
func (m *model) homes(a *actor) (found []*replica) {
	for _, s := range m.servers[:shared] {
		for _, p := range s.all() {
			p.mu.Lock()
			if p.client == a.name && !slices.Contains(found, p.host) {
				found = append(found, p.host)
			}
			p.mu.Unlock()
		}
	}
	return found
}

// unsettle notes what may be lost now, or when the sessions of a replica move.
func (m *model) unsettle(r *replica, killed bool) {
	behind := m.rs.behind(r)
	for _, a := range m.clients {
		homes := m.homes(a)
		here := len(homes) == 0 || slices.Contains(homes, r)
		if !here && (a.own.through(a) != r || a.resumable(&a.own)) {
			continue
		}
		a.shaky = true
		a.moves++
		if !killed || !here {
			continue
		}
		a.lost = a.notes
		for of := range a.subscribed {
			if behind {
				a.subscribed[of] = perhaps
			}
		}
	}
	if !killed {
		return
	}
	for _, a := range m.actors {
		a.mayLive = a.mayLive || behind && slices.Contains(a.unwritten, r)
	}
	for _, c := range m.calls {
		if c.done() && !c.mustEnd {
			continue
		}
		here := c.request == nil || c.request.peer.at() == r
		if here || c.answer.through(c.actor) == r && !c.actor.resumable(c.answer) {
			m.cut(c)
		}
	}
}

// through returns the replica that has got the last request for an answer.
func (a *answer) through(c *actor) *replica {
	c.mu.Lock()
	defer c.mu.Unlock()
	return a.entry
}

func (p *peer) at() *replica {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.host
}

// noteEnd notes which replicas alone may know that a client has left.
func (m *model) noteEnd(a *actor) {
	if m.rs == nil {
		return
	}
	homes := m.homes(a)
	if len(homes) == 0 {
		homes = m.rs.all[:]
	}
	for _, r := range homes {
		if m.rs.behind(r) {
			a.unwritten = append(a.unwritten, r)
		}
	}
}

// settles reports whether a session stays where it is.
func (m *model) settles(a *actor) bool {
	if m.rs == nil {
		return true
	}
	for range 5 {
		m.calm()
		stay, homes := m.rs.in(up), m.homes(a)
		entry := a.own.through(a)
		if len(homes) == 1 && slices.Contains(stay, homes[0]) && (entry.in(m.rs, up, draining) || a.resumable(&a.own)) {
			return true
		}
		m.unlocked(func() {
			time.Sleep(time.Second) // a replica that drains looks for sessions that are idle
			for i := range m.servers {
				m.recover(i, a)
			}
		})
	}
	return false
}

func (r *replica) in(rs *replicas, phases ...phase) bool { return slices.Contains(rs.in(phases...), r) }

// calm waits until nothing happens any more.
func (m *model) calm() {
	if m.rs != nil {
		m.unlocked(synctest.Wait)
	}
}

// faces returns the router, or its replicas.
func (m *model) faces() []face {
	if m.rs == nil {
		return []face{m.w.face}
	}
	var all []face
	for _, r := range m.rs.in(up, draining, retiring, leaving) {
		all = append(all, r.face)
	}
	return all
}

// checkRefused looks for requests that were refused without a reason.
func (rs *replicas) checkRefused(m *model) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if len(rs.refusals) > 0 {
		m.wrong("refused, though nobody has lost anything: %q", rs.refusals)
	}
}
