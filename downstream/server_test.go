package downstream_test

import (
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
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/link"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// TestMain lets the test binary be the child process of stdio tests.
func TestMain(m *testing.M) {
	switch os.Getenv("DOWNSTREAM_TEST_CHILD") {
	case "":
		goleak.VerifyTestMain(m)
	case "deaf":
		time.Sleep(time.Minute) // reads nothing, says nothing
	default:
		if file := os.Getenv("DOWNSTREAM_TEST_WAIT"); file != "" {
			waitFor(file)
		}
		newServer().ServeLines(os.Stdin, os.Stdout)
	}
}

// waitFor returns once there is a file of that name. Beside it, it notes that the process has started.
func waitFor(name string) {
	started, err := os.OpenFile(name+".started", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(started, os.Getpid())
		started.Close()
	}
	for _, err := os.Stat(name); err != nil; _, err = os.Stat(name) {
		time.Sleep(5 * time.Millisecond)
	}
}

// child is a stdio server: the test binary.
func child(name, mode string) downstream.ServerConfig {
	return downstream.ServerConfig{
		Name: name, Type: downstream.TransportStdio, Command: os.Args[0],
		Env: map[string]redact.Secret{"DOWNSTREAM_TEST_CHILD": redact.Secret(mode)},
	}
}

// server is a scripted MCP server on any transport. What its tools do is in their names.
type server struct {
	mcptest.Server
	caps   string   // capabilities
	tools  []string // raw definitions
	list   func(s *server, m mcptest.Message) (result, err string)
	ping   func(reply func(result, err string)) // nil answers
	dial   func(ctx context.Context) error      // before a pipe is opened; may be nil
	hello  func() string                        // answers initialize unless it returns nothing; may be nil
	modern bool                                 // refuses the handshake and speaks 2026-07-28
	gate   chan struct{}                        // what "wait" waits for

	mu       sync.Mutex
	received []mcptest.Message
	dials    int
	live     map[*connection]bool
	answers  map[string]chan mcptest.Message
}

// connection is a pipe to the server, or a request over HTTP, which has no Writer.
type connection struct {
	io.Writer
	close func()
}

func newServer(tools ...string) *server {
	if len(tools) == 0 {
		tools = []string{tool("echo")}
	}
	s := &server{
		caps: `{"tools":{}}`, tools: tools, gate: make(chan struct{}),
		live: map[*connection]bool{}, answers: map[string]chan mcptest.Message{},
	}
	s.OnMessage = s.handle
	return s
}

// tool is a plain definition; more is added to it, such as annotations.
func tool(name string, more ...string) string {
	return fmt.Sprintf(`{"name":%q,"description":"does %s","inputSchema":{"type":"object"}%s}`, name, name, strings.Join(more, ""))
}

const readOnly = `,"annotations":{"readOnlyHint":true}`

func (s *server) count(method string) int { return len(s.params(method)) }

// params are those of the received messages of a method, in order.
func (s *server) params(method string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.received {
		if m.Method == method {
			all = append(all, string(m.Params))
		}
	}
	return all
}

// connections returns how often the server was dialled.
func (s *server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials
}

// open returns how many connections there are.
func (s *server) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live)
}

// track counts a connection until forget.
func (s *server) track(c *connection) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[c] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.live, c)
	}
}

// cut ends all connections.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.live {
		c.close()
	}
}

// say sends a notification on every pipe and every standalone stream.
func (s *server) say(message string) {
	s.mu.Lock()
	var pipes []*connection
	for c := range s.live {
		if c.Writer != nil {
			pipes = append(pipes, c)
		}
	}
	s.mu.Unlock()
	for _, c := range pipes {
		_, _ = io.WriteString(c, message+"\n")
	}
	s.Notify(message)
}

// embedded opens pipes to the server.
func (s *server) embedded(ctx context.Context) (io.ReadWriteCloser, error) {
	s.mu.Lock()
	s.dials++
	s.mu.Unlock()
	if s.dial != nil {
		if err := s.dial(ctx); err != nil {
			return nil, err
		}
	}
	ours, theirs := net.Pipe()
	forget := s.track(&connection{theirs, func() { theirs.Close() }})
	go func() {
		defer theirs.Close()
		defer forget()
		s.ServeLines(theirs, theirs)
	}()
	return ours, nil
}

