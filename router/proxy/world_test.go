package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/sse"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/router/proxy"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the transparent face with real parts on both sides: an edge on loopback before it and a manager
// with scripted servers behind it.
type world struct {
	t testing.TB
	face
	setup     setup
	config    proxy.Config
	replicas  *replicas // of the router; nil = it is one, the face
	http      *httptest.Server
	url       string
	transport *http.Transport
	logs      *mcptest.Log
	once      sync.Once
	stopping  atomic.Bool
}

// face is a router: an edge before a manager.
type face struct {
	manager *downstream.Manager
	proxy   *proxy.Proxy
	all     *proxy.Surface
	edge    *edge.Edge
	handler http.Handler
}

// setup is what a world is made of.
type setup struct {
	config     proxy.Config
	downstream downstream.Options
	edge       edge.Options
	search     proxy.Search
	clients    func(proxy.Clients) proxy.Clients // wraps the edge; nil = does not
	quiet      bool                              // log nothing
	returns    bool                              // tell clients of servers that are back
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
	w := prepare(t, change, places...)
	w.face = newFace(w.setup)
	w.http = httptest.NewServer(w.handler)
	w.url = w.http.URL
	w.manager.Start()
	t.Cleanup(w.stop)
	return w
}

// prepare serves the servers.
func prepare(t testing.TB, change func(*setup), places ...place) *world {
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
	w := &world{t: t, logs: &mcptest.Log{}, transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	logger := slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if s.quiet {
		logger = slog.New(slog.DiscardHandler)
	}
	s.downstream.Logger, s.edge.Logger = logger, logger
	s.downstream.ListDeadline, s.downstream.ProxyTimeout = s.config.ListDeadline, s.config.Timeout
	w.setup, w.config = s, s.config
	return w
}

// newFace makes a router whose manager is to be started.
func newFace(s setup) face {
	f := face{}
	f.proxy = proxy.New(proxy.Options{Config: s.config, Name: "agenticnexus-router", Version: "1.2.3", Fail: router.ReplyRPCError, Confirm: router.Confirm, Logger: s.edge.Logger})
	if s.returns {
		s.downstream.OnReturn = func(server string) { proxy.Returned(f.proxy, server) }
	}
	s.downstream.OnNotification, s.downstream.OnRequest = f.proxy.Deliver, f.proxy.Ask
	f.manager = downstream.New(s.downstream)
	f.edge = edge.New(s.edge)
	parts := proxy.Parts{Servers: f.manager, Clients: f.edge, Search: s.search}
	if s.clients != nil {
		parts.Clients = s.clients(f.edge)
	}
	f.proxy.Attach(parts)
	f.all = f.proxy.All()
	mux := http.NewServeMux()
	mux.Handle("/proxy/mcp", f.edge.Streamable(f.all, nil))
	for _, name := range f.manager.Servers() {
		mux.Handle("/servers/"+name+"/mcp", f.edge.Streamable(f.proxy.Single(name), nil))
	}
	f.handler = mux
	return f
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
		if w.replicas != nil {
			w.replicas.stop()
			return
		}
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
	return auth.KeyConfig{Name: name, Key: redact.Secret("secret-" + name)}
}

// searched answers every search with {}.
type searched struct{ found }

func (*searched) ServeSearch(_ context.Context, x *edge.Exchange) { x.Reply([]byte("{}")) }

// deadline bounds everything that a test waits for.
const deadline = 20 * time.Second

// client is an MCP client that sends and keeps raw bytes. It speaks streamable HTTP, or newline-delimited
// messages if lines is set.
type client struct {
	t       testing.TB
	w       *world
	path    string
	name    string // as it introduces itself
	version string // that it asks for
	header  http.Header
	answers func(m jsonrpc.Message) string // the response's member, as in `"result":{}`, to a request; nil = refused
	ctx     context.Context
	end     context.CancelFunc
	wg      sync.WaitGroup
	lines   func(raw string)
	// persists lets it send again what the router has not served, resume what is cut off, and bear what is lost.
	persists bool

	mu      sync.Mutex
	own     answer // the session's own stream
	last    int
	pending map[string]*answer // by id
	loose   []string           // raw messages that came on no stream of a request
	asked   []jsonrpc.Message  // requests of the router
	surplus []string           // responses that nobody waits for
}

// answer is what came for one request.
type answer struct {
	id      string
	status  int
	header  http.Header
	notes   []string // raw notifications and requests on its stream, before its response
	result  string
	err     string
	refused string // the body of a status other than 200
	done    chan struct{}

	reads  bool     // events of it now
	event  string   // id of the last one
	entry  *replica // that has got the request; nil = not known
	hangUp context.CancelFunc
}

func (w *world) newClient(path string) *client {
	c := &client{t: w.t, w: w, path: path, name: "test", version: "2025-11-25", header: http.Header{}, pending: map[string]*answer{}}
	c.ctx, c.end = context.WithCancel(context.Background())
	w.t.Cleanup(c.close)
	return c
}

// close ends the client's connections.
func (c *client) close() {
	c.end()
	c.wg.Wait()
}

const initializeParams = `{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}},"clientInfo":{"name":"test","version":"1"}}`

// dial opens a session on a path and listens on its own stream.
func (w *world) dial(path string) *client {
	w.t.Helper()
	return w.dialAs(path, "test", nil)
}

// dialAs opens a session under a name.
func (w *world) dialAs(path, name string, answers func(jsonrpc.Message) string) *client {
	w.t.Helper()
	c := w.newClient(path)
	c.name, c.answers = name, answers
	c.hello()
	c.listen()
	return c
}

// hello opens a session.
func (c *client) hello() *answer {
	c.t.Helper()
	params := strings.Replace(initializeParams, `"name":"test"`, `"name":`+quote(c.name), 1)
	a := c.do("initialize", strings.Replace(params, "2025-11-25", c.version, 1))
	if a.result == "" {
		c.t.Fatalf("initialize: got error %s %s, want a result", a.err, a.refused)
	}
	if c.lines == nil {
		c.header.Set("Mcp-Session-Id", a.header.Get("Mcp-Session-Id"))
	}
	c.notify("notifications/initialized", "")
	return a
}

// listen reads the session's own stream until the client is closed.
func (c *client) listen() {
	c.t.Helper()
	if c.lines != nil {
		return
	}
	resp, err := c.request(http.MethodGet, "", &c.own)
	if err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fatalf("GET %s: got %v, %v, want 200", c.path, resp, err)
	}
	c.wg.Go(func() {
		for ; ; resp, err = c.request(http.MethodGet, "", &c.own) {
			if err == nil {
				c.events(resp, &c.own, nil) // it ends with the client
			}
			if !c.again() {
				return
			}
		}
	})
}

