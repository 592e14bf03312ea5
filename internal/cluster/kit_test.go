package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/shared"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// net of replicas in this process; works inside of synctest.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener // by host:port
	cut       map[[2]string]bool   // from, to
}

func newNetwork() *network {
	return &network{listeners: map[string]*listener{}, cut: map[[2]string]bool{}}
}

// setCut cuts a host off from another, or heals that. Connections between them break.
func (n *network) setCut(from, to string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]string{from, to}] = cut
	if l := n.listeners[to]; cut && l != nil {
		l.breakFrom(from)
	}
}

// isolate cuts a host off from all others, or heals that.
func (n *network) isolate(host string, cut bool) {
	n.mu.Lock()
	hosts := slices.Collect(maps.Keys(n.listeners))
	n.mu.Unlock()
	for _, other := range hosts {
		if other != host {
			n.setCut(host, other, cut)
			n.setCut(other, host, cut)
		}
	}
}

func (n *network) dialFrom(from string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		n.mu.Lock()
		l, cut := n.listeners[address], n.cut[[2]string{from, address}]
		n.mu.Unlock()
		if cut {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if l == nil {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		client, server := net.Pipe()
		if !l.add(from, client, server) {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		return client, nil
	}
}

func (n *network) listen(address string) *listener {
	l := &listener{net: n, address: address, accept: make(chan net.Conn, 100), closed: make(chan struct{}), by: map[string][]net.Conn{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[address] = l
	return l
}

type listener struct {
	net     *network
	address string
	accept  chan net.Conn
	closed  chan struct{}
	once    sync.Once
	mu      sync.Mutex
	by      map[string][]net.Conn
}

func (l *listener) add(from string, client, server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
		return false
	default:
	}
	l.by[from] = append(l.by[from], client, server)
	l.accept <- server
	return true
}

func (l *listener) breakFrom(from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.by[from] {
		_ = c.Close()
	}
	delete(l.by, from)
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.net.mu.Lock()
		if l.net.listeners[l.address] == l {
			delete(l.net.listeners, l.address)
		}
		l.net.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		close(l.closed)
		for _, conns := range l.by {
			for _, c := range conns {
				_ = c.Close()
			}
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

// access is one replica's way to the store. It can be cut, and can lose answers.
type access struct {
	shared.State
	mu      sync.Mutex
	cut     bool
	blind   bool // watches stand still
	changed chan struct{}
	lose    atomic.Int32 // answers of the next so many Puts that store are lost
}

func newAccess(s shared.State) *access { return &access{State: s, changed: make(chan struct{})} }

func (a *access) setCut(cut bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut = cut
	close(a.changed)
	a.changed = make(chan struct{})
}

// replace replaces the store while it is cut off.
func (a *access) replace(s shared.State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.State = s
}

// setBlind lets watches stand still, or go on.
func (a *access) setBlind(blind bool) {
	a.mu.Lock()
	a.blind = blind
	cut := a.cut
	a.mu.Unlock()
	a.setCut(cut)
}

// sees reports whether watches go on, and returns a channel that is closed when that may have changed.
func (a *access) sees() (bool, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.cut && !a.blind, a.changed
}

func (a *access) before() error {
	if !a.Connected() {
		return shared.ErrUnreachable
	}
	return nil
}

func (a *access) Get(ctx context.Context, key string) (shared.Entry, error) {
	if err := a.before(); err != nil {
		return shared.Entry{}, err
	}
	return a.State.Get(ctx, key)
}

func (a *access) Put(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	if err := a.before(); err != nil {
		return 0, err
	}
	revision, err := a.State.Put(ctx, key, value, revision, ttl)
	if err == nil && a.lose.Load() > 0 && a.lose.Add(-1) >= 0 {
		return 0, shared.ErrUnreachable
	}
	return revision, err
}

func (a *access) Connected() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.cut
}

func (a *access) Watch(ctx context.Context, prefix string, f func(shared.Entry)) error {
	for ctx.Err() == nil {
		sees, changed := a.sees()
		inner, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if sees {
				_ = a.State.Watch(inner, prefix, f)
			}
		}()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		cancel()
		<-done
	}
	return ctx.Err()
}

// node is a replica with an HTTP server that answers with its name.
type node struct {
	*cluster.Replica
	dir    *cluster.Directory
	name   string
	host   string
	leases *access
	server *http.Server
	served sync.WaitGroup
	ended  atomic.Int32 // calls of Ended
	dead   atomic.Bool  // what it does is not seen by anybody
	log    *logs
	handle atomic.Pointer[http.HandlerFunc]
}

type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// world is a cluster in this process.
type world struct {
	t     testing.TB
	net   *network
	store shared.State
}

func newWorld(t testing.TB) *world { return &world{t, newNetwork(), shared.NewMemory()} }

var clusterKey = []byte("the key of the cluster of tests.")

// node starts the HTTP server of a replica, and then the replica.
func (w *world) node(name string, change ...func(*cluster.Config)) *node {
	w.t.Helper()
	n := w.prepare(name, name+":80", change...)
	if err := n.Start(w.t.Context()); err != nil {
		w.t.Fatalf("starting %s: %v", name, err)
	}
	return n
}

// prepare starts the HTTP server of a replica.
func (w *world) prepare(name, host string, change ...func(*cluster.Config)) *node {
	return w.prepareAt(name, host, w.net.listen(host), change...)
}

// onLoopback is node with TCP connections.
func (w *world) onLoopback(name string, change ...func(*cluster.Config)) *node {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	change = append(change, func(c *cluster.Config) { c.Dial = nil })
	n := w.prepareAt(name, l.Addr().String(), l, change...)
	if err := n.Start(w.t.Context()); err != nil {
		w.t.Fatalf("starting %s: %v", name, err)
	}
	return n
}

func (w *world) prepareAt(name, host string, l net.Listener, change ...func(*cluster.Config)) *node {
	n := &node{name: name, host: host, leases: newAccess(w.store), log: &logs{}}
	config := cluster.Config{
		Leases: n.leases, Sessions: n.leases, Name: name, Address: "http://" + host, Version: "1.0.0", Digest: "d",
		Keys:  func() [][]byte { return [][]byte{clusterKey} },
		Count: func() int { return 3 },
		Ended: func(uint64) { n.ended.Add(1) },
		Dial:  w.net.dialFrom(host),
		Log:   slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range change {
		f(&config)
	}
	n.Replica = cluster.New(config)
	n.dir = n.Directory()
	n.serve(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s for %s", name, r.RemoteAddr) })
	n.server = &http.Server{Handler: n.Receive(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*n.handle.Load())(w, r) })),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	n.served.Go(func() { _ = n.server.Serve(l) })
	w.t.Cleanup(n.crash)
	return n
}

func (n *node) serve(f http.HandlerFunc) { n.handle.Store(&f) }

// crash ends the process: its connections break, its address refuses connections, its lease stays.
func (n *node) crash() {
	n.dead.Store(true)
	_ = n.server.Close()
	n.served.Wait()
	n.Stop()
}

// session returns a session that the replica has issued.
func (n *node) session(tag string) cluster.Session {
	return cluster.Session{Home: n.dir.Self(), Tag: tag, Ends: time.Now().Add(24 * time.Hour)}
}

// get passes a request for a session to its home, as the edge does, and returns the name of the replica that served it.
func (n *node) get(s cluster.Session) (string, error) {
	for range 5 {
		place, err := n.dir.Find(context.Background(), s)
		if err != nil {
			return "", err
		}
		if place.Here() {
			return n.name, nil
		}
		w := &recorder{header: http.Header{}}
		r, _ := http.NewRequest(http.MethodGet, "http://nexus.example/mcp", nil)
		r.RemoteAddr = "192.0.2.1:1234"
		err = place.Forward(w, r)
		if errors.Is(err, cluster.ErrMoved) || errors.Is(err, cluster.ErrRefused) {
			continue
		}
		name, _, _ := strings.Cut(w.body.String(), " ")
		return name, err
	}
	return "", errors.New("the session moves all the time")
}

// asEdge lets the replica's server serve sessions as the edge does: 421 if the session is not here.
func (n *node) asEdge(s cluster.Session) {
	n.serve(func(w http.ResponseWriter, r *http.Request) {
		place, err := n.dir.Find(r.Context(), s)
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case !place.Here():
			http.Error(w, "not here", http.StatusMisdirectedRequest)
		default:
			_, _ = io.WriteString(w, n.name+" serves")
		}
	})
}

type recorder struct {
	header http.Header
	status int
	body   strings.Builder
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
func (r *recorder) Flush()                      {}