// ask sends a request to the client and waits for the answer.
func (s *server) ask(ctx context.Context, send func(string), method string) string {
	ch := make(chan mcptest.Message, 1)
	s.mu.Lock()
	id := fmt.Sprintf(`"q%d"`, len(s.answers))
	s.answers[id] = ch
	s.mu.Unlock()
	send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}`)
	select {
	case m := <-ch:
		if m.Error != nil {
			return "error " + string(jsonrpc.Get(m.Error, "code"))
		}
		return string(m.Result)
	case <-ctx.Done():
		return ""
	}
}

// handle is the OnMessage of the server.
func (s *server) handle(ctx context.Context, m mcptest.Message, send func(raw string)) bool {
	s.mu.Lock()
	s.received = append(s.received, m)
	waiting := s.answers[string(m.ID)]
	s.mu.Unlock()
	switch {
	case m.Method == "" && waiting != nil:
		waiting <- m
	case m.Method != "" && m.ID != nil:
		s.answer(ctx, m, send)
	}
	return true
}

func (s *server) answer(ctx context.Context, m mcptest.Message, send func(raw string)) {
	reply := func(result, err string) {
		if err != "" {
			send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":` + err + `}`)
		} else if result != "" {
			send(m.Response(result))
		}
	}
	switch m.Method {
	case "server/discover":
		if !s.modern {
			reply("", `{"code":-32601,"message":"Method not found"}`)
			return
		}
		reply(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":`+s.caps+`}`, "")
	case "initialize":
		result := `{"protocolVersion":"2025-11-25","capabilities":` + s.caps + `,"serverInfo":{"name":"scripted","version":"1"}}`
		if s.hello != nil {
			if own := s.hello(); own != "" {
				result = own
			}
		}
		if s.modern {
			reply("", `{"code":-32602,"message":"no handshake here"}`)
		} else {
			reply(result, "")
		}
	case "ping":
		if s.ping != nil {
			s.ping(reply)
		} else {
			reply("{}", "")
		}
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		if s.list != nil {
			reply(s.list(s, m))
		} else if m.Method == "tools/list" {
			s.mu.Lock()
			tools := strings.Join(s.tools, ",")
			s.mu.Unlock()
			reply(`{"tools":[`+tools+`]}`, "")
		} else {
			reply("", `{"code":-32601,"message":"Method not found"}`)
		}
	default:
		s.call(ctx, m, send, reply)
	}
}

// call does what the name of a tool says.
func (s *server) call(ctx context.Context, m mcptest.Message, send func(string), reply func(result, err string)) {
	text := func(format string, args ...any) {
		reply(fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, jsonrpc.StringID(fmt.Sprintf(format, args...))), "")
	}
	token := jsonrpc.Get(m.Params, "_meta", "progressToken")
	progress := func(i int) {
		send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":10,"message":"m%d"}}`, token, i, i))
	}
	number := func(argument string) int {
		n, _ := strconv.Atoi(string(jsonrpc.Get(m.Params, "arguments", argument)))
		return n
	}
	switch name := jsonrpc.Text(jsonrpc.Get(m.Params, "name")); name {
	case "progress":
		for i := range 10 {
			progress(i)
		}
		text("done")
	case "slow": // progress every 20 s for as long as is asked
		for i := range number("rounds") {
			select {
			case <-time.After(20 * time.Second):
				progress(i)
			case <-ctx.Done():
				return
			}
		}
		text("done")
	case "hang":
		<-ctx.Done()
	case "wait": // for the test
		<-s.gate
		text("done")
	case "die":
		if s.cut(); os.Getenv("DOWNSTREAM_TEST_CHILD") != "" {
			os.Exit(3)
		}
	case "pid":
		text("%d", os.Getpid())
	case "family": // a process of its own, which it does not wait for
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			text("%v", err)
			return
		}
		text("%d", cmd.Process.Pid)
	case "ask":
		answer := s.ask(ctx, send, "sampling/createMessage")
		for range number("times") - 1 {
			answer = s.ask(ctx, send, "sampling/createMessage")
		}
		text("%s", answer)
	case "form", "form then die": // asks for input, and then again if the user declines
		switch answer := string(jsonrpc.Get(m.Params, "inputResponses", "a", "action")); {
		case answer == "" || answer == `"decline"`:
			reply(`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"m"}}},"requestState":"s"}`, "")
		case name == "form":
			text("got %s", jsonrpc.Get(m.Params, "inputResponses", "a"))
		default:
			s.cut()
		}
	case "fail":
		reply(`{"isError":true,"content":[{"type":"text","text":"no luck"}]}`, "")
	case "refuse":
		reply("", `{"code":-32050,"message":"refused","data":{"n":9007199254740993}}`)
	case "raw":
		reply(string(jsonrpc.Get(m.Params, "result")), "")
	default:
		reply(`{"content":[],"structuredContent":{}}`, "")
	}
}

