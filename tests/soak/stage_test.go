package soak

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
	"github.com/agenticnexus/agenticnexus/tests/network"
	"github.com/agenticnexus/agenticnexus/tests/nexustest"
)

// The servers: one that is always well, one behind a network that is not, and one that is killed.
var servers = []string{"steady", "flaky", "child"}

// stage is a running router with its servers.
type stage struct {
	t      *testing.T
	ledger mcptest.Ledger
	http   *http.Client
	url    string // of the router, http://127.0.0.1:PORT
	flaky  *mcptest.Server
	net    *network.Network // before flaky
	web    []*httptest.Server
	cmd    *exec.Cmd
	log    *os.File
	done   chan struct{} // closed when the router has exited
	once   sync.Once
	faults int
}

// newStage starts everything. Its end is checked by stop.
func newStage(t *testing.T) *stage {
	s := &stage{t: t, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}, done: make(chan struct{})}
	dir := t.TempDir()
	s.ledger.Path = filepath.Join(dir, "ledger")
	steady := s.serve(&mcptest.Server{Ledger: s.ledger})
	s.flaky = &mcptest.Server{Ledger: s.ledger}
	upstream, err := url.Parse(s.serve(s.flaky))
	if err != nil {
		t.Fatal(err)
	}
	s.net = network.New(t, upstream.Host)
	s.start(dir, fmt.Sprintf(`
mcpServers:
  steady: {url: %q, timeout: 20s}
  flaky:  {url: "http://%s", timeout: 2s}
  child:  {command: %q, env: {%s: %q, GORACE: "${GORACE}"}, timeout: 5s}
execution: {retry_delay: 20ms}
rate_limit: {requests: 100000000}
`, steady, s.net.Address(), os.Args[0], asServer, s.ledger.Path))
	return s
}

func (s *stage) serve(m *mcptest.Server) string {
	web := httptest.NewServer(m)
	s.t.Cleanup(web.Close)
	s.web = append(s.web, web)
	return web.URL
}

// start starts the router.
func (s *stage) start(dir, config string) {
	s.t.Helper()
	file := filepath.Join(dir, "nexus.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		s.t.Fatal(err)
	}
	var err error
	if s.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.log.Close() })
	s.cmd = exec.Command(program, "serve", "--config", file, "--listen", "127.0.0.1:0")
	s.cmd.Env = nexustest.Env(dir)
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("starting nexus serve: %v", err)
	}
	go func() {
		_ = s.cmd.Wait() // stop reads the state
		close(s.done)
	}()
	s.t.Cleanup(s.stop)
	listening := regexp.MustCompile(`msg=listening address=(\S+)`)
	for end := time.Now().Add(settling); ; time.Sleep(10 * time.Millisecond) {
		log, err := os.ReadFile(s.log.Name())
		if err != nil {
			s.t.Fatal(err)
		}
		if found := listening.FindSubmatch(log); found != nil {
			s.url = "http://" + string(found[1])
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("the router does not listen after %v", settling)
		}
	}
}

// stop ends the router and checks how it ended.
func (s *stage) stop() {
	s.once.Do(func() {
		s.http.CloseIdleConnections()
		_ = s.cmd.Process.Signal(syscall.SIGTERM) // if it has crashed, that shows below
		select {
		case <-s.done:
		case <-time.After(2 * settling):
			_ = s.cmd.Process.Kill()
			<-s.done
			s.t.Error("the router does not end after SIGTERM")
		}
		if code := s.cmd.ProcessState.ExitCode(); code != 0 {
			s.t.Errorf("the router ended with %v, want exit status 0", s.cmd.ProcessState)
		}
	})
}

// disturb lets faults happen until ctx ends. Then the network is fine, and connections of before are gone.
func (s *stage) disturb(ctx context.Context) {
	defer s.net.Restart()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(200+rand.IntN(400)) * time.Millisecond):
		}
		s.faults++
		switch i % 7 {
		case 0: // it is restarted
			s.flaky.Forget()
			s.net.Restart()
		case 1:
			s.net.Restart(network.Toxic{Kind: "reset_peer", Attributes: `"timeout":0`})
		case 2:
			s.net.Restart(network.Toxic{Kind: "limit_data", Attributes: `"bytes":2000`})
		case 3:
			s.net.Restart(network.Toxic{Kind: "latency", Attributes: `"latency":30,"jitter":20`})
		case 4:
			s.net.Restart(network.Toxic{Kind: "timeout", Attributes: `"timeout":0`})
		case 5:
			s.net.Restart()
			s.flaky.SetTools(strings.Replace(mcptest.Tools, "Waits", fmt.Sprintf("Waits, version %d", i), 1))
		case 6:
			s.kill(ctx)
		}
	}
}

// kill kills the child, if it answers.
func (s *stage) kill(ctx context.Context) {
	c := mcptest.Client{URL: s.url + "/proxy/mcp", HTTP: s.http}
	if pid, err := strconv.Atoi(c.Call(ctx, "child__pid", "{}").Text()); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone already
	}
}

// sample is what the router says of itself.
type sample struct {
	at                              time.Duration
	memory, goroutines, descriptors float64
}

// sample reads the metrics of the router.
func (s *stage) sample(ctx context.Context) (v sample, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		return v, err
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	fields := map[string]*float64{"process_resident_memory_bytes": &v.memory, "go_goroutines": &v.goroutines, "process_open_fds": &v.descriptors}
	found := 0
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if to := fields[name]; to != nil {
			if *to, err = strconv.ParseFloat(value, 64); err != nil {
				return v, fmt.Errorf("/metrics: %w", err)
			}
			found++
		}
	}
	if err := lines.Err(); err != nil {
		return v, err
	}
	if found < len(fields) {
		return v, fmt.Errorf("/metrics: got %d of the values, want %d", found, len(fields))
	}
	return v, nil
}

// watch takes samples until it is called to return them.
func (s *stage) watch() (samples func() []sample) {
	ctx, cancel := context.WithCancel(context.Background())
	var all []sample
	done := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(done)
		for {
			v, err := s.sample(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				s.t.Error(err)
				return
			}
			v.at = time.Since(began)
			all = append(all, v)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() []sample {
		cancel()
		<-done
		return all
	}
}

// quiet closes what load leaves open on purpose, waits until the router no longer changes, and samples it.
func (s *stage) quiet() sample {
	s.t.Helper()
	var last sample
	for end := time.Now().Add(settling); ; {
		s.http.CloseIdleConnections()
		for _, web := range s.web {
			web.CloseClientConnections() // also those that the router keeps for later
		}
		time.Sleep(time.Second)
		v, err := s.sample(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if v.goroutines == last.goroutines && v.descriptors == last.descriptors || time.Now().After(end) {
			return v
		}
		last = v
	}
}
