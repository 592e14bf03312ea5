package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const (
	maxLine  = 4 << 20 // bytes of one message
	maxCalls = 32      // calls that run at once on a connection; further reading waits
)

// connection is one byte stream to one client.
type connection struct {
	server *server.MCPServer
	fail   context.CancelCauseFunc // ends the connection

	writing sync.Mutex // one message at a time; held while writing, so progress cannot pass a result
	out     io.Writer

	mu    sync.Mutex
	calls map[string]*call // by canonical id
}

// call is a request that is being worked on.
type call struct {
	cancel    context.CancelFunc
	cancelled bool // under connection.mu: the client no longer wants an answer
}

// request is the part of a message that this file needs; mcp-go reads the rest.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

type response struct {
	JSONRPC string                   `json:"jsonrpc"`
	ID      json.RawMessage          `json:"id"`
	Result  any                      `json:"result,omitempty"`
	Error   *mcp.JSONRPCErrorDetails `json:"error,omitempty"`
}

func serve(ctx context.Context, s *server.MCPServer, in io.Reader, out io.Writer) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	c := &connection{server: s, fail: fail, out: out, calls: map[string]*call{}}
	if closer, ok := in.(io.Closer); ok {
		stop := context.AfterFunc(ctx, func() { _ = closer.Close() })
		defer stop()
	}

	var running sync.WaitGroup
	slots := make(chan struct{}, maxCalls)
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	for ctx.Err() == nil && lines.Scan() {
		c.read(ctx, bytes.Clone(lines.Bytes()), &running, slots)
	}
	if err := lines.Err(); err != nil {
		fail(fmt.Errorf("reading a message: %w", err))
	}
	running.Wait()
	return context.Cause(ctx)
}

// read starts tool calls and does everything else at once.
func (c *connection) read(ctx context.Context, line []byte, running *sync.WaitGroup, slots chan struct{}) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		code, text := mcp.INVALID_REQUEST, "The message is not a JSON-RPC request"
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			code, text = mcp.PARSE_ERROR, "The message is not JSON"
		}
		c.refuse(json.RawMessage("null"), code, text)
		return
	}
	switch {
	case r.Method == "":
		return // a response; this side asks nothing
	case r.Method == string(mcp.MethodNotificationCancelled):
		c.cancelCall(r.Params.RequestID)
	case r.ID == nil:
		c.server.HandleMessage(ctx, line)
	default:
		c.start(ctx, r, line, running, slots)
	}
}

func (c *connection) start(ctx context.Context, r request, line []byte, running *sync.WaitGroup, slots chan struct{}) {
	key, ok := canonicalID(r.ID)
	if !ok {
		c.refuse(json.RawMessage("null"), mcp.INVALID_REQUEST, "A request id is a string or an integer")
		return
	}
	if r.Method != string(mcp.MethodToolsCall) {
		c.answer(r.ID, c.server.HandleMessage(ctx, line))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	this := &call{cancel: cancel}
	c.mu.Lock()
	_, taken := c.calls[key]
	if !taken {
		c.calls[key] = this
	}
	c.mu.Unlock()
	if taken {
		cancel()
		c.refuse(r.ID, mcp.INVALID_REQUEST, "A request with this id is still running")
		return
	}
	slots <- struct{}{}
	running.Go(func() {
		defer func() { <-slots }()
		defer cancel()
		reply := c.server.HandleMessage(c.withProgress(ctx, this, r.Params.Meta.ProgressToken), line)
		c.mu.Lock()
		delete(c.calls, key)
		wanted := !this.cancelled
		c.mu.Unlock()
		if wanted {
			c.answer(r.ID, reply)
		}
	})
}

func (c *connection) cancelCall(id json.RawMessage) {
	key, ok := canonicalID(id)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if this := c.calls[key]; this != nil {
		this.cancelled = true
		this.cancel()
	}
}

// answer sends what mcp-go made, under the id as the client wrote it: mcp-go decodes ids and would
// round large integers.
func (c *connection) answer(id json.RawMessage, reply mcp.JSONRPCMessage) {
	switch reply := reply.(type) {
	case mcp.JSONRPCResponse:
		c.write(response{JSONRPC: mcp.JSONRPC_VERSION, ID: id, Result: reply.Result})
	case mcp.JSONRPCError:
		c.write(response{JSONRPC: mcp.JSONRPC_VERSION, ID: id, Error: &reply.Error})
	default:
		c.refuse(id, mcp.INTERNAL_ERROR, "The request has no answer")
	}
}

func (c *connection) refuse(id json.RawMessage, code int, text string) {
	c.write(response{JSONRPC: mcp.JSONRPC_VERSION, ID: id, Error: &mcp.JSONRPCErrorDetails{Code: code, Message: text}})
}

// write sends one message and ends the connection if that fails.
func (c *connection) write(message any) {
	line, err := json.Marshal(message)
	if err != nil {
		c.fail(fmt.Errorf("encoding a message: %w", err))
		return
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.out.Write(append(line, '\n')); err != nil {
		c.fail(fmt.Errorf("writing a message: %w", err))
	}
}

// canonicalID returns one text per id, so that 1 and "1" differ and "a" and "\u0061" do not.
func canonicalID(id json.RawMessage) (string, bool) {
	decoder := json.NewDecoder(bytes.NewReader(id))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return "", false
	}
	switch value := value.(type) {
	case string:
		return "string " + value, true
	case json.Number:
		return "number " + value.String(), !bytes.ContainsAny(id, ".eE")
	}
	return "", false
}
