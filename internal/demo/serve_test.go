package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is the client's end of a served connection.
type peer struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan string // what the server wrote; closed at the end
	done  chan error
}

func connect(t *testing.T, ctx context.Context, s Server) *peer {
	t.Helper()
	serverIn, in := io.Pipe()
	out, serverOut := io.Pipe()
	p := &peer{t: t, in: in, lines: make(chan string, 1000), done: make(chan error, 1)}
	go func() {
		err := s.Serve(ctx, serverIn, serverOut)
		_ = serverOut.Close()
		p.done <- err
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		_ = out.Close()
		<-read
	})
	return p
}

func (p *peer) send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatalf("sending %s: got %v, want no error", line, err)
	}
}

func (p *peer) next() string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.t.Fatal("got the end of the stream, want a message")
		}
		return line
	case <-time.After(10 * time.Second):
		p.t.Fatal("got nothing for 10 s, want a message")
	}
	return ""
}

func (p *peer) wait() error {
	p.t.Helper()
	select {
	case err := <-p.done:
		return err
	case <-time.After(10 * time.Second):
		p.t.Fatal("Serve still runs after 10 s, want it to return")
	}
	return nil
}

// slow serves a tool that tells when it runs and waits for its context or for a release.
func slow(started chan<- string, release <-chan struct{}) Server {
	s := newMCPServer("slow", "Slow", "")
	s.AddTool(mcp.NewTool("wait", mcp.WithString("name")), handler(func(ctx context.Context, args struct {
		Name string `json:"name"`
	}) (*mcp.CallToolResult, error) {
		started <- args.Name
		report(ctx, 1, 2, "waiting")
		select {
		case <-ctx.Done():
			report(ctx, 2, 2, "cancelled")
			return nil, ctx.Err()
		case <-release:
			return mcp.NewToolResultText(args.Name), nil
		}
	}))
	s.AddTool(mcp.NewTool("count"), handler(func(ctx context.Context, _ struct{}) (*mcp.CallToolResult, error) {
		for i := range 100 {
			report(ctx, float64(i+1), 100, "counting")
		}
		return mcp.NewToolResultText("counted"), nil
	}))
	s.AddTool(mcp.NewTool("panic"), handler(func(context.Context, struct{}) (*mcp.CallToolResult, error) {
		panic("broken")
	}))
	return newServer("slow", s)
}

func callOf(id, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":%s,"_meta":{"progressToken":%s}}}`, id, tool, arguments, id)
}

func TestServeWritesProgressBeforeResult(t *testing.T) {
	p := connect(t, t.Context(), slow(nil, nil))
	const calls = 50
	sent := make(chan struct{})
	defer func() { <-sent }()
	go func() {
		defer close(sent)
		for i := range calls {
			_, _ = io.WriteString(p.in, callOf(fmt.Sprint(i), "count", "{}")+"\n")
		}
		_ = p.in.Close()
	}()
	seen := map[string]int{}
	answered := 0
	for line := range p.lines {
		var m struct {
			ID     json.RawMessage
			Params struct {
				ProgressToken json.RawMessage
				Progress      int
			}
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("got line %q, want JSON: %v", line, err)
		}
		if m.ID == nil {
			seen[string(m.Params.ProgressToken)]++
			if got, want := m.Params.Progress, seen[string(m.Params.ProgressToken)]; got != want {
				t.Fatalf("token %s: got progress %d, want %d", m.Params.ProgressToken, got, want)
			}
			continue
		}
		answered++
		if got := seen[string(m.ID)]; got != 100 {
			t.Fatalf("call %s: got %d notifications before the result, want 100", m.ID, got)
		}
	}
	if answered != calls {
		t.Errorf("got %d results, want %d", answered, calls)
	}
	if err := p.wait(); err != nil {
		t.Errorf("Serve: got %v, want nil at the end of input", err)
	}
}

