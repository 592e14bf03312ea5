package edge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
	"github.com/agenticnexus/agenticnexus/router/edge/output"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire is an edge behind a real HTTP server.
type wire struct {
	t      testing.TB
	srv    *server
	edge   *edge.Edge
	http   *httptest.Server
	client *http.Client
}

func newWire(t testing.TB, o edge.Options) *wire {
	t.Helper()
	s := newServer()
	e := edge.New(o)
	mux := http.NewServeMux()
	mux.Handle("/mcp", e.Streamable(s, nil))
	mux.Handle("/other", e.Streamable(s, nil))
	stream, messages := e.SSE("/messages", s)
	mux.Handle("/sse", stream)
	mux.Handle("/messages/", messages)
	mux.Handle("/messages", messages)
	h := httptest.NewServer(mux)
	w := &wire{t: t, srv: s, edge: e, http: h, client: h.Client()}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		equal(t, "Stop", e.Stop(ctx), nil)
		h.CloseClientConnections()
		h.Close()
		mcptest.Eventually(t, "nothing is charged to a caller any more", func() bool { return e.Held() == 0 })
	})
	return w
}

// header are headers of a request. One with several lines is sent as often.
type header map[string]string

// do sends a request and returns the open response.
func (w *wire) do(ctx context.Context, method, path, body string, h header) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, w.http.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for k, v := range h {
		if k == "Host" {
			r.Host = v
		} else if v == "" {
			r.Header.Del(k)
		} else {
			r.Header[http.CanonicalHeaderKey(k)] = strings.Split(v, "\n")
		}
	}
	resp, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func (w *wire) post(body string, h header) (int, http.Header, string) {
	w.t.Helper()
	resp := w.do(context.Background(), http.MethodPost, "/mcp", body, h)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatalf("reading the answer to %s: %v", body, err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

// want posts a message and checks the status of the answer and the parts of its body.
func (w *wire) want(what, body string, h header, status int, parts ...string) {
	w.t.Helper()
	got, _, answer := w.post(body, h)
	if got != status {
		w.t.Errorf("%s: got %d %s, want %d", what, got, answer, status)
	}
	if status == http.StatusAccepted && answer != "" {
		w.t.Errorf("%s: got 202 with %q, want no body", what, answer)
	}
	contains(w.t, what, answer, parts...)
}

// status sends a request and checks the status of the answer.
func (w *wire) status(what, method, path, body string, h header, want int) {
	w.t.Helper()
	equal(w.t, what, w.do(context.Background(), method, path, body, h).StatusCode, want)
}

// start posts a message and returns the channel of its answer.
func (w *wire) start(body string, h header) <-chan string {
	answer := make(chan string, 1)
	go func() {
		_, _, got := w.post(body, h)
		answer <- got
	}()
	return answer
}

// served waits until the handler has been served n calls and notifications.
func (w *wire) served(n int) {
	w.t.Helper()
	mcptest.Eventually(w.t, fmt.Sprintf("%d are served", n), func() bool { return len(w.srv.log()) == n })
}

// open initializes a session on /mcp.
func (w *wire) open(version string) header {
	w.t.Helper()
	status, h, body := w.post(initialize(version), nil)
	id := h.Get("Mcp-Session-Id")
	if status != 200 || id == "" {
		w.t.Fatalf("initialize: got %d %s, session %q; want 200 and a session", status, body, id)
	}
	return header{"Mcp-Session-Id": id}
}

// keep has the edge of w keep its state in a folder.
func (w *wire) keep(folder string) *wire {
	w.t.Helper()
	if err := w.edge.Keep(folder); err != nil {
		w.t.Fatalf("Keep: got %v, want nil", err)
	}
	return w
}

// raw sends a POST on a connection of its own and reads nothing.
func (w *wire) raw(body string, length int, h header) net.Conn {
	w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.http.URL, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n", length)
	for name, value := range h {
		fmt.Fprintf(conn, "%s: %s\r\n", name, value)
	}
	_, _ = io.WriteString(conn, "\r\n"+body) // it may be refused meanwhile
	return conn
}

// newDirect returns an edge whose streamable endpoint is served without a network, so that time can be made to pass.
func newDirect(t testing.TB, o edge.Options) (*edge.Edge, *server, http.Handler) {
	srv := newServer()
	e := edge.New(o)
	t.Cleanup(func() {
		stop(t, e)
		equal(t, "bytes held in the end", e.Held(), 0)
	})
	return e, srv, e.Streamable(srv, nil)
}

// direct serves a request without a network. The header Remote is the client's address.
func direct(e http.Handler, method, body string, h header) *httptest.ResponseRecorder {
	return directly(context.Background(), e, method, body, h)
}

// directly is direct with the context of the connection.
func directly(ctx context.Context, e http.Handler, method, body string, h header) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1/mcp", reader(body))
	for k, v := range h {
		r.Header.Set(k, v)
	}
	if remote := h["Remote"]; remote != "" {
		r.RemoteAddr = remote
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// session opens a session and returns its header.
func session(e http.Handler, version string, h header) header {
	return with(h, "Mcp-Session-Id", direct(e, "POST", initialize(version), h).Header().Get("Mcp-Session-Id"))
}

// pipeServer serves a handler on in-memory connections, for synctest. dial sends a request and returns the connection.
func pipeServer(t *testing.T, h http.Handler) (dial func(request string) net.Conn) {
	p := &pipes{conns: make(chan net.Conn)}
	server := &http.Server{Handler: h}
	served := make(chan error, 1)
	go func() { served <- server.Serve(output.CoalesceWrites(server, p)) }()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	return func(request string) net.Conn {
		client, conn := net.Pipe()
		t.Cleanup(func() { client.Close() })
		p.conns <- conn
		_, _ = io.WriteString(client, request)
		return client
	}
}

// pipes is a listener of in-memory connections.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.conns) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func with(h header, name, value string) header {
	out := header{name: value}
	for k, v := range h {
		out[k] = v
	}
	return out
}

func keys(t testing.TB) *auth.Keys {
	t.Helper()
	k, err := auth.New(auth.Config{APIKeys: []auth.KeyConfig{
		{Name: "ann", Key: "key-ann"}, {Name: "bob", Key: "key-bob"},
	}}, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func stop(t testing.TB, e *edge.Edge) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	equal(t, "Stop", e.Stop(ctx), nil)
}

func reader(s string) io.Reader { return strings.NewReader(s) }

// equal checks a value.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// contains checks that a text has all parts.
func contains(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: got %.2000s, want %s in it", what, text, part)
		}
	}
}

// checkError checks that body is an error response.
func checkError(t testing.TB, body, id string, code int) {
	t.Helper()
	var m struct {
		ID    json.RawMessage
		Error *struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil || m.Error == nil {
		t.Errorf("got %s, want an error response", body)
		return
	}
	if string(m.ID) != id || m.Error.Code != code || m.Error.Message == "" {
		t.Errorf("got %s, want id %s and code %d with a message", body, id, code)
	}
}

// frame is one server-sent event.
type frame struct{ event, data, id, retry, comment string }

// events reads server-sent events until the stream ends.
type events struct {
	t testing.TB
	r *bufio.Reader
}

func readEvents(t testing.TB, r io.Reader) *events { return &events{t, bufio.NewReader(r)} }

// next returns the next event; false at the end of the stream.
func (e *events) next() (frame, bool) {
	var f frame
	for {
		line, err := e.r.ReadString('\n')
		if err != nil {
			return f, false
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			return f, true
		case name == "":
			f.comment = value
		case name == "event":
			f.event = value
		case name == "data":
			f.data += value
		case name == "id":
			f.id = value
		case name == "retry":
			f.retry = value
		default:
			e.t.Errorf("got line %q in an event stream, want a field", line)
		}
	}
}

// message returns the next event that is a message.
func (e *events) message() string {
	e.t.Helper()
	for {
		f, ok := e.next()
		if !ok {
			e.t.Fatal("the stream ended, want a message")
		}
		if f.event == "message" {
			if !json.Valid([]byte(f.data)) {
				e.t.Fatalf("got data %q, want JSON", f.data)
			}
			return f.data
		}
	}
}

// resumable starts a call that has sent one notification and hangs up. It returns the id of that event.
func (w *wire) resumable(h header, id string) string {
	w.t.Helper()
	return w.hangUp(h, id, "notify-hold")
}

// hangUp calls a tool, reads the progress and hangs up. It returns the id of the progress.
func (w *wire) hangUp(h header, id, tool string) string {
	w.t.Helper()
	ctx, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	before := w.edge.Tracked()
	resp := w.do(ctx, "POST", "/mcp", call(id, tool, "{}"), h)
	f, _ := readEvents(w.t, resp.Body).next()
	if f.id == "" || f.retry != "1000" || f.data != string(progress([]byte(id), 0)) {
		w.t.Fatalf("first event: got %+v, want progress with id and retry", f)
	}
	if got := w.edge.Tracked(); got != before+1 {
		w.t.Fatalf("in flight: got %d, want %d", got, before+1)
	}
	return f.id
}

func (w *wire) resume(h header, last string) (*http.Response, *events) {
	w.t.Helper()
	resp := w.do(context.Background(), "GET", "/mcp", "", header{"Mcp-Session-Id": h["Mcp-Session-Id"],
		"Last-Event-ID": last})
	return resp, readEvents(w.t, resp.Body)
}

// sseClient is a client of the HTTP+SSE transport.
type sseClient struct {
	w        *wire
	events   *events
	endpoint string
	close    func()
}

func (w *wire) sse(h header) *sseClient {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	resp := w.do(ctx, http.MethodGet, "/sse", "", h)
	if resp.StatusCode != 200 {
		w.t.Fatalf("GET /sse: got %d, want 200", resp.StatusCode)
	}
	ev := readEvents(w.t, resp.Body)
	f, _ := ev.next()
	if f.event != "endpoint" || !strings.HasPrefix(f.data, "/messages/?session_id=") {
		w.t.Fatalf("first event: got %+v, want the endpoint", f)
	}
	return &sseClient{w: w, events: ev, endpoint: f.data, close: cancel}
}

func (c *sseClient) post(body string, h header) (int, string) {
	c.w.t.Helper()
	resp := c.w.do(context.Background(), http.MethodPost, c.endpoint, body, h)
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// want posts a message and checks the status of the answer.
func (c *sseClient) want(what, body string, h header, status int) {
	c.w.t.Helper()
	got, _ := c.post(body, h)
	equal(c.w.t, what, got, status)
}

// stdioClient is a client at the other end of two pipes.
type stdioClient struct {
	t    testing.TB
	mu   sync.Mutex // one line at a time
	in   *io.PipeWriter
	out  *bufio.Reader
	done chan error
}

func newStdio(t testing.TB, e *edge.Edge, s edge.Handler) *stdioClient {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &stdioClient{t: t, in: inW, out: bufio.NewReaderSize(outR, 64<<10), done: make(chan error, 1)}
	go func() {
		c.done <- e.ServeStdio(context.Background(), inR, outW, s)
		outW.Close()
	}()
	t.Cleanup(func() { inW.Close(); outR.Close() })
	return c
}

func (c *stdioClient) send(line string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *stdioClient) line() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatalf("reading stdout: %v", err)
	}
	if !json.Valid([]byte(line)) {
		c.t.Fatalf("got line %q, want JSON", line)
	}
	return strings.TrimSuffix(line, "\n")
}

// finish closes stdin and waits for a good end.
func (c *stdioClient) finish() {
	c.t.Helper()
	c.in.Close()
	select {
	case err := <-c.done:
		if err != nil {
			c.t.Errorf("ServeStdio: got %v, want nil", err)
		}
	case <-time.After(20 * time.Second):
		c.t.Error("ServeStdio did not return within 5 s of EOF")
	}
}

// onShared runs a test on each transport with one stream for all messages.
func onShared(t *testing.T, run func(t *testing.T, w *wire, send func(string), next func() string)) {
	t.Run("sse", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		c := w.sse(nil)
		run(t, w, func(m string) { c.want("POST", m, nil, 202) }, c.events.message)
	})
	t.Run("stdio", func(t *testing.T) {
		w := newWire(t, edge.Options{})
		p := newStdio(t, w.edge, w.srv)
		run(t, w, p.send, p.line)
		p.finish()
	})
}

