// Package clustertest runs a cluster of routers on this machine: a NATS server, processes of the nexus program, and a
// load balancer that knows nothing of MCP.
//
// The tests and `make cluster` use it. All functions may be called concurrently unless their comments say otherwise.
package clustertest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const startTime = 20 * time.Second // for a process to be ready, or to end

// NATS is a NATS server with JetStream in this process. It keeps its address and its data when it is started again.
// Stop and Start are not called concurrently.
type NATS struct {
	Options server.Options // User and Password may be set before Start
	running *server.Server
}

// NewNATS returns a server that stores in a folder and listens on a free port of the loopback once it is started.
func NewNATS(folder string) (*NATS, error) {
	port, err := FreePort()
	return &NATS{Options: server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: folder, NoLog: true, NoSigs: true,
	}}, err
}

// Start starts the server and waits until it takes connections.
func (n *NATS) Start() error {
	options := n.Options
	s, err := server.NewServer(&options)
	if err != nil {
		return fmt.Errorf("starting NATS: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(startTime) {
		return errors.New("NATS is not ready in time")
	}
	n.running = s
	return nil
}

// Stop ends the server, if it runs.
func (n *NATS) Stop() {
	if n.running != nil {
		n.running.Shutdown()
		n.running.WaitForShutdown()
		n.running = nil
	}
}

// URL is the address of the server, without user and password.
func (n *NATS) URL() string { return "nats://127.0.0.1:" + strconv.Itoa(n.Options.Port) }

// The ports that FreePort returns lie below those that systems give to outgoing connections.
const firstPort, ports = 20_000, 10_000

var nextPort atomic.Uint32

// FreePort returns a port of the loopback that nobody listens on, and no outgoing connection takes. Processes look at
// different ports first. It is safe for concurrent use.
func FreePort() (port int, err error) {
	for range 100 {
		port = firstPort + (os.Getpid()*61+int(nextPort.Add(1)))%ports
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}

// Replica is a process of the program. Its methods are not called concurrently, but for those that only read.
type Replica struct {
	Name    string
	Address string    // HOST:PORT
	Log     io.Writer // what the process writes; safe for concurrent use if replicas share it
	Env     []string  // besides what NewReplica sets; "NAME=VALUE"
	program string
	args    []string
	dir     string
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has ended
}

// NewReplica returns a replica that works in a new folder below dir, on a free port. config is the path of the
// configuration of all replicas.
func NewReplica(program, config, name, dir string) (*Replica, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	r := &Replica{Name: name, Address: "127.0.0.1:" + strconv.Itoa(port), Log: io.Discard, program: program,
		args: []string{"serve", "--config", config}, dir: filepath.Join(dir, name)}
	return r, os.MkdirAll(r.dir, 0o700)
}

// Demo adds the demo servers, from the next Start on.
func (r *Replica) Demo() { r.args = append(r.args, "--demo") }

// URL is the base URL of the replica.
func (r *Replica) URL() string { return "http://" + r.Address }

// Start starts the process. Begun by Start, it may not be ready yet.
func (r *Replica) Start() error {
	cmd := exec.Command(r.program, r.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.dir, r.Log, r.Log
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "TMPDIR=" + r.dir, "GORACE=" + os.Getenv("GORACE"),
		"NEXUS_LISTEN=" + r.Address, "NEXUS_REPLICA=" + r.Name,
	}, r.Env...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", r.Name, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the state tells
		close(ended)
	}()
	r.cmd, r.ended = cmd, ended
	return nil
}

// Ready waits until the replica is ready. The error tells that it has ended, or that this takes too long.
func (r *Replica) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		if r.probe(ctx) {
			return nil
		}
		select {
		case <-r.ended:
			return fmt.Errorf("%s has ended: %v", r.Name, r.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready in time", r.Name)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// probe reports whether /readyz answers with 200.
func (r *Replica) probe(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL()+"/readyz", nil)
	if err != nil {
		return false
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// CPU is the time for which the process has run, without processes that it has started.
func (r *Replica) CPU() (time.Duration, error) {
	files, err := filepath.Glob("/proc/" + strconv.Itoa(r.cmd.Process.Pid) + "/task/*/schedstat")
	if err == nil && len(files) == 0 {
		err = errors.New("there is no /proc")
	}
	all := 0
	for _, file := range files {
		text, _ := os.ReadFile(file) // a thread may have ended
		ran, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.Atoi(ran)
		all += ns
	}
	return time.Duration(all), err
}

// Kill ends the process without warning, as `kill -9`, and waits for it.
func (r *Replica) Kill() {
	if r.cmd != nil {
		_ = r.cmd.Process.Kill() // it may have ended
		<-r.ended
	}
}

// Stop ends the process by SIGTERM and returns its exit code; -1 if it does not end in time.
func (r *Replica) Stop() int {
	if r.cmd == nil {
		return 0
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	return r.Wait()
}

// Wait waits for the end of the process and returns its exit code; -1 if it does not end in time.
func (r *Replica) Wait() int {
	select {
	case <-r.ended:
	case <-time.After(2 * startTime):
		r.Kill()
		return -1
	}
	return r.cmd.ProcessState.ExitCode()
}

// Balancer passes each request to the next address in turn, over a new connection. An address that refuses the
// connection is passed over. Close it after use.
type Balancer struct {
	addresses []string
	next      atomic.Uint64
	server    *http.Server
	listener  net.Listener
	work      sync.WaitGroup
}

// NewBalancer starts a balancer on a free port of the loopback.
func NewBalancer(addresses ...string) (*Balancer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &Balancer{addresses: addresses, listener: listener}
	b.server = &http.Server{ReadHeaderTimeout: startTime, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "replicas"
			r.Out.Host = r.In.Host
			// The server closes the body that it has read when the response begins, and a transport that looks whether
			// more follows would then cut the response off.
			body, _ := io.ReadAll(r.In.Body) // what was cut off is too short for its length
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
		},
		Transport:     &http.Transport{DialContext: b.dial, DisableKeepAlives: true, DisableCompression: true},
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "no replica answers: "+err.Error(), http.StatusBadGateway)
		},
	}}
	b.work.Go(func() { _ = b.server.Serve(listener) }) // until Close
	return b, nil
}

// dial connects to the next replica that takes the connection.
func (b *Balancer) dial(ctx context.Context, network, _ string) (conn net.Conn, err error) {
	first := b.next.Add(1)
	for i := range uint64(len(b.addresses)) {
		var d net.Dialer
		address := b.addresses[(first+i)%uint64(len(b.addresses))]
		if conn, err = d.DialContext(ctx, network, address); err == nil {
			return conn, nil
		}
	}
	return nil, cmp.Or(err, errors.New("there is no replica"))
}

// URL is the base URL of the balancer.
func (b *Balancer) URL() string { return "http://" + b.listener.Addr().String() }

// Close ends the balancer and its connections.
func (b *Balancer) Close() {
	_ = b.server.Close() // nothing is left to do about it
	b.work.Wait()
}
