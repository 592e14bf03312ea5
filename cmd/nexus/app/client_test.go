package app_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// message is a JSON-RPC message with its parts as they stood.
type message = mcptest.Message

func parseMessage(raw []byte) message {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		m.Method = "no JSON: " + err.Error()
	}
	return m
}

// reply is all that came for one request, in order.
type reply struct {
	notes  []message // notifications before the response
	Result json.RawMessage
	Error  json.RawMessage
	done   chan struct{} // closed with the response
}

// client is an MCP client that keeps what it gets, byte for byte. It speaks one of the three transports.
type client struct {
	t      *testing.T
	answer func(m message) string // the result for a request of the router; nil or no result refuses

	send func(raw string, to *reply) // sends a message; to gets what comes on a stream of its own

	answers sync.WaitGroup // to requests of the router, which must have left before the client is closed

	mu      sync.Mutex
	leaving bool // answers nothing more
	last    int
	pending map[string]*reply // by id
	tokens  map[string]*reply // by progress token
	stray   []string          // messages that belong to no open request
	loose   chan message      // notifications without a token on shared streams

	schemas map[string]*jsonschema.Schema // output schemas by tool, once asked for
}

func newClient(t *testing.T) *client {
	return &client{t: t, pending: map[string]*reply{}, tokens: map[string]*reply{}, loose: make(chan message, 100), schemas: map[string]*jsonschema.Schema{}}
}

// transports are the ways to reach an App.
var transports = map[string]func(t *testing.T, r *running, caps string) *client{
	"http": func(t *testing.T, r *running, caps string) *client { return r.dial(caps, nil) },
	"sse":  func(t *testing.T, r *running, caps string) *client { return r.dialSSE(caps, nil) },
	"stdio": func(t *testing.T, r *running, caps string) *client {
		c, _ := r.dialStdio(caps)
		return c
	},
}

const initializeParams = `{"protocolVersion":"2025-06-18","capabilities":%s,"clientInfo":{"name":"test","version":"1"}}`

func (c *client) initialize(caps string) {
	c.t.Helper()
	if caps == "" {
		caps = "{}"
	}
	if r := c.do("initialize", fmt.Sprintf(initializeParams, caps)); r.Error != nil {
		c.t.Fatalf("initialize: got error %s, want a result", r.Error)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
}

// start sends a request without waiting for the answer.
func (c *client) start(method, params string) (*reply, int) {
	c.mu.Lock()
	c.last++
	id := c.last
	r := &reply{done: make(chan struct{})}
	c.pending[fmt.Sprint(id)] = r
	var meta struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal([]byte(params), &meta) // then there is no token
	if token := string(meta.Meta.Token); token != "" {
		c.tokens[token] = r
	}
	c.mu.Unlock()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params), r)
	return r, id
}

// wait waits for the answer to a request.
func (c *client) wait(r *reply) *reply {
	c.t.Helper()
	select {
	case <-r.done:
	case <-time.After(deadline):
		c.t.Fatalf("no answer within %v", deadline)
	}
	return r
}

func (c *client) do(method, params string) *reply {
	c.t.Helper()
	r, _ := c.start(method, params)
	return c.wait(r)
}

// call calls a tool; meta is raw JSON or empty.
func (c *client) call(tool, arguments, meta string) *reply {
	c.t.Helper()
	return c.do("tools/call", callParams(tool, arguments, meta))
}

func callParams(tool, arguments, meta string) string {
	params := `{"name":` + quote(tool) + `,"arguments":` + arguments
	if meta != "" {
		params += `,"_meta":` + meta
	}
	return params + "}"
}

// take sorts one message that has arrived; own is the request on whose own stream it came, if any.
func (c *client) take(raw []byte, own *reply) {
	m := parseMessage(raw)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Method != "" && m.ID != nil:
		if !c.leaving {
			c.answers.Go(func() { c.respond(m) })
		}
	case m.Method != "":
		var p struct {
			Token json.RawMessage `json:"progressToken"`
		}
		_ = json.Unmarshal(m.Params, &p) // then there is no token
		to := own
		if to == nil && p.Token != nil {
			to = c.tokens[string(p.Token)]
		}
		switch {
		case to != nil && to.open():
			to.notes = append(to.notes, m)
		case to == nil && p.Token == nil:
			c.loose <- m
		default:
			c.stray = append(c.stray, m.Raw)
		}
	default:
		r := c.pending[string(m.ID)]
		if r == nil || !r.open() || own != nil && r != own {
			c.stray = append(c.stray, m.Raw)
			return
		}
		r.Result, r.Error = m.Result, m.Error
		close(r.done)
	}
}

func (r *reply) open() bool {
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}

// leave waits for the answers that are on their way.
func (c *client) leave() {
	c.mu.Lock()
	c.leaving = true
	c.mu.Unlock()
	c.answers.Wait()
}

