package downstream_test

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
		newServer().stream(os.Stdin, os.Stdout)
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
	caps  string   // capabilities
	tools []string // raw definitions
	list  func(s *server, m jsonrpc.Message) (result, err string)
	ping  func(reply func(result, err string)) // nil answers
	dial  func(ctx context.Context) error      // before a pipe is opened; may be nil
	hello func() string                        // answers initialize unless it returns nothing; may be nil

	modern bool // refuses the handshake and speaks 2026-07-28

	gate chan struct{} // what "wait" waits for

	mu       sync.Mutex
	received []jsonrpc.Message // all, in order
	dials    int
	live     map[*peer]bool
	answers  map[string]chan jsonrpc.Message
	asked    int
}

func newServer(tools ...string) *server {
	if len(tools) == 0 {
		tools = []string{tool("echo")}
	}
	return &server{caps: `{"tools":{}}`, tools: tools, gate: make(chan struct{}), live: map[*peer]bool{}, answers: map[string]chan jsonrpc.Message{}}
}

// tool is a plain definition; more is added to it, such as annotations.
func tool(name string, more ...string) string {
	return fmt.Sprintf(`{"name":%q,"description":"does %s","inputSchema":{"type":"object"}%s}`, name, name, strings.Join(more, ""))
}

const readOnly = `,"annotations":{"readOnlyHint":true}`

// peer is one connection or stream of the server.
type peer struct {
	send  func([]byte) error
	close func()
}

func (s *server) count(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.received {
		if m.Method == method {
			n++
		}
	}
	return n
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

// cut ends all connections.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.live {
		p.close()
	}
}

// say sends a notification on every connection.
func (s *server) say(message string) {
	s.mu.Lock()
	var peers []*peer
	for p := range s.live {
		peers = append(peers, p)
	}
	s.mu.Unlock()
	for _, p := range peers {
		p.send([]byte(message))
	}
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
	go func() {
		defer theirs.Close()
		s.stream(theirs, theirs)
	}()
	return ours, nil
}

// stream speaks newline-delimited messages until in ends; requests are handled at the same time.
func (s *server) stream(in io.Reader, out io.Writer) {
	var wg sync.WaitGroup
	defer wg.Wait()
	var mu sync.Mutex
	p := &peer{send: func(b []byte) error {
		mu.Lock()
		defer mu.Unlock()
		_, err := out.Write(append(bytes.Clone(b), '\n'))
		return err
	}, close: func() {
		if c, ok := in.(io.Closer); ok {
			c.Close()
		}
	}}
	s.mu.Lock()
	s.live[p] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.live, p)
		s.mu.Unlock()
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		m, bad := jsonrpc.Parse(line)
		if bad != nil {
			continue
		}
		s.note(m)
		if m.IsRequest() {
			wg.Go(func() { s.handle(ctx, m, p) })
		}
	}
}

func (s *server) note(m jsonrpc.Message) {
	s.mu.Lock()
	s.received = append(s.received, m)
	waiting := s.answers[string(m.ID)]
	s.mu.Unlock()
	if m.IsResponse() && waiting != nil {
		waiting <- m
	}
}

// ask sends a request to the client and waits for the answer.
func (s *server) ask(ctx context.Context, p *peer, method string) string {
	s.mu.Lock()
	s.asked++
	id := jsonrpc.StringID("q" + strconv.Itoa(s.asked))
	ch := make(chan jsonrpc.Message, 1)
	s.answers[string(id)] = ch
	s.mu.Unlock()
	p.send(jsonrpc.Request(id, method, nil))
	select {
	case m := <-ch:
		if m.Err != nil {
			return "error " + string(jsonrpc.Get(m.Err, "code"))
		}
		return string(m.Result)
	case <-ctx.Done():
		return ""
	}
}

