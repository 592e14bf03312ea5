package edge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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

func (s *server) handshake(entry string) {
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

func (s *server) lastCause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.causes) == 0 {
		return nil
	}
	return s.causes[len(s.causes)-1]
}

func (s *server) causeCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.causes)
}

// checkCause checks that the last cancelled call saw its cancellation.
func checkCause(t *testing.T, s *server, reason string) {
	t.Helper()
	var c *edge.Cancelled
	if err := s.lastCause(); !errors.As(err, &c) || string(c.Reason) != reason || len(c.Params) == 0 ||
		!strings.HasPrefix(err.Error(), "cancelled by the client") {
		t.Errorf("cause: got %v, want a *Cancelled with reason %s and its params", err, reason)
	}
}

type seen struct {
	Session, Version, Caller, Method string
	Client                           inbound.ClientInfo
	Header                           http.Header
	Params                           json.RawMessage
	Raw                              json.RawMessage
}

func (s *server) Serve(ctx context.Context, x *edge.Exchange) {
	m := x.Message
	if m.IsNotification() {
		s.note(m.Method)
		if m.Method == "notifications/pass" {
			go func() {
				edge.AwaitEarlier(context.WithoutCancel(ctx), x)
				s.note("passed")
			}()
		}
		return
	}
	switch m.Method {
	case "initialize":
		s.handshake("initialize:" + string(x.Version))
		if jsonrpc.Get(m.Params, "fail") != nil {
			x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no"})
			return
		}
		x.Reply([]byte(`{"protocolVersion":"` + string(x.Version) +
			`","capabilities":{},"serverInfo":{"name":"t","version":"0"}}`))
	case "ping":
		x.Reply([]byte(`{}`))
	case "seen":
		b, _ := json.Marshal(seen{x.Session, string(x.Version), x.Caller.ID, m.Method, x.Client, x.Header, m.Params, m.Raw})
		x.Reply(b)
	case "unknown":
		x.Fail(&jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Unknown method"})
	case "silent":
	case "listen":
		edge.Listen(ctx, x)
		x.Reply([]byte(`{}`))
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
	case "crowd": // more notifications than a lane holds, and a request among them
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
	case "prefer":
		x.PreferStream()
		x.Reply([]byte(`{"done":true}`))
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
