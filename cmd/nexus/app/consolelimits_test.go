package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
)

// A limited key does not learn from the stream of events when others work, nor where the history is.
func TestConsoleTellsNothingOfOthers(t *testing.T) {
	p := newPeer(echoTool("echo"))
	r := start(t, func(o *app.Options) {
		o.Config.Auth.APIKeys = operators("all")
		restricted("some", "a")(o)
		o.Config.Servers = append(o.Config.Servers, server("a", p.serve(t).URL))
	})
	r.raw("POST", "/mcp", fmt.Sprintf(runTool, "a__echo"), bearer("all"))
	r.history("", bearer("all"), 1)
	stream := r.stream("GET", "/ui/api/events", "", bearer("some"))
	want := func(id string) {
		t.Helper()
		for {
			select {
			case data := <-stream.events:
				if strings.Contains(data, id) {
					return
				}
				if !strings.Contains(data, `"history":0`) {
					t.Fatalf("got %s, want nothing of what others did", data)
				}
			case <-time.After(deadline):
				t.Fatalf("got no event with %s", id)
			}
		}
	}
	want(`"history":0`)
	r.raw("POST", "/mcp", fmt.Sprintf(runTool, "a__echo"), bearer("some"))
	want(`"history":2`)
	for key, told := range map[string]bool{"all": true, "some": false} {
		if _, text := r.raw("GET", "/ui/api/queries", "", bearer(key)); strings.Contains(text, "memory_only") != told {
			t.Errorf("%s: got %s, want it to be told of the disk: %t", key, text, told)
		}
	}
}

// A client that names itself at length is cut, and so is the tool that it calls.
func TestConsoleCutsNames(t *testing.T) {
	long := strings.Repeat("long \\u001b[31m", 3000)
	r := start(t, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("peer", newPeer(echoTool("echo")).serve(t).URL))
	})
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"%s","version":"%s"}}}`
	r.raw("POST", "/mcp", fmt.Sprintf(hello, long, long), nil)
	r.raw("POST", "/servers/peer/mcp", fmt.Sprintf(runTool, long), nil)
	r.raw("POST", "/mcp", fmt.Sprintf(askPlan, long, `[{"tool":"echo","arguments":{}}]`), nil)
	for _, path := range []string{"sessions", "queries", "now"} {
		if _, text := r.raw("GET", "/ui/api/"+path, "", nil); len(text) > 4000 || strings.Contains(text, long) {
			t.Errorf("%s: got %d bytes, want names that are cut", path, len(text))
		}
	}
}

// A caller that keeps many requests open gets no more, others do, and so does the caller when they have ended.
func TestConsoleRequestsAreBounded(t *testing.T) {
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(func() {
		close(release)
		silent.Close()
	})
	r := start(t, func(o *app.Options) {
		o.Config.Auth.APIKeys = keys("one", "two")
		o.Config.Proxy.ListDeadline = time.Hour
		slow := server("silent", silent.URL)
		slow.ConnectTimeout = time.Hour
		o.Config.Servers = append(o.Config.Servers, slow)
	})
	ctx, leave := context.WithCancel(t.Context())
	var open sync.WaitGroup
	defer open.Wait()
	defer leave()
	for range 32 {
		open.Go(func() {
			for ctx.Err() == nil { // it is refused while the test asks
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+"/ui/api/tools", nil)
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("X-API-Key", "one")
				if resp, err := http.DefaultClient.Do(req); err == nil {
					resp.Body.Close()
				}
			}
		})
	}
	until := func(key string, status int) {
		t.Helper()
		for end := time.Now().Add(deadline); ; time.Sleep(5 * time.Millisecond) {
			resp, text := r.raw("GET", "/ui/api/models", "", bearer(key))
			if resp.StatusCode == status {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: got %d %s, want %d", key, resp.StatusCode, text, status)
			}
		}
	}
	until("one", http.StatusServiceUnavailable)
	until("two", http.StatusOK)
	leave()
	until("one", http.StatusOK)
}