func (s *server) handle(ctx context.Context, m jsonrpc.Message, p *peer) {
	reply := func(result, err string) {
		if err != "" {
			p.send(jsonrpc.RawError(m.ID, []byte(err)))
		} else if result != "" {
			p.send(jsonrpc.Result(m.ID, []byte(result)))
		}
	}
	text := func(format string, args ...any) {
		reply(fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, jsonrpc.StringID(fmt.Sprintf(format, args...))), "")
	}
	switch m.Method {
	case "server/discover":
		reply(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":`+s.caps+`}`, "")
		return
	case "initialize":
		if s.modern {
			reply("", `{"code":-32602,"message":"no handshake here"}`)
			return
		}
		if s.hello != nil {
			if result := s.hello(); result != "" {
				reply(result, "")
				return
			}
		}
		reply(`{"protocolVersion":"2025-11-25","capabilities":`+s.caps+`,"serverInfo":{"name":"scripted","version":"1"}}`, "")
		return
	case "ping":
		if s.ping != nil {
			s.ping(reply)
		} else {
			reply("{}", "")
		}
		return
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
		return
	}
	token := jsonrpc.Get(m.Params, "_meta", "progressToken")
	progress := func(i int) {
		p.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":10,"message":"m%d"}}`, token, i, i))
	}
	switch name := jsonrpc.Text(jsonrpc.Get(m.Params, "name")); name {
	case "progress":
		for i := range 10 {
			progress(i)
		}
		text("done")
	case "slow": // progress every 20 s for as long as is asked
		rounds, _ := strconv.Atoi(string(jsonrpc.Get(m.Params, "arguments", "rounds")))
		for i := range rounds {
			select {
			case <-time.After(20 * time.Second):
				progress(i)
			case <-ctx.Done():
				return
			}
		}
		text("done")
	case "hang":
	case "wait": // for the test
		<-s.gate
		text("done")
	case "die":
		if p.close(); os.Getenv("DOWNSTREAM_TEST_CHILD") != "" {
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
		times, _ := strconv.Atoi(string(jsonrpc.Get(m.Params, "arguments", "times")))
		answer := s.ask(ctx, p, "sampling/createMessage")
		for range times - 1 {
			answer = s.ask(ctx, p, "sampling/createMessage")
		}
		text("%s", answer)
	case "form", "form then die": // asks for input, and then again if the user declines
		switch answer := string(jsonrpc.Get(m.Params, "inputResponses", "a", "action")); {
		case answer == "" || answer == `"decline"`:
			reply(`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"m"}}},"requestState":"s"}`, "")
		case name == "form":
			text("got %s", jsonrpc.Get(m.Params, "inputResponses", "a"))
		default:
			p.close()
		}
	case "fail":
		reply(`{"isError":true,"content":[{"type":"text","text":"no luck"}]}`, "")
	case "refuse":
		reply("", `{"code":-32050,"message":"refused","data":{"n":9007199254740993}}`)
	case "raw":
		reply(string(jsonrpc.Get(m.Params, "result")), "")
	case "nonsense":
		reply(`[1]`, "")
	default:
		arguments := string(jsonrpc.Get(m.Params, "arguments"))
		if arguments == "" {
			arguments = "{}"
		}
		reply(`{"content":[],"structuredContent":`+arguments+`}`, "")
	}
}

// web serves streamable HTTP with sessions that a restart forgets.
type web struct {
	*server
	url      string
	shut     func()           // closes the port and all connections
	answers  http.HandlerFunc // instead of all this, if set
	mu       sync.Mutex
	sessions map[string]bool
	last     int
	requests []*http.Request
	stream   bool                // has the standalone stream
	opened   atomic.Int64        // standalone streams that restart cuts
	lost     int                 // status for an unknown session
	hook     func(*http.Request) // called with each request; may be nil
}

func serveHTTP(t *testing.T, s *server) *web {
	w := &web{server: s, sessions: map[string]bool{}, lost: http.StatusNotFound}
	srv := httptest.NewServer(w)
	w.url = srv.URL + "/mcp"
	w.shut = sync.OnceFunc(func() { s.cut(); srv.CloseClientConnections(); srv.Close() })
	t.Cleanup(func() { w.shut() })
	return w
}

func (w *web) config(name string) downstream.ServerConfig {
	return downstream.ServerConfig{Name: name, Type: downstream.TransportHTTP, URL: w.url}
}

// restart forgets all sessions and cuts the open streams.
func (w *web) restart() {
	w.mu.Lock()
	w.sessions = map[string]bool{}
	w.mu.Unlock()
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
	body, _ := io.ReadAll(r.Body)
	m, _ := jsonrpc.Parse(body)
	w.mu.Lock()
	instead := w.answers
	w.requests = append(w.requests, r)
	id := r.Header.Get("Mcp-Session-Id")
	known := w.sessions[id]
	if m.Method == "initialize" {
		w.last++
		id = "session-" + strconv.Itoa(w.last)
		w.sessions[id], known = true, true
	}
	if r.Method == http.MethodDelete {
		delete(w.sessions, id)
	}
	hook := w.hook
	w.mu.Unlock()
	if hook != nil {
		hook(r)
	}
	switch {
	case instead != nil:
		r.Body = io.NopCloser(bytes.NewReader(body))
		instead(rw, r)
		return
	case !known:
		rw.WriteHeader(w.lost)
		return
	case r.Method == http.MethodGet && !w.stream:
		rw.WriteHeader(http.StatusMethodNotAllowed)
		return
	case r.Method == http.MethodDelete:
		return
	case r.Method == http.MethodPost && !m.IsRequest():
		w.note(m)
		rw.WriteHeader(http.StatusAccepted)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	rw.Header().Set("Content-Type", "text/event-stream")
	rw.Header().Set("Mcp-Session-Id", id)
	rw.WriteHeader(http.StatusOK)
	rw.(http.Flusher).Flush()
	var mu sync.Mutex
	over := false
	p := &peer{send: func(b []byte) error {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return io.ErrClosedPipe
		}
		_, err := fmt.Fprintf(rw, "event: message\ndata: %s\n\n", b)
		rw.(http.Flusher).Flush()
		return err
	}, close: cancel}
	w.server.mu.Lock()
	w.live[p] = true
	w.server.mu.Unlock()
	defer func() {
		w.server.mu.Lock()
		delete(w.live, p)
		w.server.mu.Unlock()
		mu.Lock()
		over = true
		mu.Unlock()
	}()
	if r.Method == http.MethodGet {
		w.opened.Add(1)
		<-ctx.Done()
		return
	}
	w.note(m)
	w.handle(ctx, m, p)
	switch jsonrpc.Text(jsonrpc.Get(m.Params, "name")) {
	case "hang", "die":
		<-ctx.Done()
	}
}

// serveSSE serves HTTP+SSE of 2024-11-05.
func serveSSE(t *testing.T, s *server) downstream.ServerConfig {
	var mu sync.Mutex
	peers := map[string]*peer{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sse", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		out := make(chan []byte, 1000)
		p := &peer{send: func(b []byte) error { out <- b; return nil }, close: cancel}
		mu.Lock()
		id := strconv.Itoa(len(peers) + 1)
		peers[id] = p
		mu.Unlock()
		s.mu.Lock()
		s.live[p] = true
		s.mu.Unlock()
		defer func() {
			mu.Lock()
			peers[id] = nil
			mu.Unlock()
			s.mu.Lock()
			delete(s.live, p)
			s.mu.Unlock()
		}()
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: /messages/?session_id=%s\n\n", id)
		w.(http.Flusher).Flush()
		for {
			select {
			case b := <-out:
				fmt.Fprintf(w, "event: message\ndata: %s\n\n", b)
				w.(http.Flusher).Flush()
			case <-ctx.Done():
				return
			}
		}
	})
	var wg sync.WaitGroup
	mux.HandleFunc("POST /messages/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		p := peers[r.URL.Query().Get("session_id")]
		mu.Unlock()
		if p == nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		m, _ := jsonrpc.Parse(body)
		s.note(m)
		w.WriteHeader(http.StatusAccepted)
		if m.IsRequest() {
			wg.Go(func() { s.handle(context.Background(), m, p) })
		}
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(func() { s.cut(); srv.CloseClientConnections(); srv.Close(); wg.Wait() })
	return downstream.ServerConfig{Name: "sse", Type: downstream.TransportSSE, URL: srv.URL + "/sse"}
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
