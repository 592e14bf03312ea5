//nolint:staticcheck // what is deprecated has to be carried for as long as clients use it
package proxy_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// sdkServer is a server of another make that uses what the protocol offers.
func sdkServer(t *testing.T) downstream.ServerConfig {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{r.Params.Ref.Name + r.Params.Ref.URI}}}, nil
		},
	})
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}, &mcp.ResourceLink{URI: "file:///x", Name: "x"}}}
	}
	type none struct{}
	mcp.AddTool(s, &mcp.Tool{Name: "everything"}, func(ctx context.Context, r *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		for i := range 3 {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i), Total: 3}); err != nil {
				return nil, nil, err
			}
		}
		sampled, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "q"}}}})
		if err != nil {
			return nil, nil, err
		}
		elicited, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "sure?"})
		if err != nil {
			return nil, nil, err
		}
		roots, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, nil, err
		}
		return text(sampled.Model + " " + elicited.Action + " " + roots.Roots[0].URI), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "plain"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		return text("plain"), nil, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.ResourceLink{URI: "file:///x", Name: "x"}}}}, nil
	})
	s.AddResource(&mcp.Resource{URI: "file:///x", Name: "x"}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "t"}}}, nil
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	t.Cleanup(func() {
		for session := range s.Sessions() {
			_ = session.Close() // the router has left
		}
	})
	return downstream.ServerConfig{Name: "sdk", Type: downstream.TransportHTTP, URL: h.URL}
}

// A client and a server of another make have a whole conversation through the router.
func TestSDKThroughTheRouter(t *testing.T) {
	cfg := config.Default()
	cfg.Listen, cfg.State = "127.0.0.1:0", t.TempDir()
	cfg.Servers = append(cfg.Servers, sdkServer(t))
	a, err := app.New(t.Context(), app.Options{Config: cfg, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
	})
	for _, row := range []struct{ path, prefix, version string }{
		{"/proxy/mcp", "sdk__", "2025-11-25"}, {"/servers/sdk/mcp", "", "2025-11-25"}, {"/proxy/mcp", "sdk__", ""}, {"/servers/sdk/mcp", "", ""},
	} {
		path, prefix := row.path, row.prefix
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		var mu sync.Mutex
		var progress []float64
		c := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
			CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
				return &mcp.CreateMessageResult{Model: "model", Role: "assistant", Content: &mcp.TextContent{Text: "a"}}, nil
			},
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept"}, nil
			},
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
				mu.Lock()
				defer mu.Unlock()
				progress = append(progress, r.Params.Progress)
			},
		})
		c.AddRoots(&mcp.Root{URI: "file:///root"})
		transport := &http.Transport{}
		session, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: "http://" + a.Addr() + path, HTTPClient: &http.Client{Transport: transport}}, &mcp.ClientSessionOptions{ProtocolVersion: row.version})
		if err != nil {
			t.Fatalf("%s: got %v, want a session", path, err)
		}
		name, want, steps := "everything", "model accept file:///root", []float64{0, 1, 2}
		if row.version == "" { // the newest, in which servers cannot ask yet
			name, want, steps = "plain", "plain", nil
		}
		params := &mcp.CallToolParams{Name: prefix + name, Arguments: map[string]any{}}
		params.SetProgressToken("t")
		r, err := session.CallTool(ctx, params)
		if err != nil || r.IsError || r.Content[0].(*mcp.TextContent).Text != want || r.Content[1].(*mcp.ResourceLink).URI != prefix+"file:///x" {
			t.Errorf("%s: got %+v %v, want %s and a link", path, r, err, want)
		}
		mu.Lock()
		if !slices.Equal(progress, steps) {
			t.Errorf("%s: got progress %v, want %v before the result", path, progress, steps)
		}
		mu.Unlock()
		if p, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: prefix + "greet"}); err != nil || p.Messages[0].Content.(*mcp.ResourceLink).URI != prefix+"file:///x" {
			t.Errorf("%s: got prompt %+v %v, want a link", path, p, err)
		}
		if p, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: prefix + "file:///x"}); err != nil || p.Contents[0].URI != prefix+"file:///x" {
			t.Errorf("%s: got resource %+v %v, want it", path, p, err)
		}
		if p, err := session.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: prefix + "greet"}, Argument: mcp.CompleteParamsArgument{Name: "a"}}); err != nil || p.Completion.Values[0] != "greet" {
			t.Errorf("%s: got completion %+v %v, want greet", path, p, err)
		}
		if err := session.Close(); err != nil {
			t.Errorf("%s: Close: got %v, want nil", path, err)
		}
		transport.CloseIdleConnections()
		cancel()
	}
}

