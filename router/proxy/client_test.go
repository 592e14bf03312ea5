package proxy_test

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

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/router/edge"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

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

	mu      sync.Mutex
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
	resp, err := c.request(http.MethodGet, "")
	if err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fatalf("GET %s: got %v, %v, want 200", c.path, resp, err)
	}
	c.wg.Go(func() {
		defer resp.Body.Close()
		_ = mcptest.Events(resp.Body, func(_, data string) { c.take(data, nil) }) // it ends with the client
	})
}

// stdio opens a session on newline-delimited messages.
func (w *world) stdio(h edge.Handler) *client {
	w.t.Helper()
	return w.stdioAs(h, "test", nil)
}

func (w *world) stdioAs(h edge.Handler, name string, answers func(jsonrpc.Message) string) *client {
	w.t.Helper()
	c := w.newClient("stdio")
	c.name, c.answers = name, answers
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
		if err := w.edge.ServeStdio(c.ctx, in, out, h); err != nil && c.ctx.Err() == nil {
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
	c.hello()
	return c
}

func (c *client) request(method, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(c.ctx, method, c.w.url+c.path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	req.Header = c.header.Clone()
	c.mu.Unlock()
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
		if req.Header.Get("Accept") == "" {
			req.Header.Set("Accept", "application/json, text/event-stream")
		}
	}
	return c.w.transport.RoundTrip(req)
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

func (c *client) post(a *answer, body string) {
	defer c.finish(a)
	resp, err := c.request(http.MethodPost, body)
	if err != nil {
		if c.ctx.Err() == nil && !c.w.stopping.Load() {
			c.t.Errorf("POST %s: %v", c.path, err)
		}
		return
	}
	defer resp.Body.Close()
	a.status, a.header = resp.StatusCode, resp.Header
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		_ = mcptest.Events(resp.Body, func(_, data string) { c.take(data, a) }) // what is missing shows in the answer
		return
	}
	raw, _ := io.ReadAll(resp.Body) // what is missing shows in the message
	if resp.StatusCode != http.StatusOK {
		a.refused = string(raw)
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
	resp, err := c.request(http.MethodPost, raw)
	if err != nil {
		if c.ctx.Err() == nil && !c.w.stopping.Load() {
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
		resp, err := c.request(http.MethodDelete, "")
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
	a := c.do("tools/list", "{}")
	if a.result == "" {
		c.t.Fatalf("tools/list: got error %s, want a list", a.err)
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

// readAll returns the body of an answer.
func readAll(t testing.TB, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading an answer: %v", err)
	}
	if text := string(raw); strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		_ = mcptest.Events(strings.NewReader(text), func(_, data string) { raw = []byte(data) })
	}
	return string(raw)
}
