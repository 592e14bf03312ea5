package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/telemetry"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

const (
	subject   = "subject" // the server that fails
	neighbour = "other"   // the one that does not

	// ample is the time limit of calls that need none: whatever their outcome is, it comes before.
	ample = 20 * time.Second
	// short is the time limit of calls whose outcome is that they took too long.
	short = 500 * time.Millisecond
	// slack is what may pass between the time limit of a call and its outcome, on a loaded machine.
	slack = 20 * time.Second
)

// world is what one run of a fault happens in.
type world struct {
	t       *testing.T
	ledger  mcptest.Ledger
	http    *http.Client
	log     output
	app     *app.App
	base    string          // of the router, http://127.0.0.1:PORT
	client  *mcptest.Client // of the proxy surface, in a session
	broken  atomic.Bool     // see breaking
	slowest time.Duration
	unvisit func() // stops the client of the neighbour

	mu   sync.Mutex
	keys map[string]string // of writes, and their outcomes
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, keys: map[string]string{}, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	w.ledger.Path = filepath.Join(t.TempDir(), "ledger")
	t.Cleanup(w.checkWrites)
	t.Cleanup(w.http.CloseIdleConnections)
	return w
}

// start starts a router with the servers and a neighbour, and a client of it.
func (w *world) start(change func(*app.Options), servers ...downstream.ServerConfig) {
	w.t.Helper()
	opts := app.Options{Config: config.Default(), Version: "1"}
	opts.Config.Listen, opts.Config.State = "127.0.0.1:0", w.t.TempDir()
	opts.Config.Execution.RetryDelay = 10 * time.Millisecond
	opts.Config.Proxy.Timeout = ample
	opts.Config.Limits.ResultBytes = 8 << 20
	opts.Config.Servers = append(servers, w.serve(neighbour, &mcptest.Server{}))
	if change != nil {
		change(&opts)
	}
	var err error
	if opts.Logger, _, err = telemetry.NewLogger(telemetry.LogConfig{Level: "info", Format: "text"}, &w.log, nil); err != nil {
		w.t.Fatal(err)
	}
	if w.app, err = app.New(w.t.Context(), opts); err == nil {
		err = w.app.Listen(w.t.Context())
	}
	if err != nil {
		w.t.Fatalf("starting the router: %v", err)
	}
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), slack)
		defer cancel()
		if err := w.app.Stop(ctx); err != nil {
			w.t.Errorf("Stop: got %v, want nil", err)
		}
	})
	w.reach("http://" + w.app.Addr())
}

// reach makes a router that runs the world's own: it gets a client, and the neighbour another.
func (w *world) reach(base string) {
	w.t.Helper()
	w.base = base
	w.client = w.dial()
	w.unvisit = w.visit()
	w.t.Cleanup(w.unvisit)
}

func (w *world) dial() *mcptest.Client {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), slack)
	defer cancel()
	c, err := mcptest.Dial(ctx, w.http, w.base+"/proxy/mcp")
	if err != nil {
		w.t.Fatalf("connecting to the router: %v", err)
	}
	return c
}

// visit has a client of its own call the neighbour again and again until stop is called.
func (w *world) visit() (stop func()) {
	c := w.dial()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	calls := 0
	wg.Go(func() {
		pause := 5 * time.Millisecond
		for again := true; again; calls++ {
			if r := w.within(ample, func(ctx context.Context) mcptest.Reply { return c.Call(ctx, neighbour+"__echo", `{}`) }); r.Outcome() != "result" {
				w.t.Errorf("call %d of the neighbour: got %s %s (%v), want a result", calls, r.Outcome(), r.Error, r.Err)
				return
			}
			select {
			case <-ctx.Done():
				again = false
			case <-time.After(pause):
				pause = min(pause+pause/10, 200*time.Millisecond) // what lasts long is looked at less often
			}
		}
	})
	return func() {
		cancel() // it may be called again
		wg.Wait()
	}
}

// within does a request whose time limit is known; later than that, and some, there is no answer.
func (w *world) within(limit time.Duration, do func(ctx context.Context) mcptest.Reply) mcptest.Reply {
	ctx, cancel := context.WithTimeout(context.Background(), limit+slack)
	defer cancel()
	return do(ctx)
}