// again reports whether a client that has lost a connection opens another.
func (c *client) again() bool {
	if !c.persists || c.w.stopping.Load() {
		return false
	}
	select {
	case <-c.ctx.Done():
		return false
	case <-time.After(10 * time.Millisecond):
		return true
	}
}

// events takes the messages of an event stream; on is the request that they belong to, if there is one.
func (c *client) events(resp *http.Response, a, on *answer) {
	defer resp.Body.Close()
	events := sse.NewReader(resp.Body, 64<<20)
	defer events.Free()
	reads := func(reads bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		a.reads = reads && resp.StatusCode == http.StatusOK
	}
	reads(true)
	defer reads(false)
	for e, err := events.Next(); err == nil; e, err = events.Next() { // what is missing shows in the answer
		if len(e.Data) > 0 {
			c.take(string(e.Data), on)
		}
		if e.ID != "" {
			c.mu.Lock()
			a.event = e.ID
			c.mu.Unlock()
		}
	}
}

// stdio returns a client of all servers on newline-delimited messages, which has no session yet.
func (w *world) stdio() *client {
	c := w.newClient("stdio")
	in, fromClient := io.Pipe()
	fromRouter, out := io.Pipe()
	var mu sync.Mutex
	c.lines = func(raw string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.WriteString(fromClient, raw+"\n") // the end of the session shows in what is waited for
	}
	c.wg.Go(func() {
		defer out.Close()
		if err := w.edge.ServeStdio(c.ctx, in, out, w.all); err != nil && c.ctx.Err() == nil {
			c.t.Errorf("ServeStdio: got %v, want nil", err)
		}
	})
	c.wg.Go(func() {
		lines := bufio.NewReader(fromRouter)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			c.take(strings.TrimSpace(line), nil)
		}
	})
	return c
}