// A search on the surface of all servers answers with two messages on one stream, as the client of the
// search document expects it: with nothing but a body.
func TestSearchOnTheProxySurface(t *testing.T) {
	files, other := newServer("read_files", "write_files"), newServer("send_mail")
	cfg := config.Default()
	cfg.Listen, cfg.State, cfg.Proxy.SearchAbove = "127.0.0.1:0", t.TempDir(), 2
	for name, s := range map[string]*server{"files": files, "other": other} {
		cfg.Servers = append(cfg.Servers, downstream.ServerConfig{Name: name, Type: downstream.TransportHTTP, URL: s.listen(t)})
	}
	a, err := app.New(t.Context(), app.Options{Config: cfg, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
	})
	w := &world{t: t, url: "http://" + a.Addr(), transport: &http.Transport{}}
	t.Cleanup(w.transport.CloseIdleConnections)
	c, neighbour := w.newClient(proxyPath), w.newClient(proxyPath)
	c.hello()
	neighbour.hello()
	if got := c.tools(); !slices.Equal(got, []string{"search_available_tools"}) {
		t.Errorf("before a search: got %q, want the search alone", got)
	}
	found := c.do("tools/call", `{"name":"search_available_tools","arguments":{"query":"read files"}}`)
	if !strings.HasPrefix(found.header.Get("Content-Type"), "text/event-stream") || !slices.Equal(found.notes, []string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`}) {
		t.Errorf("got %q as %s, want list_changed before the response on a stream", found.notes, found.header.Get("Content-Type"))
	}
	if !strings.Contains(found.result, `"is_error":false`) || !strings.Contains(found.result, "files__read_files") {
		t.Errorf("got %s %s, want files__read_files", found.result, found.err)
	}
	if got := c.tools(); !slices.Contains(got, "files__read_files") || slices.Contains(got, "other__send_mail") {
		t.Errorf("after a search: got %q, want what was found", got)
	}
	if got := neighbour.tools(); !slices.Equal(got, []string{"search_available_tools"}) {
		t.Errorf("another session: got %q, want the search alone", got)
	}
	if got := neighbour.call("other__send_mail"); got.result == "" {
		t.Errorf("a tool that is not listed: got %s, want it callable", got.err)
	}
	bare := w.newClient(proxyPath)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_available_tools","arguments":{"query":"file operations"}}}`
	resp, err := w.transport.RoundTrip(plainPost(t, w.url+proxyPath, body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var events []string
	_ = mcptest.Events(resp.Body, func(_, data string) { events = append(events, data) })
	if len(events) != 2 || !strings.Contains(events[0], `"method":"notifications/tools/list_changed"`) || !strings.Contains(events[1], `"result":`) {
		t.Errorf("with nothing but a body: got %q, want list_changed and the result", events)
	}
	if refused := bare.do("tools/call", `{"name":"search_available_tools","arguments":{}}`); !strings.Contains(refused.result, `"isError":true`) || len(refused.notes) > 0 {
		t.Errorf("without a query: got %s after %q, want one error result", refused.result, refused.notes)
	}
}

// plainPost is a request with only a content type.
func plainPost(t *testing.T, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}