// call calls a tool of the subject and notes how long the outcome took.
func (w *world) call(tool, arguments string) mcptest.Reply {
	began := time.Now()
	r := w.within(ample, func(ctx context.Context) mcptest.Reply { return w.client.Call(ctx, subject+"__"+tool, arguments) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slowest = max(w.slowest, time.Since(began))
	return r
}

// write calls a tool that writes a new key.
func (w *world) write(tool string, ms int) mcptest.Reply {
	key := w.key()
	r := w.call(tool, fmt.Sprintf(`{"key":%q,"ms":%d}`, key, ms))
	w.done(key, r)
	return r
}

// list lists the tools.
func (w *world) list(ctx context.Context) mcptest.Reply { return w.client.Do(ctx, "tools/list", "{}") }

// key returns a new key, which is not to be written twice.
func (w *world) key() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := "key" + strconv.Itoa(len(w.keys))
	w.keys[key] = ""
	return key
}

// done notes what came of the write of a key.
func (w *world) done(key string, r mcptest.Reply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys[key] = r.Outcome()
}

// begun returns a function that tells whether a call under a key has reached its server.
func (w *world) begun(key string) func() bool {
	return func() bool {
		writes, err := w.ledger.Writes()
		if err != nil {
			w.t.Error(err)
		}
		return writes[key]+writes[mcptest.Begun(key)] > 0
	}
}

// ready waits until the subject answers.
func (w *world) ready() {
	w.t.Helper()
	w.wait("the subject to answer", func() bool {
		return w.within(ample, func(ctx context.Context) mcptest.Reply { return w.client.Call(ctx, subject+"__echo", `{}`) }).Outcome() == "result"
	})
}

// wait polls until done says so.
func (w *world) wait(what string, done func() bool) {
	w.t.Helper()
	for end := time.Now().Add(ample); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("waited %v for %s\n%s", ample, what, w.log.tail())
		}
	}
}

// checkWrites fails the test if a key was written twice, not at all although a result said so, or although
// the outcome was one that says that it was not.
func (w *world) checkWrites() {
	writes, err := w.ledger.Writes()
	if err != nil {
		w.t.Error(err)
	}
	for key, outcome := range w.keys {
		least, most := 0, 1
		switch outcome {
		case "result":
			least = 1
		case "-32000 unavailable", "-32000 disconnected", "HTTP 503 -32000 unavailable":
			most = 0
		}
		if n := writes[key]; n < least || n > most {
			w.t.Errorf("writes of %s, whose outcome was %q: got %d, want %d to %d", key, outcome, n, least, most)
		}
	}
}

// serve serves s over streamable HTTP.
func (w *world) serve(name string, s *mcptest.Server) downstream.ServerConfig {
	s.Ledger = w.ledger
	srv := httptest.NewServer(s)
	w.t.Cleanup(srv.Close)
	return downstream.ServerConfig{Name: name, Type: downstream.TransportHTTP, URL: srv.URL}
}

// serveSSE serves s over HTTP+SSE.
func (w *world) serveSSE(name string, s *mcptest.Server) downstream.ServerConfig {
	s.Ledger = w.ledger
	srv := httptest.NewServer(http.HandlerFunc(s.ServeSSE))
	w.t.Cleanup(srv.Close)
	return downstream.ServerConfig{Name: name, Type: downstream.TransportSSE, URL: srv.URL + "/sse"}
}

// child configures a server that is a process of the test binary and misbehaves in the named way.
func (w *world) child(manner string) downstream.ServerConfig {
	return downstream.ServerConfig{
		Name: subject, Type: downstream.TransportStdio, Command: os.Args[0],
		Env: map[string]redact.Secret{
			asServer: redact.Secret(manner), ledgerVar: redact.Secret(w.ledger.Path),
			"GORACE": redact.Secret(os.Getenv("GORACE")), // else it takes a second to end, where the race detector is on
		},
	}
}

// breaking makes s deal with tool calls as break says while the world is broken. Writes are entered first.
func (w *world) breaking(s *mcptest.Server, misbehave func(rw http.ResponseWriter, r *http.Request, m mcptest.Message)) *mcptest.Server {
	s.OnHTTP = func(rw http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if m.Method != "tools/call" || !w.broken.Load() {
			return false
		}
		if err := w.ledger.Add(m.Key()); err != nil {
			w.t.Error(err)
		}
		misbehave(rw, r, m)
		return true
	}
	return s
}

// output keeps the log of a router.
type output struct{ mcptest.Log }

// tail returns the last lines.
func (o *output) tail() string {
	const enough = 4 << 10
	s := o.String()
	return s[max(0, len(s)-enough):]
}