// request sends a HTTP request; a GET resumes the stream of a.
func (c *client) request(method, body string, a *answer) (*http.Response, error) {
	for tries := 1; ; tries++ {
		sent := time.Now()
		req, err := http.NewRequest(method, c.w.url+c.path, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		ctx, hangUp := context.WithCancel(c.ctx)
		req = req.WithContext(ctx)
		c.mu.Lock()
		req.Header = c.header.Clone()
		a.hangUp = hangUp
		if method == http.MethodGet && a.event != "" {
			req.Header.Set("Last-Event-ID", a.event)
		}
		c.mu.Unlock()
		if method == http.MethodPost {
			req.Header.Set("Content-Type", "application/json")
			if req.Header.Get("Accept") == "" {
				req.Header.Set("Accept", "application/json, text/event-stream")
			}
		}
		resp, err := c.w.send(req, func(at *replica) {
			c.mu.Lock()
			defer c.mu.Unlock()
			a.entry = at
		})
		if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !c.persists || c.w.replicas == nil {
			return resp, err
		}
		said, _ := io.ReadAll(resp.Body) // it tells why
		resp.Body.Close()
		if !c.w.replicas.refused(c.t, tries, sent, method+" "+body+": "+string(said)) {
			return nil, errors.New("refused too often")
		}
		select {
		case <-time.After(time.Second): // as Retry-After says
		case <-c.ctx.Done():
		}
	}
}

// send sends a request to the router, which at tells.
func (w *world) send(req *http.Request, at func(*replica)) (*http.Response, error) {
	if w.replicas != nil {
		return w.replicas.send(req, at)
	}
	return w.transport.RoundTrip(req)
}

// start sends a request with a raw id. send returns when it has been written.
func (c *client) start(id, method, params string) *answer {
	a := &answer{id: id, done: make(chan struct{})}
	c.startInto(a, method, params)
	return a
}

func (c *client) startInto(a *answer, method, params string) {
	id := a.id
	c.mu.Lock()
	c.pending[id] = a
	c.mu.Unlock()
	body := `{"jsonrpc":"2.0","id":` + id + `,"method":` + quote(method)
	if params != "" {
		body += `,"params":` + params
	}
	body += "}"
	if c.lines != nil {
		c.lines(body)
		return
	}
	c.wg.Go(func() { c.post(a, body) })
}

// post sends a request and takes what comes for it.
func (c *client) post(a *answer, body string) {
	defer c.finish(a)
	for method := http.MethodPost; ; method, body = http.MethodGet, "" {
		resp, err := c.request(method, body, a)
		switch {
		case err == nil:
			c.read(resp, a)
		case c.ctx.Err() == nil && !c.w.stopping.Load() && !c.persists:
			c.t.Errorf("POST %s: %v", c.path, err)
		}
		c.mu.Lock()
		cut := a.event != "" && a.result+a.err+a.refused == ""
		c.mu.Unlock()
		if !cut || !c.again() {
			return
		}
	}
}

func (c *client) read(resp *http.Response, a *answer) {
	a.status, a.header = resp.StatusCode, resp.Header
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		c.events(resp, a, a)
		return
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body) // what is missing shows in the message
	if resp.StatusCode != http.StatusOK {
		c.mu.Lock()
		a.refused = string(raw)
		c.mu.Unlock()
	} else if len(raw) > 0 {
		c.take(string(raw), a)
	}
}

// finish ends an answer. It may have ended without a response.
func (c *client) finish(a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending[a.id] == a {
		delete(c.pending, a.id)
	}
	select {
	case <-a.done:
	default:
		close(a.done)
	}
}