// web serves streamable HTTP at /mcp and HTTP+SSE at /sse.
type web struct {
	*server
	url      string
	shut     func()           // closes the port and all connections
	answers  http.HandlerFunc // instead of all this, if set
	mu       sync.Mutex
	requests []*http.Request
	stream   bool                // has the standalone stream
	opened   atomic.Int64        // standalone streams that restart cuts
	lost     int                 // status for an unknown session
	hook     func(*http.Request) // called with each request; may be nil
}

func serveHTTP(t *testing.T, s *server) *web {
	w := &web{server: s, lost: http.StatusNotFound}
	srv := httptest.NewServer(w)
	w.url = srv.URL + "/mcp"
	w.shut = sync.OnceFunc(func() { s.cut(); srv.CloseClientConnections(); srv.Close() })
	t.Cleanup(func() { w.shut() })
	return w
}

func (w *web) config(name string) downstream.ServerConfig {
	return downstream.ServerConfig{Name: name, Type: downstream.TransportHTTP, URL: w.url}
}

// serveSSE serves HTTP+SSE of 2024-11-05.
func serveSSE(t *testing.T, s *server) downstream.ServerConfig {
	c := serveHTTP(t, s).config("sse")
	c.Type, c.URL = downstream.TransportSSE, strings.TrimSuffix(c.URL, "mcp")+"sse"
	return c
}

// restart forgets all sessions and cuts the open streams.
func (w *web) restart() {
	w.Forget()
	w.cut()
}

// seen returns the requests of an HTTP method.
func (w *web) seen(method string) (all []*http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.requests {
		if r.Method == method {
			all = append(all, r)
		}
	}
	return all
}

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // from then on the context of r ends with the connection
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	instead, hook := w.answers, w.hook
	w.requests = append(w.requests, r)
	w.mu.Unlock()
	if hook != nil {
		hook(r)
	}
	get := r.Method == http.MethodGet && r.URL.Path == "/mcp"
	switch {
	case instead != nil:
		instead(rw, r)
		return
	case get && !w.stream:
		rw.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer w.track(&connection{close: cancel})()
	w.Server.ServeHTTP(&writer{rw, w, get}, r.WithContext(ctx))
}

// writer counts the standalone streams that open, and answers for an unknown session with the status lost.
type writer struct {
	http.ResponseWriter
	web    *web
	stream bool
}

func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	if status == http.StatusNotFound {
		status = w.web.lost
	} else if w.stream {
		w.web.opened.Add(1)
	}
	w.ResponseWriter.WriteHeader(status)
}

// pipes configures servers in this process, in order.
func pipes(names []string, servers ...*server) downstream.Options {
	o := downstream.Options{Access: downstream.Access{Embedded: map[string]downstream.DialFunc{}}}
	for i, name := range names {
		o.Servers = append(o.Servers, downstream.ServerConfig{Name: name, Type: downstream.TransportStdio})
		o.Embedded[name] = servers[i].embedded
	}
	return o
}

func start(t *testing.T, o downstream.Options) *downstream.Manager {
	t.Helper()
	m := downstream.New(o)
	m.Start()
	t.Cleanup(m.Stop)
	return m
}

// request is a tool call.
func request(server, tool string) *downstream.Request {
	return &downstream.Request{Server: server, Tool: tool, Method: "tools/call", Params: []byte(`{"name":"` + tool + `"}`)}
}

// resultText is the text of the first block of a result.
func resultText(r link.Reply) string {
	var v struct{ Content []struct{ Text string } }
	if json.Unmarshal(r.Result, &v) != nil || len(v.Content) == 0 {
		return string(r.Result) + string(r.Err)
	}
	return v.Content[0].Text
}

// failureOf returns the failure in err, an empty one if there is none.
func failureOf(err error) *link.Failure {
	var f *link.Failure
	if !errors.As(err, &f) {
		return &link.Failure{}
	}
	return f
}

// within fails the test if f takes longer.
func within(t *testing.T, limit time.Duration, what string, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > limit {
		t.Errorf("%s took %v, want at most %v", what, took, limit)
	}
}

// logger logs everything.
func logger(to io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
