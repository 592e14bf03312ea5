package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/router/edge/inbound"
)

// server is the handler under the edge: a small MCP server whose tools are its methods.
type server struct {
	mu      sync.Mutex
	served  []string // "method" or "method:name" in the order of Serve
	whole   []string // the same with initialize
	clumsy  bool     // Ended panics
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, session)
	if s.clumsy {
		panic("while leaving")
	}
}

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

func (s *server) greet(entry string) {
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

type seen struct {
	Session, Version, Caller, Method string
	Modern                           bool
	Client                           inbound.ClientInfo
	Header                           http.Header
	Params                           json.RawMessage
	Raw                              json.RawMessage
}

func (s *server) Serve(ctx context.Context, x *edge.Exchange) {
	m := x.Message
	if m.IsNotification() {
		s.note(m.Method)
		if m.Method == "notifications/slow" {
			<-s.release
		}
		return
	}
	switch m.Method {
	case "initialize":
		s.greet("initialize:" + string(x.Version))
		if jsonrpc.Get(m.Params, "fail") != nil {
			x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no"})
			return
		}
		x.Reply([]byte(`{"protocolVersion":"` + string(x.Version) + `","capabilities":{},"serverInfo":{"name":"t","version":"0"}}`))
	case "ping":
		x.Reply([]byte(`{}`))
	case "seen":
		b, _ := json.Marshal(seen{x.Session, string(x.Version), x.Caller.ID, m.Method, x.Modern, x.Client, x.Header, m.Params, m.Raw})
		x.Reply(b)
	case "unknown":
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Unknown method"})
	case "silent":
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
	case "crowd": // more notifications than wait for a client, and a question among them
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
		x.Sent()
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

func logMessage(i, bytes int) []byte {
	return jsonrpc.Notification("notifications/message", fmt.Appendf(nil, `{"level":"info","data":"%d %s"}`, i, strings.Repeat("x", bytes)))
}

func progress(token []byte, i int) []byte {
	return jsonrpc.Notification("notifications/progress",
		fmt.Appendf(nil, `{"progressToken":%s,"progress":%d}`, orNull(token), i))
}

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
	mux.Handle("/mcp", e.Streamable(s))
	mux.Handle("/other", e.Streamable(s))
	stream, messages := e.SSE("/messages", s)
	mux.Handle("/sse", stream)
	mux.Handle("/messages/", messages)
	mux.Handle("/messages", messages)
	h := httptest.NewServer(mux)
	w := &wire{t: t, srv: s, edge: e, http: h, client: h.Client()}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if err := e.Stop(ctx); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
		h.CloseClientConnections()
		h.Close()
		eventually(t, "nothing is charged to a caller any more", func() bool { return e.Held() == 0 })
	})
	return w
}

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
			r.Header.Set(k, v)
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

func initialize(version string) string {
	return `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"1"}}}`
}

func call(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args +
		`,"_meta":{"progressToken":` + id + `}}}`
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

// stdioClient is a client at the other end of two pipes.
type stdioClient struct {
	t    testing.TB
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

// eventually waits until f holds.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited 20 s in vain: %s", what)
		}
	}
}

// logs is a log that can be searched.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logs) contains(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.buf.String(), s)
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

func reader(s string) io.Reader { return strings.NewReader(s) }

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

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"x":1}}`

func modernCall(tool string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{},` + modernMeta + `}}`
}

func modernHeader(method, name string) header {
	return header{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name}
}