// take sorts one message that has come; on is the request on whose stream it came, if it has one.
func (c *client) take(raw string, on *answer) {
	m, bad := jsonrpc.Parse([]byte(raw))
	if bad != nil {
		c.t.Errorf("received %q: got %v, want a message", raw, bad)
		return
	}
	c.mu.Lock()
	switch {
	case m.IsResponse():
		a := c.pending[string(m.ID)]
		if on != nil && on.id == string(m.ID) {
			a = on // a later request may have the same id
		}
		if a == nil || on != nil && on != a || a.result != "" || a.err != "" {
			c.surplus = append(c.surplus, raw)
			break
		}
		a.result, a.err = string(m.Result), string(m.Err)
		if c.lines != nil {
			delete(c.pending, string(m.ID))
			close(a.done)
		}
	case on != nil:
		on.notes = append(on.notes, raw)
	default:
		c.loose = append(c.loose, raw)
	}
	if m.IsRequest() {
		c.asked = append(c.asked, m)
	}
	answers := c.answers
	c.mu.Unlock()
	if m.IsRequest() {
		c.wg.Go(func() {
			member := `"error":{"code":-32601,"message":"no"}`
			if answers != nil {
				member = answers(m)
			}
			if member != "" {
				c.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + member + `}`)
			}
		})
	}
}

// send sends a notification or a response and returns the HTTP status.
func (c *client) send(raw string) int {
	if c.lines != nil {
		c.lines(raw)
		return 0
	}
	resp, err := c.request(http.MethodPost, raw, &answer{})
	if err != nil {
		if c.ctx.Err() == nil && !c.w.stopping.Load() && !c.persists {
			c.t.Errorf("POST %s: %v", c.path, err)
		}
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func (c *client) notify(method, params string) int {
	raw := `{"jsonrpc":"2.0","method":` + quote(method)
	if params != "" {
		raw += `,"params":` + params
	}
	return c.send(raw + "}")
}

// wait waits for the end of an answer.
func (c *client) wait(a *answer) *answer {
	c.t.Helper()
	select {
	case <-a.done:
	case <-time.After(deadline):
		c.t.Fatalf("request %s: got no answer within %v", a.id, deadline)
	}
	return a
}

// next returns a new id.
func (c *client) next() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	return fmt.Sprint(c.last)
}

// do sends a request and waits for the answer.
func (c *client) do(method, params string) *answer {
	c.t.Helper()
	return c.wait(c.start(c.next(), method, params))
}

// call calls a tool without arguments.
func (c *client) call(tool string) *answer {
	c.t.Helper()
	return c.do("tools/call", `{"name":`+quote(tool)+`}`)
}

// beginCall calls a tool without waiting.
func (c *client) beginCall(tool string) *answer {
	return c.start(c.next(), "tools/call", `{"name":`+quote(tool)+`}`)
}

// heard returns the messages on the session's own stream.
func (c *client) heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.loose...)
}

// forget drops the messages on the session's own stream.
func (c *client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loose = nil
}

func (c *client) questions() []jsonrpc.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]jsonrpc.Message(nil), c.asked...)
}

// noted returns what came on the request's stream so far.
func (c *client) noted(a *answer) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), a.notes...)
}

// leave ends the session.
func (c *client) leave() {
	c.t.Helper()
	if c.lines == nil {
		resp, err := c.request(http.MethodDelete, "", &answer{})
		if err != nil {
			c.t.Errorf("DELETE: %v", err)
			return
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNoContent {
			c.t.Errorf("DELETE: got %d, want 204", resp.StatusCode)
		}
	}
	c.close()
}

// names returns the named member of each item of a list's result.
func names(result, list, member string) []string {
	out := []string{}
	for _, item := range jsonrpc.Elements(jsonrpc.Get([]byte(result), list)) {
		out = append(out, jsonrpc.Text(jsonrpc.Get(item, member)))
	}
	return out
}

// tools lists the names of all tools.
func (c *client) tools() []string {
	c.t.Helper()
	a := c.wait(c.start(quote("list-"+c.next()), "tools/list", "{}"))
	if a.result == "" {
		c.t.Fatalf("tools/list: got error %s %s, want a list", a.err, a.refused)
	}
	return names(a.result, "tools", "name")
}

// quote writes a JSON string.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // strings always encode
	return strings.TrimSpace(b.String())
}

