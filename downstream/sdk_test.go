package downstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	gomcp "github.com/mark3labs/mcp-go/mcp"
	gomcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// sdkServer is a server of the official SDK whose one tool reports progress and asks the client.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "work"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		for i := range 3 {
			if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i)}); err != nil {
				return nil, nil, err
			}
		}
		answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Sure?", RequestedSchema: map[string]any{"type": "object"}})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: answer.Action}}}, nil, nil
	})
	return s
}

// embedded serves a server of the official SDK, with the name a, over a stream.
func embedded(t *testing.T, server *mcp.Server) map[string]downstream.DialFunc {
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	return map[string]downstream.DialFunc{"a": func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		wg.Go(func() { _ = server.Run(context.Background(), &mcp.IOTransport{Reader: theirs, Writer: theirs}) })
		return ours, nil
	}}
}

// Servers of others: listed, called with progress and a question to the client, and left.
func TestServersOfOthers(t *testing.T) {
	sdk := func(*http.Request) *mcp.Server { return sdkServer() }
	plain := func() http.Handler {
		s := gomcpserver.NewMCPServer("mcp-go", "1")
		s.AddTool(gomcp.NewTool("work"), func(context.Context, gomcp.CallToolRequest) (*gomcp.CallToolResult, error) {
			return gomcp.NewToolResultText("done"), nil
		})
		return gomcpserver.NewStreamableHTTPServer(s)
	}
	for _, tc := range []struct {
		name  string
		serve func() http.Handler
		kind  string
		text  string
	}{
		{"go-sdk over HTTP", func() http.Handler { return mcp.NewStreamableHTTPHandler(sdk, nil) }, downstream.TransportHTTP, "accept"},
		{"go-sdk over stdio", nil, downstream.TransportStdio, "accept"},
		{"go-sdk over HTTP+SSE", func() http.Handler { return mcp.NewSSEHandler(sdk, nil) }, downstream.TransportSSE, "accept"},
		{"mcp-go over HTTP", plain, downstream.TransportHTTP, "done"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			opts := downstream.Options{Servers: []downstream.ServerConfig{{Name: "a", Type: tc.kind}}}
			if tc.serve == nil {
				opts.Embedded = embedded(t, sdkServer())
			} else {
				handler := tc.serve()
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
				defer srv.Close()
				defer srv.CloseClientConnections()
				opts.Servers[0].URL = srv.URL
			}
			m := downstream.New(opts)
			defer m.Stop()
			m.Sessions().Enter("c", []byte(`{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}`))
			if err := m.Sessions().Notify(t.Context(), "a", "c", "notifications/initialized", nil); err != nil {
				t.Fatal(err)
			}
			if got := names(catalogOf(t, m).See(nil)); got != "work@a" {
				t.Errorf("got tools %s", got)
			}
			for range 3 {
				var progress []string
				r := request("a", "work")
				r.Params = []byte(`{"name":"work","arguments":{}}`)
				r.Client, r.Proxied = "c", true
				r.Progress = func(p []byte) { progress = append(progress, string(jsonrpc.Get(p, "progress"))) }
				r.Ask = func(_ context.Context, q downstream.ServerRequest) (result, err []byte) {
					return []byte(`{"action":"accept","content":{}}`), nil
				}
				reply, err := m.Call(t.Context(), r)
				if err != nil || resultText(reply) != tc.text {
					t.Fatalf("got %s, %v; want %s", resultText(reply), err, tc.text)
				}
				if want := "[0 1 2]"; tc.text != "done" && fmt.Sprint(progress) != want {
					t.Errorf("got progress %v, want %s", progress, want)
				}
			}
			m.Sessions().Leave("c")
		})
	}
}

// A server of the official SDK that speaks 2026-07-28 alone answers initialize all the same. It is used, also where a
// client's own notifications/initialized is what it refuses, and gets the headers that its tools ask for.
func TestModernServerOfOthers(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ServerOptions{SupportedProtocolVersions: []string{"2026-07-28"}})
	schema := json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`)
	server.AddTool(&mcp.Tool{Name: "deploy", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "deployed"}}}, nil
	})
	sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	got := map[string]int{} // requests by method
	var mu sync.Mutex
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		got[r.Method+" "+jsonrpc.Text(jsonrpc.Get(body, "method"))]++
		mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		sdk.ServeHTTP(w, r)
	}))
	defer srv.Close()
	defer srv.CloseClientConnections()
	m := downstream.New(downstream.Options{Servers: []downstream.ServerConfig{{Name: "a", Type: downstream.TransportHTTP, URL: srv.URL}}})
	defer m.Stop()
	call := func(r *downstream.Request) {
		t.Helper()
		r.Params = []byte(`{"name":"deploy","arguments":{"region":"süd"}}`)
		if reply, err := m.Call(t.Context(), r); err != nil || resultText(reply) != "deployed" {
			t.Errorf("got %s %s, %v; want that it is deployed", reply.Result, reply.Err, err)
		}
	}
	call(request("a", "deploy")) // it is not listed yet
	m.Sessions().Enter("c", hello("c"))
	if _, err := m.Sessions().Initialized(t.Context(), "a", "c"); err != nil {
		t.Fatal(err)
	}
	if err := m.Sessions().Notify(t.Context(), "a", "c", "notifications/initialized", nil); err != nil {
		t.Error(err)
	}
	r := request("a", "deploy")
	r.Client, r.Proxied = "c", true
	call(r)
	m.Sessions().Leave("c")
	mu.Lock()
	defer mu.Unlock()
	// Two sessions, the router's own and that of the client.
	delete(got, "POST subscriptions/listen") // in the background
	if want := map[string]int{"POST server/discover": 2, "POST tools/list": 1, "POST tools/call": 2}; !maps.Equal(got, want) {
		t.Errorf("got the requests %v, want %v", got, want)
	}
}

// A server of the official SDK that speaks 2026-07-28 alone announces changes of its lists, over HTTP and a stream.
func TestModernServerOfOthersAnnounces(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{downstream.TransportHTTP, downstream.TransportStdio} {
		t.Run(kind, func(t *testing.T) {
			options := &mcp.ServerOptions{
				SupportedProtocolVersions: []string{"2026-07-28"},
				Capabilities:              &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
			}
			server := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, options)
			changes := make(chan jsonrpc.Message, 16)
			opts := downstream.Options{Servers: []downstream.ServerConfig{{Name: "a", Type: kind}}}
			opts.OnNotification = func(m downstream.Notification) { changes <- m.Message }
			if kind == downstream.TransportHTTP {
				srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
				defer srv.Close()
				defer srv.CloseClientConnections()
				opts.Servers[0].URL = srv.URL
			} else {
				opts.Embedded = embedded(t, server)
			}
			m := downstream.New(opts)
			m.Start()
			defer m.Stop()
			added := 0
			mcptest.Eventually(t, "an announced change", func() bool {
				added++
				server.AddTool(&mcp.Tool{Name: fmt.Sprint("t", added), InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
				select {
				case got := <-changes:
					if got.Method != "notifications/tools/list_changed" || jsonrpc.Get(got.Params, "_meta") != nil {
						t.Errorf("got %s, want a change of tools without _meta", got.Raw)
					}
					return true
				case <-time.After(time.Second): // the SDK combines changes that follow each other
					return false
				}
			})
		})
	}
}
