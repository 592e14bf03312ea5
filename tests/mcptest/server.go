package mcptest

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/protocol"
)

// Message is a JSON-RPC message with its parts as they stood.
type Message struct {
	Raw    string          `json:"-"`
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Message) UnmarshalJSON(raw []byte) error {
	type parts Message
	m.Raw = string(raw)
	return json.Unmarshal(raw, (*parts)(m))
}

// Call is the part of the params of tools/call that tools look at.
type Call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Meta      struct {
		Token json.RawMessage `json:"progressToken"`
	} `json:"_meta"`
}

// Call reads the params of tools/call; what does not fit is left zero.
func (m Message) Call() (c Call) {
	_ = json.Unmarshal(m.Params, &c)
	return c
}

// Key returns the key that a tool call is to write.
func (m Message) Key() string { return m.Call().arguments().Key }

// arguments are those of the tools.
type arguments struct {
	Key string `json:"key"`
	MS  int    `json:"ms"`
}

func (c Call) arguments() (a arguments) {
	_ = json.Unmarshal(c.Arguments, &a) // what does not fit is left zero
	return a
}

// Response writes the response to m with a raw result.
func (m Message) Response(result string) string {
	return `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`
}

// Tools is what the Server lists unless it is told otherwise. write and slow change something, echo, wait and
// pid ask and pid do not; slow and wait take the time that their argument ms names and report progress; ask asks the
// client for its roots first; pid answers with the process that serves it.
const Tools = `[` +
	`{"name":"echo","description":"Returns its arguments","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},` +
	`{"name":"pid","description":"Returns the process ID of the server","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},` +
	`{"name":"ask","description":"Asks the client for its roots","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},` +
	`{"name":"wait","description":"Waits","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},` +
	`{"name":"write","description":"Writes a key","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false}},` +
	`{"name":"slow","description":"Writes a key and waits","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false}}]`

// Begun is what wait enters, which changes nothing, under a key.
func Begun(key string) string { return "begun " + key }

// Server is an MCP server. The zero value serves Tools; fields are set before it serves.
type Server struct {
	Ledger Ledger

	// OnHTTP and OnLine see each message first. If they return true they have dealt with it. write writes
	// bytes as they stand, without a line end; end ends the stream.
	OnHTTP func(w http.ResponseWriter, r *http.Request, m Message) bool
	OnLine func(m Message, write func(raw string)) bool
	OnSSE  func(m Message, write func(raw string), end func()) bool

	// OnMessage sees each message of any transport before it is answered. If it returns true it has dealt with it; send
	// takes raw messages, the response last, and is nil for what is no request on streamable HTTP.
	OnMessage func(ctx context.Context, m Message, send func(raw string)) bool
	// Stateless serves streamable HTTP without sessions, and answers each tool call with a stream.
	Stateless bool
	// Version is the protocol version that the server speaks alone, with all that its methods and tools need of it, see
	// era.go; empty = 2025-11-25 with tools alone.
	Version string

	mu       sync.Mutex
	tools    string
	sessions map[string]chan string // what goes to the stream of each
	streams  map[string]*sseStream  // of HTTP+SSE, by session
	running  map[string]context.CancelFunc
	asked    map[string]chan Message // by id of our own requests
	era      era
}

// SetTools replaces the list of tools by a raw JSON array and announces that.
func (s *Server) SetTools(raw string) {
	s.mu.Lock()
	s.tools = raw
	s.mu.Unlock()
	s.Notify(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
}

// Notify sends a raw notification on the stream of each session, unless its queue is full.
func (s *Server) Notify(raw string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, out := range s.sessions {
		select {
		case out <- raw:
		default: // the queue is full
		}
	}
	for _, st := range s.streams {
		st.write("event: message\ndata: " + raw + "\n\n")
	}
}

// Forget forgets all sessions, as a restart does.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
	clear(s.streams)
	s.era.subscribed.Store(false)
	s.era.level.Store(false)
}

const hello = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"mcptest","version":"1"}}`

// Answer serves one message and hands what it has to say to send, the response last.
func (s *Server) Answer(ctx context.Context, m Message, send func(raw string)) {
	if s.OnMessage != nil && s.OnMessage(ctx, m, send) || s.Version != "" && s.answerInEra(ctx, m, send) {
		return
	}
	switch m.Method {
	case "initialize":
		send(m.Response(hello))
	case "ping":
		send(m.Response("{}"))
	case "tools/list":
		s.mu.Lock()
		tools := s.tools
		s.mu.Unlock()
		if tools == "" {
			tools = Tools
		}
		send(m.Response(`{"tools":` + tools + `}`))
	case "tools/call":
		s.call(ctx, m, send)
	case "notifications/cancelled":
		var p struct {
			ID json.RawMessage `json:"requestId"`
		}
		_ = json.Unmarshal(m.Params, &p) // then nothing runs under it
		s.mu.Lock()
		cancel := s.running[string(p.ID)]
		s.mu.Unlock()
		if _, known := s.era.calls.LoadAndDelete(string(p.ID)); known {
			s.era.cancelled.Add(1)
		}
		if cancel != nil {
			cancel()
		}
	case "":
		s.mu.Lock()
		answered := s.asked[string(m.ID)]
		delete(s.asked, string(m.ID))
		s.mu.Unlock()
		if answered != nil {
			answered <- m
		}
	default:
		if m.ID != nil {
			send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"Method not found"}}`)
		}
	}
}

// tick is how often tools that take time report progress.
const tick = 10 * time.Millisecond