func TestServeCancelsOneCall(t *testing.T) {
	started, release := make(chan string), make(chan struct{})
	p := connect(t, t.Context(), slow(started, release))
	p.send(callOf("1", "wait", `{"name":"number"}`))
	<-started
	p.next() // its progress
	p.send(callOf(`"1"`, "wait", `{"name":"text"}`))
	<-started
	p.next()
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"test"}}`)
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"unknown"}}`)
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`)
	p.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if got, want := p.next(), `{"jsonrpc":"2.0","id":2,"result":{}}`; got != want {
		t.Errorf("ping while calls run: got %s, want %s", got, want)
	}
	close(release)
	if got := p.next(); !strings.Contains(got, `"id":"1"`) || !strings.Contains(got, "text") {
		t.Errorf(`after cancelling 1: got %s, want the result of "1"`, got)
	}
	_ = p.in.Close()
	for line := range p.lines {
		t.Errorf("got %s, want nothing of the cancelled call", line)
	}
	if err := p.wait(); err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
}

func TestServeBoundsCalls(t *testing.T) {
	started, release := make(chan string, 2*maxCalls), make(chan struct{})
	p := connect(t, t.Context(), slow(started, release))
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range maxCalls + 8 {
			_, _ = io.WriteString(p.in, callOf(fmt.Sprint(i), "wait", "{}")+"\n")
		}
		_ = p.in.Close()
	}()
	for range maxCalls {
		<-started
	}
	select {
	case <-started:
		t.Errorf("got more than %d calls at once, want the rest to wait", maxCalls)
	default:
	}
	close(release)
	<-sent
	results := 0
	for line := range p.lines {
		if strings.Contains(line, `"result"`) {
			results++
		}
	}
	if want := maxCalls + 8; results != want {
		t.Errorf("got %d results, want %d", results, want)
	}
}

func TestServeAnswersBadMessages(t *testing.T) {
	p := connect(t, t.Context(), slow(nil, nil))
	for _, row := range []struct{ name, send, want string }{
		{"no JSON", `{"jsonrpc"`, `"id":null,"error":{"code":-32700`},
		{"an array", `[]`, `"id":null,"error":{"code":-32600`},
		{"a fraction as id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{"an object as id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{"another JSON-RPC", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, `"id":1,"error":{"code":-32600`},
		{"an unknown method", `{"jsonrpc":"2.0","id":1,"method":"nope"}`, `"id":1,"error":{"code":-32601`},
		{"an unknown tool", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}`, `"id":1,"error":{"code":-32602`},
		{"a panic", callOf(`"p"`, "panic", "{}"), `"id":"p"`},
		{"a large id", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, `{"jsonrpc":"2.0","id":9007199254740993,"result":{}}`},
		{"an escaped id", `{"jsonrpc":"2.0","id":"\u0061<","method":"ping"}`, `"result":{}`},
	} {
		p.send("")
		p.send(row.send)
		if got := p.next(); !strings.Contains(got, row.want) {
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
	p.send(`{"jsonrpc":"2.0","id":5,"result":{}}`) // a response nobody waits for
}

func TestServeNegotiatesVersions(t *testing.T) {
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2024-11": "2025-11-25", "2026-07-28": "2025-11-25",
	} {
		for _, s := range Servers() {
			p := connect(t, t.Context(), s)
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, asked))
			if got := p.next(); !strings.Contains(got, `"protocolVersion":"`+want+`"`) {
				t.Errorf("%s asked for %s: got %s, want %s", s.Name, asked, got, want)
			}
		}
	}
	p := connect(t, t.Context(), Servers()[0])
	p.send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}}}`)
	if got := p.next(); !strings.Contains(got, `"supportedVersions":["2026-07-28"`) || !strings.Contains(got, `"ttlMs"`) {
		t.Errorf("server/discover: got %s, want supportedVersions with 2026-07-28 and ttlMs", got)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	started := make(chan string)
	ctx, cancel := context.WithCancel(t.Context())
	p := connect(t, ctx, slow(started, nil))
	p.send(callOf("1", "wait", "{}"))
	<-started
	p.next()
	cancel()
	if err := p.wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("Serve: got %v, want %v", err, context.Canceled)
	}
}

func TestServeFailsOnLongLine(t *testing.T) {
	p := connect(t, t.Context(), Servers()[0])
	go func() { _, _ = io.WriteString(p.in, strings.Repeat("x", maxLine+1)) }()
	if err := p.wait(); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("Serve: got %v, want %v", err, bufio.ErrTooLong)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestServeFailsWhereNothingCanBeWritten(t *testing.T) {
	in, writer := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Servers()[0].Serve(t.Context(), in, brokenWriter{}) }()
	_, _ = io.WriteString(writer, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Serve: got %v, want %v", err, io.ErrClosedPipe)
	}
}