func initialize(version string) string {
	return `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"1"}}}`
}

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

func call(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args +
		`,"_meta":{"progressToken":` + id + `}}}`
}

func request(id, method, meta string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{"name":"echo","_meta":{` + meta + `}}}`
}

func cancelOf(id, reason string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":` + reason + `}}`
}

func logMessage(i, bytes int) []byte {
	return jsonrpc.Notification("notifications/message", fmt.Appendf(nil, `{"level":"info","data":"%d %s"}`, i,
		strings.Repeat("x", bytes)))
}

func progress(token []byte, i int) []byte {
	return jsonrpc.Notification("notifications/progress",
		fmt.Appendf(nil, `{"progressToken":%s,"progress":%d}`, orNull(token), i))
}

func modern(id, method, members string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + members + modernMeta + `}}`
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"x":1}}`

func modernCall(tool string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{},` +
		modernMeta + `}}`
}

func modernHeader(method, name string) header {
	return header{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name}
}

// roundTripOf is a tools/call of 2026-07-28. more is what a retry adds to its params.
func roundTripOf(id, tool, caps, token, more string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool +
		`","arguments":{},` + more +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":` +
		`"t","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":` + caps + `,"progressToken":` + token + `}}}`
}

const asks = `{"sampling":{},"elicitation":{}}`