// server is a scripted MCP server that sends exactly the bytes it is told to, and keeps what it is sent.
// It speaks streamable HTTP with sessions, HTTP+SSE and newline-delimited streams. Its request ids and
// progress tokens are small numbers, so that those of several servers are equal.
type server struct {
	caps   string                                                      // capabilities
	lists  map[string][]string                                         // raw items by method
	pages  int                                                         // items of a page; 0 = all
	raw    map[string]string                                           // raw result by tool, prompt or URI
	errors map[string]string                                           // raw error by tool, prompt, URI or method
	on     func(r *request) (handled bool)                             // looks at each request first; may be nil
	modern bool                                                        // refuses the handshake and speaks 2026-07-28
	dial   func(ctx context.Context) error                             // before a pipe is opened; may be nil
	gate   func(w http.ResponseWriter, r *http.Request) (handled bool) // before HTTP is served; may be nil

	mu       sync.Mutex
	received []jsonrpc.Message
	headers  []http.Header // of the received messages; nil on streams
	peers    map[string]*peer
	named    int // peers so far
	waiting  map[string]chan jsonrpc.Message
	running  map[string]*request // by peer and id
	wg       sync.WaitGroup
}

// peer is one session of the server.
type peer struct {
	id     string
	server *server
	ctx    context.Context // ends with the session
	end    context.CancelFunc
	asked  int // its requests so far, guarded by server.mu

	mu     sync.Mutex
	client string           // the name in clientInfo
	host   *replica         // that has opened a pipe; nil = not known
	uris   map[string]bool  // that it is subscribed to, if on notes them
	out    func(raw string) // the stream for what belongs to no request; nil = none
	cut    func()           // ends that stream
}

// request is what the server is asked, and the way back.
type request struct {
	jsonrpc.Message
	server *server
	peer   *peer
	ctx    context.Context // ends with its cancellation, its connection or its session
	cancel context.CancelCauseFunc
	send   func(raw string)
}

const object = `"inputSchema":{"type":"object"}`

// newServer is a server with the named tools.
func newServer(tools ...string) *server {
	s := &server{
		caps: `{"tools":{}}`, lists: map[string][]string{"tools/list": {}}, raw: map[string]string{}, errors: map[string]string{},
		peers: map[string]*peer{}, waiting: map[string]chan jsonrpc.Message{}, running: map[string]*request{},
	}
	for _, name := range tools {
		s.lists["tools/list"] = append(s.lists["tools/list"], `{"name":`+quote(name)+`,`+object+`}`)
	}
	return s
}

// change changes the server while it serves.
func (s *server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *server) open() *peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named++
	p := &peer{id: fmt.Sprintf("session-%d", s.named), server: s, uris: map[string]bool{}}
	p.ctx, p.end = context.WithCancel(context.Background())
	s.peers[p.id] = p
	return p
}

func (s *server) peer(id string) *peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peers[id]
}

// close ends a session.
func (p *peer) close() {
	p.server.mu.Lock()
	delete(p.server.peers, p.id)
	p.server.mu.Unlock()
	p.end()
}

// restart forgets all sessions and cuts their connections.
func (s *server) restart() {
	for _, p := range s.all() {
		p.close()
	}
}

func (s *server) all() []*peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*peer
	for _, p := range s.peers {
		all = append(all, p)
	}
	return all
}

// say sends a message of the server's own accord on every session that has a stream for it, and returns how
// many those are.
func (s *server) say(raw string) (n int) {
	for _, p := range s.all() {
		if p.say(raw) {
			n++
		}
	}
	return n
}

func (p *peer) say(raw string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil {
		return false
	}
	p.out(raw)
	return true
}

// clientName is how the client has introduced itself.
func (p *peer) clientName() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client
}

// cutStream ends the session's own stream, not the session.
func (p *peer) cutStream() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut != nil {
		p.cut()
	}
}

// streams is how many sessions have a stream of their own.
func (s *server) streams() (n int) {
	for _, p := range s.all() {
		p.mu.Lock()
		if p.out != nil {
			n++
		}
		p.mu.Unlock()
	}
	return n
}

