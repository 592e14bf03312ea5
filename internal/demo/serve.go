package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
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
	calls map[string]context.CancelFunc // of tool calls that run, by jsonrpc.ID.Key
}

func serve(ctx context.Context, s *server.MCPServer, in io.Reader, out io.Writer) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	c := &connection{server: s, fail: fail, out: out, calls: map[string]context.CancelFunc{}}
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

// read starts tool calls and handles other messages at once.
func (c *connection) read(ctx context.Context, line []byte, running *sync.WaitGroup, slots chan struct{}) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	m, problem := jsonrpc.Parse(line)
	switch {
	case problem != nil:
		c.write(jsonrpc.ErrorResponse(m.ID, problem))
	case m.IsResponse(): // the server sends no requests
	case m.Method == string(mcp.MethodNotificationCancelled):
		c.cancelCall(jsonrpc.ID(jsonrpc.Get(m.Params, "requestId")))
	case m.IsNotification():
		c.server.HandleMessage(ctx, line)
	case m.Method == string(mcp.MethodToolsCall):
		c.start(ctx, m, running, slots)
	default:
		c.answer(m.ID, c.server.HandleMessage(ctx, line))
	}
}

func (c *connection) start(ctx context.Context, m jsonrpc.Message, running *sync.WaitGroup, slots chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	key := m.ID.Key()
	c.mu.Lock()
	c.calls[key] = cancel
	c.mu.Unlock()
	slots <- struct{}{}
	running.Go(func() {
		defer func() { <-slots }()
		defer cancel()
		reply := c.server.HandleMessage(c.withProgress(ctx, jsonrpc.Get(m.Params, "_meta", "progressToken")), m.Raw)
		c.mu.Lock()
		delete(c.calls, key)
		c.mu.Unlock()
		if ctx.Err() == nil { // else the client no longer wants an answer
			c.answer(m.ID, reply)
		}
	})
}

func (c *connection) cancelCall(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.calls[id.Key()]; cancel != nil {
		cancel()
	}
}

// answer sends the reply of mcp-go under the id as the client wrote it: mcp-go decodes ids and rounds large integers.
func (c *connection) answer(id jsonrpc.ID, reply mcp.JSONRPCMessage) {
	switch reply := reply.(type) {
	case mcp.JSONRPCResponse:
		c.write(jsonrpc.Result(id, marshal(reply.Result)))
	case mcp.JSONRPCError:
		c.write(jsonrpc.RawError(id, marshal(reply.Error)))
	}
}

// marshal encodes what the servers send, which cannot fail.
func marshal(v any) []byte {
	raw, _ := json.Marshal(v)
	return raw
}

// write sends one message and ends the connection if that fails.
func (c *connection) write(message []byte) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.out.Write(append(message, '\n')); err != nil {
		c.fail(fmt.Errorf("writing a message: %w", err))
	}
}

type progressKey struct{}

type reporter func(done, total float64, message string)

// withProgress adds a reporter to the context of a call's handler. The handler's goroutine writes the reports, so that
// they precede the result. Without a progress token nothing is sent.
func (c *connection) withProgress(ctx context.Context, token json.RawMessage) context.Context {
	if !jsonrpc.ValidID(token) {
		return ctx
	}
	return context.WithValue(ctx, progressKey{}, reporter(func(done, total float64, message string) {
		if ctx.Err() == nil {
			c.write(jsonrpc.Notification("notifications/progress", marshal(map[string]any{
				"progressToken": token, "progress": done, "total": total, "message": message,
			})))
		}
	}))
}

// report tells the client of the call in ctx, if it asked, that done of total is done.
func report(ctx context.Context, done, total float64, message string) {
	if r, ok := ctx.Value(progressKey{}).(reporter); ok {
		r(done, total, message)
	}
}
