package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// peer is an MCP server that sends exactly the bytes that its tools return, and keeps what it was sent.
type peer struct {
	mcptest.Server
	tools []peerTool

	mu      sync.Mutex
	seen    []message
	running map[string]context.CancelFunc
	waiting map[string]chan message
	asked   int
}

// peerTool is a tool: its definition without the name, and what a call of it does.
type peerTool struct {
	name, def string
	call      func(c *peerCall) (result, rpcErr string)
}

// peerCall is one call of a tool.
type peerCall struct {
	ctx       context.Context // ends with a cancellation or the connection
	arguments string
	meta      string
	token     string // raw
	send      func(raw string)
	peer      *peer
}

// progress reports progress; raw follows the token, as in `"progress":1,"total":2`.
func (c *peerCall) progress(raw string) {
	c.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + c.token + `,` + raw + `}}`)
}

// ask sends a request to the client and waits for the response.
func (c *peerCall) ask(method, params string) message {
	p := c.peer
	p.mu.Lock()
	p.asked++
	id := fmt.Sprint(p.asked)
	answer := make(chan message, 1)
	p.waiting[id] = answer
	p.mu.Unlock()
	c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	select {
	case m := <-answer:
		return m
	case <-c.ctx.Done():
		return message{}
	}
}

func newPeer(tools ...peerTool) *peer {
	p := &peer{tools: tools, running: map[string]context.CancelFunc{}, waiting: map[string]chan message{}}
	p.Stateless, p.OnMessage = true, p.handle
	return p
}

// serve serves the peer over HTTP for the time of the test.
func (p *peer) serve(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return s
}

const object = `"inputSchema":{"type":"object"}`

// textTool answers every call with the text.
func textTool(name, def, text string) peerTool {
	return peerTool{name, def, func(*peerCall) (string, string) { return textResult(text), "" }}
}

func textResult(text string) string {
	return `{"content":[{"type":"text","text":` + quote(text) + `}]}`
}

// echoTool answers with its arguments as structuredContent.
func echoTool(name string) peerTool {
	return peerTool{name, object + `,"annotations":{"readOnlyHint":true}`, func(c *peerCall) (string, string) {
		return `{"content":[{"type":"text","text":"ok"}],"structuredContent":` + c.arguments + `}`, ""
	}}
}

// floodTool sends 100 progress notifications as fast as it can and then its arguments.
func floodTool() peerTool {
	return peerTool{"flood", object, func(c *peerCall) (string, string) {
		for i := 1; i <= 100; i++ {
			c.progress(fmt.Sprintf(`"progress":%d,"total":100`, i))
		}
		return `{"content":[],"structuredContent":` + c.arguments + `}`, ""
	}}
}

// hangTool waits until it is cancelled, and says so on the channel.
func hangTool(name string, started, cancelled chan string) peerTool {
	return peerTool{name, object, func(c *peerCall) (string, string) {
		started <- c.arguments
		<-c.ctx.Done()
		cancelled <- c.arguments
		return textResult("too late"), ""
	}}
}

// received returns the messages of a method, oldest first.
func (p *peer) received(method string) (all []message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.seen {
		if m.Method == method {
			all = append(all, m)
		}
	}
	return all
}

// calls returns the raw params of all tool calls, oldest first.
func (p *peer) calls() (all []string) {
	for _, m := range p.received("tools/call") {
		all = append(all, string(m.Params))
	}
	return all
}

// handle takes every message. The response to a request goes to send as well.
func (p *peer) handle(ctx context.Context, m message, send func(raw string)) bool {
	p.mu.Lock()
	p.seen = append(p.seen, m)
	id := string(m.ID)
	if m.Method == "" {
		if waiting := p.waiting[id]; waiting != nil {
			delete(p.waiting, id)
			waiting <- m
		}
	}
	p.mu.Unlock()
	result := func(raw string) { send(`{"jsonrpc":"2.0","id":` + id + `,"result":` + raw + `}`) }
	switch m.Method {
	case "initialize":
		result(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"1"}}`)
	case "ping":
		result(`{}`)
	case "tools/list":
		var defs []string
		for _, t := range p.tools {
			defs = append(defs, `{"name":`+quote(t.name)+`,`+t.def+`}`)
		}
		result(`{"tools":[` + strings.Join(defs, ",") + `]}`)
	case "tools/call":
		p.call(ctx, m, id, send)
	case "notifications/cancelled":
		var params struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		_ = json.Unmarshal(m.Params, &params) // tests look at what was received
		p.mu.Lock()
		cancel := p.running[string(params.RequestID)]
		p.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	}
	return true
}

func (p *peer) call(ctx context.Context, m message, id string, send func(raw string)) {
	var params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &params) // tests look at what was received
	var meta struct {
		Token json.RawMessage `json:"progressToken"`
	}
	_ = json.Unmarshal(params.Meta, &meta)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.mu.Lock()
	p.running[id] = cancel
	p.mu.Unlock()
	for _, t := range p.tools {
		if t.name != params.Name {
			continue
		}
		result, rpcErr := t.call(&peerCall{ctx: ctx, arguments: string(params.Arguments), meta: string(params.Meta), token: string(meta.Token), send: send, peer: p})
		switch {
		case rpcErr != "":
			send(`{"jsonrpc":"2.0","id":` + id + `,"error":` + rpcErr + `}`)
		case result != "":
			send(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`)
		}
		return
	}
	send(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32602,"message":"no such tool"}}`)
}