// ask sends a request to the client and waits for the answer; empty if the session or ctx ends before.
func (p *peer) ask(ctx context.Context, send func(raw string), method, params string) jsonrpc.Message {
	s := p.server
	s.mu.Lock()
	p.asked++
	id := fmt.Sprint(p.asked)
	answer := make(chan jsonrpc.Message, 1)
	s.waiting[p.id+" "+id] = answer
	s.mu.Unlock()
	send(`{"jsonrpc":"2.0","id":` + id + `,"method":` + quote(method) + `,"params":` + params + `}`)
	select {
	case m := <-answer:
		return m
	case <-ctx.Done():
	case <-p.ctx.Done():
	}
	return jsonrpc.Message{}
}

// ask asks on the request's own stream.
func (r *request) ask(method, params string) jsonrpc.Message {
	return r.peer.ask(r.ctx, r.send, method, params)
}

func (r *request) result(raw string) { r.send(string(jsonrpc.Result(r.ID, []byte(raw)))) }
func (r *request) fail(raw string)   { r.send(string(jsonrpc.RawError(r.ID, []byte(raw)))) }

// progress reports progress; raw follows the token.
func (r *request) progress(raw string) {
	token := jsonrpc.Get(r.Params, "_meta", "progressToken")
	r.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(token) + `,` + raw + `}}`)
}

// name is what the request names: a tool, prompt or URI.
func (r *request) name() string {
	if name := jsonrpc.Get(r.Params, "name"); name != nil {
		return jsonrpc.Text(name)
	}
	return jsonrpc.Text(jsonrpc.Get(r.Params, "uri"))
}

// note keeps a message that has come.
func (s *server) note(m jsonrpc.Message, h http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = append(s.received, m)
	s.headers = append(s.headers, h)
}

// take serves a message. send is where the response and what belongs to it goes.
func (s *server) take(ctx context.Context, p *peer, m jsonrpc.Message, send func(raw string)) {
	s.mu.Lock()
	key := p.id + " " + string(m.ID)
	answer := s.waiting[key]
	if m.IsResponse() {
		delete(s.waiting, key)
	}
	if m.Method == "initialize" {
		p.mu.Lock()
		p.client = jsonrpc.Text(jsonrpc.Get(m.Params, "clientInfo", "name"))
		p.mu.Unlock()
	}
	running := s.running[p.id+" "+string(jsonrpc.Get(m.Params, "requestId"))]
	on := s.on
	s.mu.Unlock()
	switch {
	case m.IsResponse():
		if answer != nil {
			answer <- m
		}
		return
	case m.Method == "notifications/cancelled":
		if running != nil {
			running.cancel(nil)
		}
		return
	case m.IsNotification():
		return
	}
	r := &request{Message: m, server: s, peer: p, send: send}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	defer context.AfterFunc(p.ctx, func() { r.cancel(nil) })()
	s.mu.Lock()
	s.running[key] = r
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.running, key)
		s.mu.Unlock()
	}()
	if on == nil || !on(r) {
		s.serve(r)
	}
}