// respond answers a request of the router.
func (c *client) respond(m message) {
	result := ""
	if c.answer != nil {
		result = c.answer(m)
	}
	if result == "" {
		c.send(`{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32601,"message":"no"}}`, nil)
		return
	}
	c.send(`{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+result+`}`, nil)
}

// wantNoStray fails the test if messages came that belong to no open request.
func (c *client) wantNoStray() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.stray) > 0 {
		c.t.Errorf("stray messages: got %d, first %s, want none", len(c.stray), c.stray[0])
	}
}

// raw sends an HTTP request and returns the answer.
func (r *running) raw(method, path, body string, header map[string]string) (*http.Response, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, r.base+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: deadline}).Do(req)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp, string(text)
}

// dial opens a session over streamable HTTP.
func (r *running) dial(caps string, header map[string]string) *client {
	r.t.Helper()
	return r.dialAt("/mcp", caps, header)
}

// dialAt opens a session on a path.
func (r *running) dialAt(path, caps string, header map[string]string) *client {
	r.t.Helper()
	c := r.anonymousAt(path, header)
	c.initialize(caps)
	return c
}

// anonymous is a client over streamable HTTP without a session until it initializes one.
func (r *running) anonymous(header map[string]string) *client { return r.anonymousAt("/mcp", header) }

func (r *running) anonymousAt(path string, header map[string]string) *client {
	c := newClient(r.t)
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	r.t.Cleanup(func() { c.leave(); cancel(); wg.Wait(); transport.CloseIdleConnections() })
	var session string
	c.send = func(raw string, to *reply) {
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.base+path, strings.NewReader(raw))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		for name, value := range header {
			req.Header.Set(name, value)
		}
		c.mu.Lock()
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		c.mu.Unlock()
		post := func() {
			resp, err := transport.RoundTrip(req)
			if err != nil {
				if ctx.Err() == nil {
					c.t.Errorf("POST %s: %v", path, err)
				}
				return
			}
			defer resp.Body.Close()
			if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
				c.mu.Lock()
				session = id
				c.mu.Unlock()
			}
			if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
				_ = mcptest.Events(resp.Body, func(_, data string) { c.take([]byte(data), to) })
			} else if body, _ := io.ReadAll(resp.Body); len(body) > 0 {
				c.take(body, to)
			}
		}
		if to == nil {
			post()
		} else {
			wg.Go(post)
		}
	}
	return c
}

// dialSSE opens a session over HTTP+SSE.
func (r *running) dialSSE(caps string, header map[string]string) *client {
	r.t.Helper()
	c := newClient(r.t)
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	ctx, cancel := context.WithCancel(context.Background())
	request := func(method, path, body string) (*http.Response, error) {
		req, _ := http.NewRequestWithContext(ctx, method, r.base+path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		for name, value := range header {
			req.Header.Set(name, value)
		}
		return transport.RoundTrip(req)
	}
	resp, err := request(http.MethodGet, "/sse", "")
	if err != nil || resp.StatusCode != http.StatusOK {
		cancel()
		r.t.Fatalf("GET /sse: got %v, %v, want 200", resp, err)
	}
	endpoint := make(chan string, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = mcptest.Events(resp.Body, func(event, data string) {
			if event == "endpoint" {
				endpoint <- data
			} else {
				c.take([]byte(data), nil)
			}
		})
	})
	r.t.Cleanup(func() {
		c.leave()
		cancel()
		resp.Body.Close()
		wg.Wait()
		transport.CloseIdleConnections()
	})
	path := <-endpoint
	c.send = func(raw string, _ *reply) {
		resp, err := request(http.MethodPost, path, raw)
		if err != nil {
			if ctx.Err() == nil { // the answer to a question may end the test before its POST
				c.t.Errorf("POST %s: %v", path, err)
			}
			return
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusAccepted {
			c.t.Errorf("POST %s: got %d, want 202", path, resp.StatusCode)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	c.initialize(caps)
	return c
}

// dialStdio serves the App on pipes. The function closes stdin and returns what ServeStdio returned.
func (r *running) dialStdio(caps string) (c *client, end func() error) {
	r.t.Helper()
	c = newClient(r.t)
	fromClient, in := io.Pipe()
	out, toClient := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- r.ServeStdio(context.Background(), "router", fromClient, toClient)
		toClient.Close()
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			c.take(bytes.TrimSpace(line), nil)
		}
	}()
	var mu sync.Mutex
	c.send = func(raw string, _ *reply) {
		mu.Lock()
		defer mu.Unlock()
		if _, err := io.WriteString(in, raw+"\n"); err != nil {
			c.t.Errorf("writing to stdin: %v", err)
		}
	}
	var once sync.Once
	var err error
	end = func() error {
		once.Do(func() { in.Close(); err = <-served; <-read })
		return err
	}
	r.t.Cleanup(func() {
		c.leave()
		_ = end()
	})
	if caps != "none" {
		c.initialize(caps)
	}
	return c, end
}
