package faults

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

var full = flag.Bool("attacks", false, "run the attacks with their full sizes")

const (
	victims    = 9
	mostMemory = 384 << 20 // of the router, during an attack
	mib        = 1 << 20
)

// attack is what one caller does to a router. It goes on until ctx ends.
type attack struct {
	name string
	run  func(ctx context.Context, a *attacker)
}

var attacks = []attack{
	{"an SSE stream that is not read", unreadSSE},
	{"a GET stream that is not read", unreadGET},
	{"large JSON results that are not read", func(ctx context.Context, a *attacker) {
		a.flood(ctx, a.size(20, 100), func() { a.send(ctx, a.call("big", 64*mib), nil) })
	}},
	{"batches of large results", func(ctx context.Context, a *attacker) {
		calls := slices.Repeat([]string{a.call("big", mib)}, a.size(200, 1000))
		for i := range calls {
			calls[i] = strings.Replace(calls[i], `"id":1`, `"id":`+strconv.Itoa(i+1), 1)
		}
		a.flood(ctx, 4, func() { a.send(ctx, "["+strings.Join(calls, ",")+"]", nil) })
	}},
	{"notifications of 4 MiB", func(ctx context.Context, a *attacker) {
		note := `{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"` + strings.Repeat("x", 4*mib-200) + `"}}`
		server := a.base + "/servers/loud/mcp" // the proxy surface sends them to the server of the others, too
		session := a.openAt(ctx, server, "x")
		a.flood(ctx, 8, func() { a.postTo(ctx, server, note, session) })
	}},
	{"uploads that stall", func(ctx context.Context, a *attacker) {
		a.flood(ctx, a.size(300, 2000), func() { a.upload(ctx, 4*mib, mib/4) })
	}},
	{"subscriptions with large params", func(ctx context.Context, a *attacker) {
		session, n := a.open(ctx, "x"), atomic.Int64{}
		a.flood(ctx, 8, func() {
			a.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"loud+x:%[1]d","_meta":{"x":%q}}}`,
				n.Add(1), strings.Repeat("x", a.size(64<<10, mib))), session)
		})
	}},
	{quick, func(ctx context.Context, a *attacker) {
		a.flood(ctx, a.size(600, 6000), func() { a.post(ctx, a.call("wait", 0), nil) })
	}},
	{"a flood of initialize", func(ctx context.Context, a *attacker) {
		a.flood(ctx, 8, func() { a.open(ctx, strings.Repeat("x", 7<<10)) })
	}},
	{justLoad, func(ctx context.Context, a *attacker) {
		a.count(http.StatusOK)
		for range 2 { // each on a core of its own
			go func() {
				for ctx.Err() == nil {
				}
			}()
		}
		<-ctx.Done()
	}},
}

const (
	// justLoad is no attack. Its ratio is what the load of the machine alone does to the others, as a baseline.
	justLoad = "a process that only computes"
	// quick is the attack that runs without -attacks.
	quick = "as many requests as the router tracks"
)

// TestAttacks has one of ten callers attack a router while the others call a tool. None of their calls may fail, and
// the router's memory is bounded. The ratio of their 99th percentile to that without an attack is logged.
func TestAttacks(t *testing.T) {
	if os.Getenv(asFault) != "" {
		t.Skip("this is the process of a fault")
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("memory is read from /proc")
	}
	for _, at := range attacks {
		t.Run(at.name, func(t *testing.T) {
			if at.name != quick && !*full {
				t.Skip("make attacks runs all attacks")
			}
			newAttacked(t, at).suffer()
		})
	}
}

// attacked is a router with ten callers.
type attacked struct {
	t    *testing.T
	pid  int
	base string

	attacker *attackerProcess
}

// key is the API key of a caller.
func key(caller int) string { return fmt.Sprintf("the key of caller %d", caller) }

// newAttacked starts a router before a tool server.
func newAttacked(t *testing.T, at attack) *attacked {
	tools := httptest.NewServer(&mcptest.Server{OnHTTP: loud})
	t.Cleanup(func() { tools.CloseClientConnections(); tools.Close() })
	attacker := startAttacker(t, at)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	var config strings.Builder
	fmt.Fprintf(&config, "listen: %s\nlog: {level: error}\nmcpServers: {tools: {url: %q}, loud: {url: %q}}\nauth:\n  api_keys:\n",
		addr, tools.URL, attacker.tools)
	for i := range victims + 1 {
		fmt.Fprintf(&config, "  - {name: c%d, sha256: %x}\n", i, sha256.Sum256([]byte(key(i))))
	}
	if !*full {
		config.WriteString("limits: {tracked_requests: 500, sessions: 300}\n")
	}
	file := filepath.Join(t.TempDir(), "nexus.yaml")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Getenv(binaryVar), "serve", "--config", file)
	cmd.Stderr = os.Stderr
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOMEMLIMIT=") || strings.HasPrefix(v, "GOGC=") })
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(slack, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		_ = cmd.Wait() // how it ends is not what is tested
	})
	w := &attacked{t: t, pid: cmd.Process.Pid, base: "http://" + addr, attacker: attacker}
	for end := time.Now().Add(ample); ; time.Sleep(5 * time.Millisecond) {
		if resp, err := http.Get(w.base + "/readyz"); err == nil {
			resp.Body.Close()
			return w
		}
		if time.Now().After(end) {
			t.Fatalf("waited %v for the router to get ready", ample)
		}
	}
}

// loud serves the tools that attackers call: big answers with as many bytes as ms says, noise sends that in
// messages before it answers.
func loud(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
	c := m.Call()
	var args struct {
		MS int `json:"ms"`
	}
	switch {
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", "one")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, m.Response(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"loud","version":"1"}}`))
		return true
	case m.Method == "tools/list":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, m.Response(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}},`+
			`{"name":"big","inputSchema":{"type":"object"}},{"name":"noise","inputSchema":{"type":"object"}},{"name":"wait","inputSchema":{"type":"object"}}]}`))
		return true
	case m.Method == "resources/subscribe":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, m.Response(`{}`))
		return true
	case c.Name == "big", c.Name == "noise":
		_, _ = fmt.Sscanf(string(c.Arguments), `{"ms":%d}`, &args.MS)
	case m.Method == "tools/call" && c.Name == "wait":
		<-r.Context().Done()
		return true
	case m.Method == "tools/call":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, m.Response(`{"content":[]}`))
		return true
	case m.Method == "":
		w.WriteHeader(http.StatusMethodNotAllowed)
		return true
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return true
	default:
		return false
	}
	piece := strings.Repeat("x", 64<<10)
	if c.Name == "noise" {
		mcptest.BeginEvents(w)
		for sent := 0; sent < args.MS; sent += len(piece) {
			mcptest.WriteEvent(w, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"`+piece+`"}}`)
		}
		mcptest.WriteEvent(w, m.Response(`{"content":[]}`))
		return true
	}
	head, tail := m.Response(`{"content":[{"type":"text","text":"`), `"}]}}`
	head = strings.TrimSuffix(head, "}")
	size := args.MS - 1024
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(head)+size+len(tail)))
	_, _ = io.WriteString(w, head)
	for left := size; left > 0; left -= len(piece) {
		if _, err := io.WriteString(w, piece[:min(left, len(piece))]); err != nil {
			return true
		}
	}
	_, _ = io.WriteString(w, tail)
	return true
}