func (s *server) serve(r *request) {
	s.mu.Lock()
	rpcErr := s.errors[r.Method]
	if rpcErr == "" {
		rpcErr = s.errors[r.name()]
	}
	raw := s.raw[r.name()]
	items, pages, caps := s.lists[r.Method], s.pages, s.caps
	_, listed := s.lists[r.Method]
	s.mu.Unlock()
	switch {
	case rpcErr != "":
		r.fail(rpcErr)
	case s.modern && r.Method == "initialize":
		r.fail(`{"code":-32602,"message":"no handshake here"}`)
	case r.Method == "initialize":
		r.result(`{"protocolVersion":` + string(jsonrpc.Get(r.Params, "protocolVersion")) + `,"capabilities":` + caps + `,"serverInfo":{"name":"scripted","version":"1"}}`)
	case s.modern && r.Method == "server/discover":
		r.result(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":` + caps + `,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"modern","version":"1"}},"ttlMs":0,"cacheScope":"private"}`)
	case listed:
		page(r, items, pages)
	case raw != "" && !strings.HasSuffix(r.Method, "subscribe"):
		r.result(raw)
	case r.Method == "ping", r.Method == "resources/subscribe", r.Method == "resources/unsubscribe", r.Method == "logging/setLevel":
		r.result(`{}`)
	case r.Method == "tools/call":
		// The bytes of the params, for comparison.
		r.result(`{"content":[],"seen":` + string(r.Params) + `}`)
	case s.modern && r.Method == "subscriptions/listen":
		r.announce()
	default:
		r.fail(`{"code":-32601,"message":"Method not found"}`)
	}
}

// announce serves subscriptions/listen until the request or its stream ends.
func (r *request) announce() {
	p, id := r.peer, string(r.ID)
	tell := func(raw string) {
		m, _ := jsonrpc.Parse([]byte(raw))
		meta := jsonrpc.Set(jsonrpc.Get(m.Params, "_meta"), subscriptionID, []byte(id))
		r.send(string(jsonrpc.Notification(m.Method, jsonrpc.Set(m.Params, "_meta", meta))))
	}
	cut := make(chan struct{})
	p.mu.Lock()
	tell(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":` +
		string(jsonrpc.Get(r.Params, "notifications")) + `}}`)
	p.out, p.cut = tell, sync.OnceFunc(func() { close(cut) })
	p.mu.Unlock()
	select {
	case <-r.ctx.Done():
	case <-cut:
	}
	p.mu.Lock()
	p.out = nil
	p.mu.Unlock()
	if r.ctx.Err() == nil {
		r.result(`{"resultType":"complete","_meta":{` + quote(subscriptionID) + `:` + id + `}}`)
	}
}

func page(r *request, items []string, size int) {
	first := 0
	_, _ = fmt.Sscan(jsonrpc.Text(jsonrpc.Get(r.Params, "cursor")), &first) // without a cursor it is the first page
	end, next := len(items), ""
	if size > 0 && first+size < len(items) {
		end = first + size
		next = `,"nextCursor":"` + fmt.Sprint(end) + `"`
	}
	key := map[string]string{"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}[r.Method]
	r.result(`{"` + key + `":[` + strings.Join(items[first:end], ",") + `]` + next + `}`)
}

// ServeHTTP implements http.Handler: /sse and /messages are HTTP+SSE, everything else streamable HTTP.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.wg.Add(1)
	defer s.wg.Done()
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	if gate != nil && gate(w, r) {
		return
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/sse"):
		s.stream(w, r, s.open(), "endpoint", strings.TrimSuffix(r.URL.Path, "/sse")+"/messages?session=")
	case strings.HasSuffix(r.URL.Path, "/messages"):
		s.message(w, r)
	case r.Method == http.MethodGet && !s.modern:
		if p := s.peer(r.Header.Get("Mcp-Session-Id")); p != nil {
			s.stream(w, r, p, "", "")
			return
		}
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		if p := s.peer(r.Header.Get("Mcp-Session-Id")); p != nil {
			p.close()
		}
	case r.Method == http.MethodPost:
		s.post(w, r)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// sink writes an event stream until its handler returns.
type sink struct {
	mu sync.Mutex
	w  http.ResponseWriter // nil = over
}

// events makes the answer an event stream.
func events(w http.ResponseWriter) *sink {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // a connection that is gone shows elsewhere
	return &sink{w: w}
}

func (s *sink) event(name, data string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w == nil {
		return
	}
	_, _ = io.WriteString(s.w, "event: "+name+"\ndata: "+data+"\n\n")
	_ = http.NewResponseController(s.w).Flush()
}

func (s *sink) message(raw string) { s.event("message", raw) }

func (s *sink) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w = nil
}

// stream serves a session's own stream.
func (s *server) stream(w http.ResponseWriter, r *http.Request, p *peer, first, endpoint string) {
	events := events(w)
	defer events.end()
	p.mu.Lock()
	if first != "" {
		defer p.close() // with HTTP+SSE the stream is the session
		events.event(first, endpoint+p.id)
	}
	p.out = events.message
	cut := make(chan struct{})
	p.cut = sync.OnceFunc(func() { close(cut) })
	p.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-p.ctx.Done():
	case <-cut:
	}
	p.mu.Lock()
	p.out = nil
	p.mu.Unlock()
	if p.ctx.Err() != nil {
		panic(http.ErrAbortHandler)
	}
}

// message is the POST side of HTTP+SSE.
func (s *server) message(w http.ResponseWriter, r *http.Request) {
	p := s.peer(r.URL.Query().Get("session"))
	m, ok := readMessage(w, r)
	if p == nil || !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	s.note(m, r.Header)
	w.WriteHeader(http.StatusAccepted)
	if !m.IsRequest() {
		s.take(p.ctx, p, m, nil)
		return
	}
	s.wg.Go(func() {
		s.take(p.ctx, p, m, func(raw string) { p.say(raw) })
	})
}

func readMessage(w http.ResponseWriter, r *http.Request) (jsonrpc.Message, bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return jsonrpc.Message{}, false
	}
	m, bad := jsonrpc.Parse(body)
	return m, bad == nil
}

