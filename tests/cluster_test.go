package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/clustertest"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// replicated is a cluster with the one server "work".
type replicated struct {
	t        *testing.T
	nats     *clustertest.NATS
	dir      string
	config   string
	replicas []*clustertest.Replica
	logs     []*mcptest.Log
	balancer *clustertest.Balancer
	front    string // URL of the balancer that load goes through
	work     *mcptest.Server
	ledger   mcptest.Ledger
	http     *http.Client // with a new connection for each request
}

// cluster starts n replicas, with more lines in their configuration. The end of the test ends them; those that still run are to end well.
func cluster(t *testing.T, n int, more ...string) *replicated {
	t.Helper()
	return clusterOf(t, n, "", more...)
}

// clusterOf is like cluster, with a configuration of the server.
func clusterOf(t *testing.T, n int, server string, more ...string) *replicated {
	t.Helper()
	dir := t.TempDir()
	c := &replicated{t: t, dir: dir, config: filepath.Join(dir, "nexus.yaml"), ledger: mcptest.Ledger{Path: filepath.Join(dir, "ledger")},
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	c.work = &mcptest.Server{Ledger: c.ledger}
	work := httptest.NewServer(c.work)
	t.Cleanup(work.Close)
	c.nats = c.startNATS()
	if server == "" {
		server = fmt.Sprintf("{url: %q}", work.URL+"/mcp")
	}
	c.configure(c.nats.URL(), server, more...)
	var addresses []string
	for i := range n {
		r := c.replica(fmt.Sprintf("r%d", i+1))
		c.start(r)
		c.replicas, addresses = append(c.replicas, r), append(addresses, r.Address)
	}
	var err error
	if c.balancer, err = clustertest.NewBalancer(addresses...); err != nil {
		t.Fatal(err)
	}
	c.front = c.balancer.URL()
	t.Cleanup(c.balancer.Close)
	return c
}

func (c *replicated) startNATS() *clustertest.NATS {
	c.t.Helper()
	nats, err := clustertest.NewNATS(filepath.Join(c.dir, "nats"))
	if err == nil {
		err = nats.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(nats.Stop)
	return nats
}

// configure writes the configuration of the replicas that start from now on.
func (c *replicated) configure(nats, server string, more ...string) {
	c.t.Helper()
	text := fmt.Sprintf("log: {level: debug}\ncluster: {nats: {url: %q}}\nmcpServers: {work: %s}\n", nats, server) +
		strings.Join(more, "\n")
	if err := os.WriteFile(c.config, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// edit replaces a part of the configuration of the replicas that start from now on.
func (c *replicated) edit(part, by string) {
	c.t.Helper()
	text, err := os.ReadFile(c.config)
	if err == nil {
		err = os.WriteFile(c.config, bytes.ReplaceAll(text, []byte(part), []byte(by)), 0o600)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// replica returns a replica that is not started; the test's end shows its log if the test has failed.
func (c *replicated) replica(name string) *clustertest.Replica {
	c.t.Helper()
	r, err := clustertest.NewReplica(program, c.config, name, c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	log := &mcptest.Log{}
	r.Log = log
	c.logs = append(c.logs, log)
	c.t.Cleanup(func() {
		r.Kill()
		if c.t.Failed() {
			c.t.Logf("log of %s:\n%s", name, log)
		}
	})
	return r
}

func (c *replicated) start(r *clustertest.Replica) {
	c.t.Helper()
	err := r.Start()
	if err == nil {
		err = r.Ready(c.t.Context())
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// at returns a client of a replica with the session of another client.
func (c *replicated) at(r *clustertest.Replica, of *mcptest.Client) *mcptest.Client {
	return &mcptest.Client{URL: r.URL() + "/proxy/mcp", HTTP: c.http, Session: of.Session}
}

// dial opens a session at a replica.
func (c *replicated) dial(r *clustertest.Replica) *mcptest.Client {
	c.t.Helper()
	client, err := mcptest.Dial(c.t.Context(), c.http, r.URL()+"/proxy/mcp")
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// echo calls a tool that reads, and returns the outcome in a few words.
func (c *replicated) echo(client *mcptest.Client) string {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	return client.Call(ctx, "work__echo", `{"key":"a"}`).Outcome()
}

func (c *replicated) want(client *mcptest.Client, want string) {
	c.t.Helper()
	if got := c.echo(client); got != want {
		c.t.Errorf("a call at %s: got %s, want %s", client.URL, got, want)
	}
}

// nexus runs the program with arguments and returns its output and exit code.
func (c *replicated) nexus(args ...string) (string, int) {
	c.t.Helper()
	cmd := command(c.dir, args...)
	out, _ := cmd.CombinedOutput() // the exit code tells
	return string(out), cmd.ProcessState.ExitCode()
}

// state is what nexus cluster status says.
type clusterState struct {
	Name, Replica, NATS string
	Replicas            []struct {
		Name, Address, Version string
		Sessions               int
		Draining               bool
	}
}

func (c *replicated) status(r *clustertest.Replica) (s clusterState, code int) {
	c.t.Helper()
	out, code := c.nexus("cluster", "status", "--json", "--remote", r.URL())
	if err := json.Unmarshal([]byte(out), &s); err != nil && code == 0 {
		c.t.Fatalf("cluster status: got %q", out)
	}
	return s, code
}

// A session is served by every replica, and moves when its home dies.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := cluster(t, 3)
	session := c.dial(c.replicas[0])
	other := c.dial(c.replicas[1])
	for _, r := range c.replicas {
		c.want(c.at(r, session), "result")
	}
	s, code := c.status(c.replicas[2])
	if code != 0 || s.Name != "agenticnexus" || s.Replica != "r3" || s.NATS != "connected" || len(s.Replicas) != 3 ||
		s.Replicas[0].Name != "r1" || s.Replicas[0].Address != c.replicas[0].URL() {
		t.Errorf("status: got %+v and exit code %d, want three replicas", s, code)
	}
	if out, code := c.nexus("cluster", "status", "--remote", c.balancer.URL()); code != 0 || strings.Count(out, "\n") != 4 || !strings.Contains(out, "NATS connected") {
		t.Errorf("status: got %q, want a line and three replicas", out)
	}

	// DELETE at another replica ends the session everywhere.
	gone := c.dial(c.replicas[2])
	if err := c.at(c.replicas[0], gone).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range c.replicas {
		c.want(c.at(r, gone), "HTTP 404 -32600")
	}

	// The home dies: others adopt its session within 2 s, and nothing runs twice.
	c.replicas[0].Kill()
	began := time.Now()
	if got := c.echo(c.at(c.replicas[1], session)); got != "result" && got != "-32000 outcome_unknown" { // it was sent before the end was seen
		t.Errorf("got %s, want result", got)
	}
	c.want(c.at(c.replicas[1], session), "result")
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the session was adopted after %v, want at most 2 s", took)
	}
	for _, r := range c.replicas[1:] {
		c.want(c.at(r, session), "result")
		c.want(c.at(r, other), "result")
		c.want(c.at(r, gone), "HTTP 404 -32600")
	}

	// It comes back under its name and address, and serves the session of its predecessor.
	c.start(c.replicas[0])
	c.want(c.at(c.replicas[0], session), "result")
}

// A call that was at the home when it died has an unknown outcome, and is not repeated.
func TestCluster_CallInFlight(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2)
	session := c.dial(c.replicas[0])
	outcome := make(chan string, 1)
	go func() {
		outcome <- c.at(c.replicas[1], session).Call(context.WithoutCancel(t.Context()), "work__slow", `{"key":"once","ms":20000}`).Outcome()
	}()
	mcptest.Eventually(t, "the write", func() bool { writes, err := c.ledger.Writes(); return err == nil && writes["once"] == 1 })
	c.replicas[0].Kill()
	if got := <-outcome; got != "-32000 outcome_unknown" {
		t.Errorf("got %s, want -32000 outcome_unknown", got)
	}
	c.want(c.at(c.replicas[1], session), "result")
	if writes, err := c.ledger.Writes(); err != nil || writes["once"] != 1 {
		t.Errorf("got %v writes (%v), want one", writes, err)
	}
}

// An operator empties a replica, which stays up and unready.
func TestCluster_Drain(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2)
	session := c.dial(c.replicas[0])
	if out, code := c.nexus("cluster", "drain", "r9", "--remote", c.replicas[1].URL()); code != 1 || !strings.Contains(out, "no replica has the name r9; there are r1, r2") {
		t.Errorf("drain r9: got %q and exit code %d", out, code)
	}
	if out, code := c.nexus("cluster", "drain", "r1", "--remote", c.replicas[1].URL()); code != 0 {
		t.Fatalf("drain r1: got %q and exit code %d", out, code)
	}
	mcptest.Eventually(t, "r1 to be empty", func() bool {
		s, code := c.status(c.replicas[1])
		return code == 0 && len(s.Replicas) == 2 && s.Replicas[0].Draining && s.Replicas[0].Sessions == 0
	})
	if out, code := c.nexus("cluster", "drain", "r2", "--remote", c.replicas[0].URL()); code != 1 || !strings.Contains(out, "r2 is the last replica that takes sessions") {
		t.Errorf("drain r2: got %q and exit code %d, want it to be refused", out, code)
	}
	response, err := c.http.Get(c.replicas[0].URL() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("readyz: got %d, want 503", response.StatusCode)
	}
	for _, r := range c.replicas {
		c.want(c.at(r, session), "result")
	}
}

// Without NATS a replica serves its own sessions; those of others have to wait.
func TestCluster_WithoutNATS(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2)
	mine, others := c.dial(c.replicas[0]), c.dial(c.replicas[1])
	c.want(c.at(c.replicas[0], others), "result")
	c.nats.Stop()
	mcptest.Eventually(t, "the loss to be noticed", func() bool {
		s, code := c.status(c.replicas[0])
		return code == 3 && s.NATS == "disconnected"
	})
	c.want(c.at(c.replicas[0], mine), "result")
	mcptest.Eventually(t, "503 for the session of the other", func() bool {
		return strings.HasPrefix(c.echo(c.at(c.replicas[0], others)), "HTTP 503 -32000 unavailable")
	})
	c.want(c.dial(c.replicas[0]), "result") // a new session
	c.want(c.at(c.replicas[0], mine), "result")
	if err := c.replicas[0].Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.nats.Start(); err != nil {
		t.Fatal(err)
	}
	mcptest.Eventually(t, "all sessions to be served again everywhere", func() bool {
		return c.echo(c.at(c.replicas[0], others)) == "result" && c.echo(c.at(c.replicas[1], mine)) == "result"
	})
}

// Replicas count the calls of a caller together: at most the limit and one call per replica are accepted.
func TestCluster_RateLimit(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2, "rate_limit: {requests: 4, per: 1h, tools: [work__echo]}")
	sessions := []*mcptest.Client{c.dial(c.replicas[0]), c.dial(c.replicas[1])}
	accepted := 0
	for i := range 16 {
		if c.echo(sessions[i%2]) == "result" {
			accepted++
		}
	}
	if accepted < 4 || accepted > 6 {
		t.Errorf("%d calls were accepted, want 4 to 6", accepted)
	}
}

// A session of every era is served by a replica that is not its home.
func TestCluster_Eras(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2)
	for _, era := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		post := func(r *clustertest.Replica, session, version, body string) (*http.Response, string) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL()+"/proxy/mcp", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Accept", "application/json, text/event-stream")
			if session != "" {
				request.Header.Set("Mcp-Session-Id", session)
			}
			if version != "" {
				request.Header.Set("MCP-Protocol-Version", version)
			}
			response, err := c.http.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			return response, string(text)
		}
		hello, _ := post(c.replicas[0], "", "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+era+
			`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		session := hello.Header.Get("Mcp-Session-Id")
		post(c.replicas[1], session, era, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		for _, r := range c.replicas {
			if resp, text := post(r, session, era, `{"jsonrpc":"2.0","id":"x","method":"tools/list"}`); resp.StatusCode != 200 || !strings.Contains(text, `"work__echo"`) {
				t.Errorf("%s at %s: got %d %.200s, want the tools", era, r.Name, resp.StatusCode, text)
			}
		}
	}
	// HTTP+SSE: the messages of a stream arrive at the other replica.
	stream, err := c.http.Get(c.replicas[0].URL() + "/proxy/sse")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	events := make(chan string, 8)
	go func() { _ = mcptest.Events(stream.Body, func(_, data string) { events <- data }) }() // until the body is closed
	path := <-events
	response, err := c.http.Post(c.replicas[1].URL()+path, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	select {
	case got := <-events:
		if response.StatusCode != http.StatusAccepted || !strings.Contains(got, `"id":7`) {
			t.Errorf("HTTP+SSE: got %d and %s, want the response to 7", response.StatusCode, got)
		}
	case <-time.After(patience):
		t.Errorf("HTTP+SSE: got %d and no response", response.StatusCode)
	}
}

// A replica that ends serves its sessions until it has handed them over: also requests that come while a long call of
// the same session is in flight.
func TestCluster_EndsWithALongCall(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2)
	session := c.dial(c.replicas[0])
	long := make(chan string, 1)
	go func() {
		long <- c.at(c.replicas[1], session).DoAs(context.WithoutCancel(t.Context()), `"long"`, "tools/call",
			`{"name":"work__slow","arguments":{"key":"long","ms":8000}}`).Outcome()
	}()
	mcptest.Eventually(t, "the long call", func() bool { writes, err := c.ledger.Writes(); return err == nil && writes["long"] == 1 })
	ended := make(chan int, 1)
	go func() { ended <- c.replicas[0].Stop() }()
	at := c.at(c.replicas[1], session)
	for n := 0; ; n++ {
		c.want(at, "result")
		select {
		case code := <-ended:
			if got := <-long; code != 0 || got != "result" || n == 0 {
				t.Errorf("got exit code %d, %s for the long call and %d others, want 0, result and some", code, got, n)
			}
			c.want(at, "result")
			return
		default:
		}
	}
}
