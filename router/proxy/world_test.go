package proxy_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/secret"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/router/proxy"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// asChild makes the test binary a downstream server on stdio.
const asChild = "PROXY_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// world is the transparent face with real parts on both sides: an edge on loopback before it and a manager
// with scripted servers behind it.
type world struct {
	t         testing.TB
	config    proxy.Config
	manager   *downstream.Manager
	proxy     *proxy.Proxy
	all       *proxy.Surface
	edge      *edge.Edge
	http      *httptest.Server
	url       string
	transport *http.Transport
	logs      *mcptest.Log
	once      sync.Once
	stopping  atomic.Bool
}

// setup is what a world is made of.
type setup struct {
	config     proxy.Config
	downstream downstream.Options
	edge       edge.Options
	search     proxy.Search
	quiet      bool // log nothing
	returns    bool // tell clients of servers that are back
}

// place is a server at its place in the configuration.
type place struct {
	name      string
	transport string // http, sse or pipe
	server    *server
	session   string
}

const (
	overHTTP = "http"
	overSSE  = "sse"
	overPipe = "pipe"
)

// newWorld serves the servers at /proxy/mcp and each at /servers/{name}/mcp.
func newWorld(t testing.TB, change func(*setup), places ...place) *world {
	t.Helper()
	s := setup{config: proxy.Default()}
	s.downstream.Execution.RetryDelay = 5 * time.Millisecond
	s.downstream.Embedded = map[string]downstream.DialFunc{}
	for _, p := range places {
		c := downstream.ServerConfig{Name: p.name, Session: p.session}
		switch p.transport {
		case overPipe:
			c.Type = downstream.TransportStdio
			s.downstream.Embedded[p.name] = p.server.pipe
			t.Cleanup(func() { p.server.restart(); p.server.wg.Wait() })
		case overSSE:
			c.Type, c.URL = downstream.TransportSSE, p.server.listen(t)+"/sse"
		default:
			c.Type, c.URL = downstream.TransportHTTP, p.server.listen(t)
		}
		s.downstream.Servers = append(s.downstream.Servers, c)
	}
	if change != nil {
		change(&s)
	}
	w := &world{t: t, config: s.config, logs: &mcptest.Log{}, transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	logger := slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if s.quiet {
		logger = slog.New(slog.DiscardHandler)
	}
	s.downstream.Logger, s.edge.Logger = logger, logger
	s.downstream.ListDeadline, s.downstream.ProxyTimeout = s.config.ListDeadline, s.config.Timeout
	s.downstream.OnMessage = func(m downstream.Message) { w.proxy.Deliver(m) }
	s.downstream.OnRequest = func(ctx context.Context, server, client string, q downstream.ServerRequest) (result, err []byte) {
		return w.proxy.Ask(ctx, server, client, q)
	}
	if s.returns {
		s.downstream.OnReturn = func(server string) { w.proxy.ServersChanged(downstream.Changes{Changed: []string{server}}) }
	}
	w.manager = downstream.New(s.downstream)
	w.proxy = proxy.New(proxy.Options{
		Config: s.config, Servers: w.manager, Name: "agenticnexus-router", Version: "1.2.3", Search: s.search, Fail: router.Fail, Logger: logger,
	})
	w.edge = edge.New(s.edge)
	w.proxy.Attach(w.edge)
	w.all = w.proxy.All()
	mux := http.NewServeMux()
	mux.Handle("/proxy/mcp", w.edge.Streamable(w.all, nil))
	for _, name := range w.manager.Servers() {
		mux.Handle("/servers/"+name+"/mcp", w.edge.Streamable(w.proxy.Single(name), nil))
	}
	w.http = httptest.NewServer(mux)
	w.url = w.http.URL
	w.manager.Start()
	t.Cleanup(w.stop)
	return w
}

// wait waits until the servers are connected.
func (w *world) wait(servers ...string) {
	w.t.Helper()
	for _, name := range servers {
		mcptest.Eventually(w.t, name+" is connected", func() bool { return w.manager.Status()[name].Status == downstream.StateConnected })
	}
}

const proxyPath = "/proxy/mcp"

// stop ends the world as the app does. It may be called again.
func (w *world) stop() {
	w.once.Do(func() {
		w.stopping.Store(true)
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if err := w.edge.Stop(ctx); err != nil {
			w.t.Errorf("Stop: got %v, want nil", err)
		}
		w.transport.CloseIdleConnections()
		w.http.CloseClientConnections()
		w.http.Close()
		w.manager.Stop()
	})
}

// restricted are keys of callers that may use only some servers or tools.
func restricted(t testing.TB, keys ...auth.KeyConfig) *auth.Keys {
	t.Helper()
	k, err := auth.New(auth.Config{APIKeys: keys}, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// keyOf is a key without limits.
func keyOf(name string) auth.KeyConfig {
	return auth.KeyConfig{Name: name, Key: secret.String("secret-" + name)}
}

// searched answers every search with {}.
type searched struct{ found }

func (*searched) ServeSearch(_ context.Context, x *edge.Exchange) { x.Reply([]byte("{}")) }