// always is closed.
var always = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// suffer compares the victims' calls without and with an attack.
func (w *attacked) suffer() {
	quiet, loud := time.Second/2, 2*time.Second
	if *full {
		quiet, loud = 5*time.Second, 10*time.Second
	}
	clients := make([]*mcptest.Client, victims)
	for i := range clients {
		clients[i] = w.dial(i + 1)
	}
	before := w.visit(clients, quiet, always)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	w.attacker.begin(w.base)
	var peak atomic.Int64
	wg.Go(func() {
		for ctx.Err() == nil {
			peak.Store(max(peak.Load(), w.memory()))
			time.Sleep(20 * time.Millisecond)
		}
	})
	during := w.visit(clients, loud, w.attacker.begun)
	cancel()
	wg.Wait()
	sent, refused := w.attacker.end()
	w.t.Logf("p99 of the others %v, %v without the attack: %.1f ×; peak %d MiB; %d requests, %d refused", during.Round(10*time.Microsecond),
		before.Round(10*time.Microsecond), during.Seconds()/before.Seconds(), peak.Load()/mib, sent, refused)
	if peak.Load() > mostMemory && !strings.Contains(os.Getenv("GOFLAGS"), "-race") {
		w.t.Errorf("got %d MiB resident, want %d at most", peak.Load()/mib, mostMemory/mib)
	}
	if sent == 0 {
		w.t.Error("got no request of the attacker through, want an attack")
	}
}

// clientOf returns the HTTP client of a caller.
func clientOf(caller int) *http.Client {
	return &http.Client{Transport: mcptest.WithKey(&http.Transport{MaxIdleConnsPerHost: 100}, key(caller))}
}

func (w *attacked) dial(i int) *mcptest.Client {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), slack)
	defer cancel()
	client := clientOf(i)
	w.t.Cleanup(client.CloseIdleConnections)
	c, err := mcptest.Dial(ctx, client, w.base+"/proxy/mcp")
	if err != nil {
		w.t.Fatalf("connecting to the router: %v", err)
	}
	return c
}

// visit has all victims call for a time, and returns the 99th percentile of how long a call took. They go on until
// until is closed, for at most ample: on a busy machine, an attacker gets the processor late.
func (w *attacked) visit(clients []*mcptest.Client, d time.Duration, until <-chan struct{}) time.Duration {
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	started := time.Now()
	goesOn := func() bool {
		took := time.Since(started)
		return took < d || took < d+ample && !closed(until)
	}
	for i, c := range clients {
		wg.Go(func() {
			for calls := 0; calls == 0 || goesOn(); calls++ {
				began := time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), ample+slack)
				r := c.Call(ctx, "tools__echo", `{}`)
				cancel()
				if r.Outcome() != "result" {
					w.t.Errorf("call %d of caller %d: got %s %s (%v), want a result", calls, i+1, r.Outcome(), r.Error, r.Err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	if len(took) == 0 {
		return 1
	}
	return took[len(took)*99/100]
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// memory returns the resident memory of the router.
func (w *attacked) memory() int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.pid))
	if err != nil {
		return 0 // it has ended
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kib int64
	_, _ = fmt.Sscan(rest, &kib)
	return kib << 10
}
