package tests

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// downstream is an MCP server in this process, with a tool "wait" that answers once it is let go.
type downstream struct {
	t       *testing.T
	name    string
	url     string
	started chan struct{} // gets a value when wait is called
	release chan struct{} // closed to let it go
}

// newDownstream starts a downstream; deleted is called when a session is ended by DELETE.
func newDownstream(t *testing.T, name string, deleted func(name string)) *downstream {
	t.Helper()
	d := &downstream{t: t, name: name, started: make(chan struct{}, 16), release: make(chan struct{})}
	server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		d.started <- struct{}{}
		select {
		case <-d.release:
		case <-ctx.Done():
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " waited"}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			deleted(name)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	d.url = web.URL
	return d
}

// wait calls the tool through a router and returns once it runs. The channel gets what is answered, or the
// error of the connection.
func (d *downstream) wait(r *router) <-chan string {
	d.t.Helper()
	answer := make(chan string, 1)
	go func() {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s__wait","arguments":{}}}`, d.name)
		resp, err := http.Post(r.url+"/mcp", "application/json", strings.NewReader(body))
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			raw = append(raw, err.Error()...)
		}
		answer <- string(raw)
	}()
	select {
	case <-d.started:
	case got := <-answer:
		d.t.Fatalf("calling %s__wait: got %s, want it to run", d.name, got)
	case <-time.After(patience):
		d.t.Fatalf("%s__wait was not called within %v", d.name, patience)
	}
	return answer
}

// receive returns the next value of a channel.
func receive(t *testing.T, from <-chan string, what string) string {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
		return ""
	}
}

// Calls in flight finish, nothing new begins, and the servers are left in reverse order.
func TestShutdown(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	deleted := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, name)
	}
	first, second := newDownstream(t, "first", deleted), newDownstream(t, "second", deleted)
	r := serve(t, fmt.Sprintf("mcpServers: {first: {url: %q}, second: {url: %q}}", first.url, second.url))
	r.waitLog(`connected to server" server=first`)
	r.waitLog(`connected to server" server=second`)

	answer := first.wait(r)
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.waitLog(`Starting graceful shutdown\.\.\.`)
	mcptest.Eventually(t, "/readyz to say 503", func() bool { return status(t, r.url+"/readyz") == http.StatusServiceUnavailable })
	if got := status(t, r.url+"/livez"); got != http.StatusOK {
		t.Errorf("/livez: got status %d while shutting down, want 200", got)
	}
	if m := r.tryCall("second__wait", map[string]any{}, nil); m.Error == nil {
		t.Errorf("a call while shutting down: got result %s, want an error", m.Result)
	}
	select {
	case <-r.end:
		t.Fatal("the router ended before the call in flight")
	default:
	}
	close(first.release)
	if got := receive(t, answer, "the answer to the call in flight"); !strings.Contains(got, "first waited") {
		t.Errorf("the call in flight: got %s, want its result", got)
	}
	r.stop()
	if want := []string{"second", "first"}; !slices.Equal(order, want) {
		t.Errorf("sessions were ended in the order %v, want %v", order, want)
	}
}

// What does not finish within the grace period is cut off, and the exit code tells.
func TestShutdownForced(t *testing.T) {
	t.Parallel()
	d := newDownstream(t, "stuck", func(string) {})
	defer close(d.release)
	r := serve(t, fmt.Sprintf("{mcpServers: {stuck: {url: %q}}, shutdown: {grace: 100ms}}", d.url))
	r.code = 3
	answer := d.wait(r)
	r.stop()
	if log := r.log.String(); !strings.Contains(log, "Shutdown timeout, forcing exit") {
		t.Errorf("the log lacks the warning: %s", log)
	}
	if got := receive(t, answer, "the end of the connection"); strings.Contains(got, "waited") {
		t.Errorf("the call that was cut off: got %s, want no result", got)
	}
}

func status(t *testing.T, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