// last is the last message of an answer, streamed or not.
func last(body string) []byte {
	body = strings.TrimSpace(body)
	if i := strings.LastIndex(body, "data: "); i >= 0 {
		body = body[i+len("data: "):]
	}
	return []byte(body)
}

// required returns the requests of an input_required result, and what a retry with the same response to each adds.
func required(t *testing.T, body, answer string) (requests, more string) {
	t.Helper()
	result := jsonrpc.Get(last(body), "result")
	if got := jsonrpc.Text(jsonrpc.Get(result, "resultType")); got != "input_required" {
		t.Fatalf("got %s, want input_required", body)
	}
	asked := jsonrpc.Get(result, "inputRequests")
	more = `"requestState":` + string(jsonrpc.Get(result, "requestState")) + `,`
	if answer != "" {
		responses := ""
		jsonrpc.Members(asked, func(name []byte, _ jsonrpc.Span) bool {
			responses += `,"` + string(name) + `":` + answer
			return true
		})
		more += `"inputResponses":{` + responses[1:] + `},`
	}
	return string(asked), more
}

// server is the handler under the edge: a small MCP server whose tools are its methods.
type server struct {
	mu      sync.Mutex
	served  []string // "method" or "method:name" in the order of Serve
	whole   []string // the same with initialize
	clumsy  bool     // Ended panics
	leaves  func()   // called at the beginning of Ended; nil = nothing
	ended   []string
	causes  []error
	release chan struct{} // lets "hold" go on
	gate    chan struct{} // lets "notify-big" go on
	beside  chan string   // what "ask-beside" heard
}