func (s *Server) call(ctx context.Context, m Message, send func(raw string)) {
	c := m.Call()
	args := c.arguments()
	entry := args.Key
	if c.Name == "wait" {
		entry = Begun(args.Key)
	}
	if c.Name == "write" || c.Name == "slow" || c.Name == "wait" {
		if err := s.Ledger.Add(entry); err != nil {
			send(m.Response(`{"isError":true,"content":[{"type":"text","text":"the ledger is broken"}]}`))
			return
		}
	}
	if c.Name == "slow" || c.Name == "wait" {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		s.mu.Lock()
		if s.running == nil {
			s.running = map[string]context.CancelFunc{}
		}
		s.running[string(m.ID)] = cancel
		s.mu.Unlock()
		s.era.calls.Store(string(m.ID), true)
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.running, string(m.ID))
		}()
		if !s.work(ctx, c, time.Duration(args.MS)*time.Millisecond, send) {
			if s.Version == Modern { // the end of the stream cancels
				s.era.cancelled.Add(1)
			}
			return
		}
	}
	if c.Name == "ask" {
		if _, ok := s.ask(ctx, "roots/list", "{}", send); !ok {
			return
		}
	}
	text := string(c.Arguments)
	if c.Name == "pid" {
		text = fmt.Sprint(os.Getpid())
	}
	quoted, _ := json.Marshal(text) // strings always marshal
	send(m.Response(`{"content":[{"type":"text","text":` + string(quoted) + `}]}`))
}

// ask asks the client and waits for the answer, whatever it is. It returns false when ctx ends first.
func (s *Server) ask(ctx context.Context, method, params string, send func(raw string)) (answer Message, ok bool) {
	id, answered := `"`+rand.Text()+`"`, make(chan Message, 1)
	s.mu.Lock()
	if s.asked == nil {
		s.asked = map[string]chan Message{}
	}
	s.asked[id] = answered
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.asked, id)
	}()
	send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	select {
	case answer = <-answered:
		return answer, true
	case <-ctx.Done():
		return answer, false
	}
}

// work lets time pass and reports progress. It returns false when ctx ends first.
func (s *Server) work(ctx context.Context, c Call, d time.Duration, send func(raw string)) bool {
	end := time.NewTimer(d)
	defer end.Stop()
	beat := time.NewTicker(tick)
	defer beat.Stop()
	for n := 1; ; n++ {
		if c.Meta.Token != nil {
			send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`,
				c.Meta.Token, n))
		}
		select {
		case <-beat.C:
		case <-end.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// ServeHTTP implements http.Handler: HTTP+SSE on paths that end in /sse, streamable HTTP on others.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/sse") {
		s.ServeSSE(w, r)
		return
	}
	var m Message
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &m) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
	}
	if s.OnHTTP != nil && s.OnHTTP(w, r, m) {
		return
	}
	if s.Stateless || s.Version == Modern {
		if r.Method == http.MethodPost {
			s.post(w, r, m)
		} else {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
		return
	}
	session := r.Header.Get("Mcp-Session-Id")
	s.mu.Lock()
	if m.Method == "initialize" {
		session = rand.Text()
		s.open(session)
	}
	out := s.sessions[session]
	if r.Method == http.MethodDelete {
		delete(s.sessions, session)
	}
	s.mu.Unlock()
	switch {
	case out == nil:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		stream(w, r, out)
	case r.Method == http.MethodPost:
		w.Header().Set("Mcp-Session-Id", session)
		s.post(w, r, m)
	}
}

// open returns a queue for the notifications of a new session. The caller holds mu.
func (s *Server) open(session string) chan string {
	if s.sessions == nil {
		s.sessions = map[string]chan string{}
	}
	s.sessions[session] = make(chan string, 16)
	return s.sessions[session]
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, m Message) {
	if m.ID == nil || m.Method == "" {
		w.WriteHeader(http.StatusAccepted)
		s.Answer(r.Context(), m, nil)
		return
	}
	name := m.Call().Name
	streams := name == "slow" || name == "wait" || name == "ask" ||
		(s.Stateless || s.Version != "") && m.Method == "tools/call" || m.Method == protocol.MethodListen
	if !streams {
		if s.Version == Modern && slices.Contains(removed, m.Method) {
			w.WriteHeader(http.StatusNotFound)
		}
		w.Header().Set("Content-Type", "application/json")
		s.Answer(r.Context(), m, func(raw string) { _, _ = io.WriteString(w, raw) }) // a router that is gone hears nothing
		return
	}
	BeginEvents(w)
	s.Answer(r.Context(), m, func(raw string) { WriteEvent(w, raw) })
}

// BeginEvents makes the answer an event stream.
func BeginEvents(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // a reader that is gone hears nothing
}

// WriteEvent writes one message to an event stream.
func WriteEvent(w http.ResponseWriter, raw string) {
	_, _ = io.WriteString(w, "event: message\ndata: "+raw+"\n\n")
	_ = http.NewResponseController(w).Flush()
}

// stream is a session's own stream.
func stream(w http.ResponseWriter, r *http.Request, out <-chan string) {
	BeginEvents(w)
	for {
		select {
		case raw := <-out:
			WriteEvent(w, raw)
		case <-r.Context().Done():
			return
		}
	}
}

// ServeLines serves newline-delimited messages until in ends.
func (s *Server) ServeLines(in io.Reader, out io.Writer) {
	var mu sync.Mutex
	write := func(raw string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.WriteString(out, raw) // the reader is gone then
	}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var m Message
		if json.Unmarshal(line, &m) != nil || s.OnLine != nil && s.OnLine(m, write) {
			continue
		}
		wg.Go(func() { s.Answer(ctx, m, func(raw string) { write(raw + "\n") }) })
	}
	cancel()
	wg.Wait()
}
