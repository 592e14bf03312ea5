package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/internal/cluster"
	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/tests/cuts"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a replica with an HTTP server that answers with its name.
type node struct {
	*cluster.Replica
	dir    *cluster.Directory
	name   string
	host   string
	leases *cuts.State
	server *http.Server
	served sync.WaitGroup
	ended  atomic.Int32 // calls of Ended
	dead   atomic.Bool  // what it does is not seen by anybody
	log    *mcptest.Log
	handle atomic.Pointer[http.HandlerFunc]
}

// world is a cluster in this process.
type world struct {
	t     testing.TB
	net   *cuts.Network
	store shared.State
}

func newWorld(t testing.TB) *world { return &world{t, cuts.New(), shared.NewMemory()} }

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
	return w.prepareAt(name, host, w.net.Listen(host), change...)
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
	n := &node{name: name, host: host, leases: cuts.NewState(w.store), log: &mcptest.Log{}}
	config := cluster.Config{
		Leases: n.leases, Sessions: n.leases, Name: name, Address: "http://" + host, Version: "1.0.0",
		Digest: func() string { return "d" },
		Keys:   func() [][]byte { return [][]byte{clusterKey} },
		Count:  func() int { return 3 },
		Ended:  func(uint64) { n.ended.Add(1) },
		Dial:   w.net.From(host),
		Log:    slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
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