func newServer() *server {
	return &server{release: make(chan struct{}), gate: make(chan struct{}), beside: make(chan string, 1)}
}

func (s *server) Ended(session string) {
	if s.leaves != nil {
		s.leaves()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, session)
	if s.clumsy {
		panic("while leaving")
	}
}

// Restore implements edge.Restorer.
func (s *server) Restore(_ string, state []byte) { s.handshake("restored:" + string(state)) }

func (s *server) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.served...)
}

func (s *server) ends() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ended)
}

func (s *server) note(entry string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served = append(s.served, entry)
	s.whole = append(s.whole, entry)
}

func (s *server) handshake(entry string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole = append(s.whole, entry)
}

// all is log with initialize.
func (s *server) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.whole...)
}

func (s *server) cause(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.causes = append(s.causes, err)
}

func (s *server) lastCause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.causes) == 0 {
		return nil
	}
	return s.causes[len(s.causes)-1]
}

func (s *server) causeCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.causes)
}

// checkCause checks that the last cancelled call saw its cancellation.
func checkCause(t *testing.T, s *server, reason string) {
	t.Helper()
	var c *edge.Cancelled
	if err := s.lastCause(); !errors.As(err, &c) || string(c.Reason) != reason || len(c.Params) == 0 ||
		!strings.HasPrefix(err.Error(), "cancelled by the client") {
		t.Errorf("cause: got %v, want a *Cancelled with reason %s and its params", err, reason)
	}
}