func (s *server) post(w http.ResponseWriter, r *http.Request) {
	m, ok := readMessage(w, r)
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var p *peer
	switch {
	case s.modern && m.Method == "subscriptions/listen":
		p = s.open()
		defer p.close()
	case s.modern:
		p = &peer{id: "modern", server: s, ctx: context.Background()}
	case m.Method == "initialize":
		p = s.open()
		w.Header().Set("Mcp-Session-Id", p.id)
	default:
		p = s.peer(r.Header.Get("Mcp-Session-Id"))
	}
	if p == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	s.note(m, r.Header)
	switch {
	case !m.IsRequest():
		s.take(r.Context(), p, m, nil)
		w.WriteHeader(http.StatusAccepted)
	case m.Method != "tools/call" && m.Method != "subscriptions/listen":
		w.Header().Set("Content-Type", "application/json")
		s.take(r.Context(), p, m, func(raw string) { _, _ = io.WriteString(w, raw) })
	default:
		events := events(w)
		defer events.end()
		s.take(r.Context(), p, m, events.message)
		if p.ctx.Err() != nil {
			panic(http.ErrAbortHandler) // the answer is cut
		}
	}
}

// pipe opens a newline-delimited stream to the server.
func (s *server) pipe(ctx context.Context) (io.ReadWriteCloser, error) { return s.pipeFrom(ctx, nil) }

// pipeFrom is pipe from a replica.
func (s *server) pipeFrom(ctx context.Context, host *replica) (io.ReadWriteCloser, error) {
	s.mu.Lock()
	dial := s.dial
	s.mu.Unlock()
	if dial != nil {
		if err := dial(ctx); err != nil {
			return nil, err
		}
	}
	ours, theirs := net.Pipe()
	s.wg.Go(func() { s.lines(theirs, theirs, host) })
	return ours, nil
}

// lines serves newline-delimited messages until in ends.
func (s *server) lines(in io.ReadCloser, out io.Writer, host *replica) {
	p := s.open()
	defer p.close()
	defer in.Close()
	defer context.AfterFunc(p.ctx, func() { in.Close() })()
	var mu sync.Mutex
	write := func(raw string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.WriteString(out, raw+"\n") // the reader's end shows in the next read
	}
	p.mu.Lock()
	if p.host = host; !s.modern {
		p.out = write
	}
	p.mu.Unlock()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil || p.ctx.Err() != nil {
			return // a session that has ended answers nothing any more
		}
		m, bad := jsonrpc.Parse(line)
		if bad != nil {
			continue
		}
		s.note(m, nil)
		if !m.IsRequest() {
			s.take(p.ctx, p, m, nil)
			continue
		}
		s.wg.Go(func() { s.take(p.ctx, p, m, write) })
	}
}

// listen serves the server over HTTP for the time of the test.
func (s *server) listen(t testing.TB) string {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		s.restart()
		h.CloseClientConnections()
		h.Close()
		s.wg.Wait()
	})
	return h.URL
}

// got returns the raw params of the received messages of a method, in order.
func (s *server) got(method string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, m := range s.received {
		if m.Method == method {
			all = append(all, string(m.Params))
		}
	}
	return all
}

// header returns the headers of the last received message of a method.
func (s *server) header(method string) http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.received) - 1; i >= 0; i-- {
		if s.received[i].Method == method {
			return s.headers[i]
		}
	}
	return nil
}

// methods returns what was received, in order; responses have no method.
func (s *server) methods() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, m := range s.received {
		all = append(all, m.Method)
	}
	return all
}