type seen struct {
	Session, Version, Caller, Method string
	Client                           inbound.ClientInfo
	Header                           http.Header
	Params                           json.RawMessage
	Raw                              json.RawMessage
}

func (s *server) Serve(ctx context.Context, x *edge.Exchange) {
	m := x.Message
	if m.IsNotification() {
		s.note(m.Method)
		if m.Method == "notifications/pass" {
			go func() {
				edge.AwaitEarlier(context.WithoutCancel(ctx), x)
				s.note("passed")
			}()
		}
		return
	}
	switch m.Method {
	case "initialize":
		s.handshake("initialize:" + string(x.Version))
		if jsonrpc.Get(m.Params, "fail") != nil {
			x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no"})
			return
		}
		x.Reply([]byte(`{"protocolVersion":"` + string(x.Version) +
			`","capabilities":{},"serverInfo":{"name":"t","version":"0"}}`))
	case "ping":
		x.Reply([]byte(`{}`))
	case "logging/setLevel":
		s.handshake("level:" + jsonrpc.Text(jsonrpc.Get(m.Params, "level")))
		x.Reply([]byte(`{}`))
	case "resources/subscribe", "resources/unsubscribe":
		s.handshake(m.Method[len("resources/"):] + ":" + jsonrpc.Text(jsonrpc.Get(m.Params, "uri")))
		x.Reply([]byte(`{}`))
	case "seen":
		b, _ := json.Marshal(seen{x.Session, string(x.Version), x.Caller.ID, m.Method, x.Client, x.Header, m.Params, m.Raw})
		x.Reply(b)
	case "unknown":
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Unknown method"})
	case "silent":
	case "listen", "subscriptions/listen":
		edge.Listen(ctx, x)
		x.Reply([]byte(`{}`))
	case "panic":
		panic("oops")
	case "tools/call":
		s.call(ctx, x)
	default:
		x.Reply([]byte(`{}`))
	}
}

func (s *server) call(ctx context.Context, x *edge.Exchange) {
	name := jsonrpc.Text(jsonrpc.Get(x.Message.Params, "name"))
	args := jsonrpc.Get(x.Message.Params, "arguments")
	token := jsonrpc.Get(x.Message.Params, "_meta", "progressToken")
	s.note("tools/call:" + name)
	switch name {
	case "echo":
		x.Reply(append([]byte(`{"echo":`), append(orNull(args), '}')...))
	case "save":
		edge.Save(x, args)
		x.Reply([]byte(`{}`))
	case "burst":
		n := 100
		fmt.Sscan(string(jsonrpc.Get(args, "n")), &n)
		for i := range n {
			x.Notify(progress(token, i))
		}
		x.Reply([]byte(`{"done":true}`))
		x.Notify(progress(token, -1))
	case "messages": // n log messages of a size
		var n, bytes int
		fmt.Sscan(string(jsonrpc.Get(args, "n")), &n)
		fmt.Sscan(string(jsonrpc.Get(args, "bytes")), &bytes)
		for i := range n {
			x.Notify(logMessage(i, bytes))
		}
		x.Reply([]byte(`{"done":true}`))
	case "crowd": // more notifications than a queue holds, and a request among them
		for i := range 1100 {
			x.Notify(logMessage(i, 10))
		}
		go func() { _, _ = x.Request(context.WithoutCancel(ctx), "sampling/createMessage", nil) }()
		time.Sleep(time.Second) // it is queued
		for i := range 200 {
			x.Notify(logMessage(i, 10))
		}
		x.Reply([]byte(`{"done":true}`))
	case "sleep":
		<-ctx.Done()
		s.cause(context.Cause(ctx))
		x.Reply([]byte(`{"too":"late"}`))
	case "hold":
		select {
		case <-s.release:
			x.Reply([]byte(`{"held":true}`))
		case <-ctx.Done():
			s.cause(context.Cause(ctx))
		}
	case "notify-lost":
		x.Notify(progress(token, 0))
		for !x.Gone() {
			time.Sleep(time.Millisecond)
		}
		x.Reply([]byte(`{"kept":true}`))
	case "notify-hold":
		x.Notify(progress(token, 0))
		s.note("notified")
		select {
		case <-s.release:
			x.Notify(progress(token, 1))
			x.Reply([]byte(`{"held":true}`))
		case <-ctx.Done():
			s.cause(context.Cause(ctx))
		}
	case "sent-hold":
		x.ReleaseWaiting()
		<-s.release
		x.Reply([]byte(`{"held":true}`))
	case "ask":
		m, err := x.Request(ctx, "sampling/createMessage", []byte(`{"q":1}`))
		if err != nil {
			x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()})
			return
		}
		x.Reply(append([]byte(`{"answer":`), append(orNull(m.Result), '}')...))
	case "hold-and-ask":
		<-s.release
		_, err := x.Request(ctx, "sampling/createMessage", []byte(`{}`))
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: fmt.Sprint(err)})
	case "ask-twice": // reports progress in between, and at the end
		for i := range 2 {
			m, err := x.Request(ctx, "sampling/createMessage", fmt.Appendf(nil, `{"q":%d}`, i))
			if err != nil {
				s.cause(err)
				x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()})
				return
			}
			s.note(string(m.Result))
			x.Notify(progress(token, i))
		}
		x.Reply([]byte(`{"content":[]}`))
	case "ask-together", "ask-on": // three at once, or one after the other as long as nothing is answered
		var asked sync.WaitGroup
		again := time.NewTicker(9 * time.Millisecond)
		defer again.Stop()
		for i := range 30 {
			if i >= 3 && name == "ask-together" {
				break
			}
			asked.Go(func() {
				m, _ := x.Request(ctx, "sampling/createMessage", fmt.Appendf(nil, `{"q":%d}`, i))
				s.note(string(m.Result))
			})
			if name == "ask-on" {
				<-again.C
			}
		}
		asked.Wait()
		x.Reply([]byte(`{"content":[]}`))
	case "ask-and-hold":
		_, _ = x.Request(ctx, "sampling/createMessage", []byte(`{}`))
		<-s.release
		x.Reply([]byte(`{"held":true}`))
	case "ask-briefly":
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := x.Request(brief, "elicitation/create", []byte(`{}`))
		s.cause(err)
		x.Reply([]byte(`{"content":[]}`))
	case "ask-beside":
		go func() {
			m, err := x.Request(context.WithoutCancel(ctx), "sampling/createMessage", []byte(`{}`))
			if err != nil {
				m.Result = []byte(err.Error())
			}
			s.beside <- string(m.Result)
		}()
		<-s.release
		x.Reply([]byte(`{}`))
	case "stream":
		x.ForceStream()
		x.Reply([]byte(`{"streamed":true}`))
	case "prefer":
		x.PreferStream()
		x.Reply([]byte(`{"done":true}`))
	case "big":
		n := 1 << 20
		fmt.Sscan(string(jsonrpc.Get(args, "n")), &n)
		x.Reply([]byte(`{"big":"` + strings.Repeat("x", n) + `"}`))
	case "notify-big":
		x.Notify(progress(token, 0))
		<-s.gate
		x.Reply([]byte(`{"big":"` + strings.Repeat("x", 2<<20) + `"}`))
	case "lines":
		x.Notify([]byte("{\"jsonrpc\":\"2.0\",\n\"method\":\"notifications/x\"}"))
		x.Reply([]byte("{\n \"a\":\r\n 1\n}"))
	default:
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Unknown tool: " + name})
	}
}

func orNull(b []byte) []byte {
	if b == nil {
		return []byte("null")
	}
	return b
}
