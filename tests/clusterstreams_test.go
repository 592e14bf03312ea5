package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/sse"
	"github.com/agenticnexus/agenticnexus/tests/clustertest"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// clusterFor starts three replicas in front of a server.
func clusterFor(t *testing.T, server *mcptest.Server) *replicated {
	t.Helper()
	server.Ledger.Path = filepath.Join(t.TempDir(), "ledger")
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	return clusterOf(t, 3, fmt.Sprintf("{url: %q}", web.URL+"/mcp"))
}

// request returns a request. headers are names and values in turn.
func (c *replicated) request(method, url, body string, headers ...string) *http.Request {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

// reader reads an event stream. hangUp ends its connection.
type reader struct {
	t      *testing.T
	events chan sse.Event // closed when the stream ends
	last   string         // id of an event
	hangUp context.CancelFunc
}

// read reads the events of the answer to a request.
func (c *replicated) read(method, url, body string, headers ...string) *reader {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	resp, err := c.http.Do(c.request(method, url, body, headers...).WithContext(ctx))
	if err != nil {
		c.t.Fatal(err)
	}
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		text, _ := io.ReadAll(resp.Body)
		c.t.Fatalf("%s %s: got status %d and %s, want an event stream", method, url, resp.StatusCode, text)
	}
	r := &reader{t: c.t, events: make(chan sse.Event, 1000), hangUp: cancel}
	go func() {
		defer close(r.events)
		defer resp.Body.Close()
		events := sse.NewReader(resp.Body, 1<<20)
		defer events.Free()
		for {
			e, err := events.Next()
			if err != nil {
				return
			}
			r.events <- e
		}
	}()
	return r
}

// next returns the data of the next event; false if the stream has ended.
func (r *reader) next(what string) (data string, ok bool) {
	r.t.Helper()
	for end := time.After(patience); ; {
		select {
		case e, ok := <-r.events:
			if e.ID != "" {
				r.last = e.ID
			}
			if !ok || len(e.Data) > 0 {
				return string(e.Data), ok
			}
		case <-end:
			r.t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// until returns the first event with a text.
func (r *reader) until(text string) string {
	r.t.Helper()
	for {
		data, ok := r.next(text)
		if !ok {
			r.t.Fatalf("the stream ended before %s", text)
		}
		if strings.Contains(data, text) {
			return data
		}
	}
}

// ends waits for the end of the stream.
func (r *reader) ends() {
	r.t.Helper()
	for ok := true; ok; {
		_, ok = r.next("the end of the stream")
	}
}

// modern returns a call of a tool by a client of 2026-07-28 that has roots. more is what a retry adds to the params.
func (c *replicated) modern(url, id, tool, more string) *http.Request {
	c.t.Helper()
	body := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"work__` + tool + `","arguments":{"key":"k` + id + `","ms":20000},` + more +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}`
	return c.request(http.MethodPost, url+"/proxy/mcp", body, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "work__"+tool)
}

// answered makes the call of modern and returns its answer, without the progress before.
func (c *replicated) answered(url, id, tool, more string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	resp, err := c.http.Do(c.modern(url, id, tool, more).WithContext(ctx))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	answer := string(text)
	if i := strings.LastIndex(answer, "data: "); i >= 0 {
		answer = answer[i+len("data: "):]
	}
	return answer
}

// asked calls the tool ask or wait, which asks for roots, and returns what the retry adds.
func (c *replicated) asked(r *clustertest.Replica, id, tool string) (more string) {
	c.t.Helper()
	body := c.answered(r.URL(), id, tool, "")
	var m struct {
		Result struct {
			InputRequests map[string]struct{ Method string }
			RequestState  string
		}
	}
	_ = json.Unmarshal([]byte(body), &m) // what is missing shows
	for key, q := range m.Result.InputRequests {
		if q.Method == "roots/list" && m.Result.RequestState != "" {
			return fmt.Sprintf(`"inputResponses":{%q:{"roots":[]}},"requestState":%q,`, key, m.Result.RequestState)
		}
	}
	c.t.Fatalf("%s: got %s, want input_required", tool, body)
	return ""
}

// Calls of 2026-07-28 are served where they arrive, their round trips where they began, and closing a request cancels it.
func TestCluster_Modern(t *testing.T) {
	t.Parallel()
	answers, cancelled := make(chan string, 1), make(chan string, 8)
	hold, release := context.WithCancel(t.Context())
	server := &mcptest.Server{OnMessage: func(_ context.Context, m mcptest.Message, send func(string)) bool {
		switch {
		case m.Method == "notifications/cancelled":
			release()
			cancelled <- m.Raw
		case m.Method == "" && string(m.ID) == `"roots"`:
			answers <- m.Raw
		case m.Call().Name == "wait": // it asks, and then it waits until it is cancelled
			send(`{"jsonrpc":"2.0","id":"roots","method":"roots/list"}`)
			<-hold.Done()
			return true
		}
		return false
	}}
	c := clusterFor(t, server)
	for i := range 6 {
		id := fmt.Sprint(i)
		if got := c.answered(c.balancer.URL(), id, "echo", ""); !strings.Contains(got, `"id":`+id+`,`) || !strings.Contains(got, `"resultType":"complete"`) {
			t.Errorf("echo through the balancer: got %s", got)
		}
	}
	more := ""
	for i, r := range c.replicas {
		more = c.asked(r, "1", "ask")
		if got := c.answered(c.replicas[(i+1)%3].URL(), "2", "ask", more); !strings.Contains(got, `"id":2,`) || !strings.Contains(got, `"resultType":"complete"`) {
			t.Errorf("the retry of a round trip of %s: got %s", r.Name, got)
		}
	}
	for _, r := range c.replicas {
		if got := c.answered(r.URL(), "3", "ask", more); !strings.Contains(got, `"code":-32602`) {
			t.Errorf("the same retry again at %s: got %s, want an error", r.Name, got)
		}
	}

	cancels := func(what string, request *http.Request, begun func() bool) {
		ctx, hangUp := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if resp, err := c.http.Do(request.WithContext(ctx)); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body) // until the connection is closed
				resp.Body.Close()
			}
		}()
		mcptest.Eventually(t, what+" is at the server", begun)
		hangUp()
		<-ended
		receive(t, cancelled, "the cancellation of "+what)
	}
	cancels("a retry at another replica", c.modern(c.replicas[1].URL(), "4", "wait", c.asked(c.replicas[0], "4", "wait")),
		func() bool { return len(answers) == 1 })
	cancels("a call", c.modern(c.balancer.URL(), "5", "slow", ""),
		func() bool { writes, err := server.Ledger.Writes(); return err == nil && writes["k5"] == 1 })

	more = c.asked(c.replicas[0], "6", "ask")
	c.replicas[0].Kill()
	if got := c.answered(c.replicas[1].URL(), "7", "ask", more); !strings.Contains(got, `"reason":"outcome_unknown"`) {
		t.Errorf("a retry after the end of its replica: got %s, want outcome_unknown", got)
	}
}

// What a server says to a session arrives on its stream, which any replica carries; the stream is opened again after its
// home has drained, and ends with the session.
func TestCluster_Streams(t *testing.T) {
	t.Parallel()
	roots := make(chan string, 8)
	server := &mcptest.Server{OnMessage: func(_ context.Context, m mcptest.Message, _ func(string)) bool {
		if m.Method == "" && m.Result != nil { // the router's own sessions answer with an error
			roots <- string(m.Result)
		}
		return false
	}}
	c := clusterFor(t, server)
	session := c.dial(c.replicas[0])
	c.want(c.at(c.replicas[1], session), "result")
	stream := c.read(http.MethodGet, c.replicas[1].URL()+"/proxy/mcp", "", "Mcp-Session-Id", session.Session)
	told := func(stream *reader) {
		t.Helper()
		server.Notify(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
		stream.until("notifications/resources/list_changed")
		server.Notify(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
		asked := stream.until(`"roots/list"`)
		answer := `{"jsonrpc":"2.0","id":` + string(jsonrpc.Get([]byte(asked), "id")) + `,"result":{"roots":[{"uri":"file:///answered"}]}}`
		resp, err := c.at(c.replicas[2], session).Post(t.Context(), answer)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := receive(t, roots, "the answer"); !strings.Contains(got, "file:///answered") {
			t.Errorf("got %s, want the client's roots", got)
		}
	}
	told(stream)

	// A call whose connection is lost goes on elsewhere.
	call := c.read(http.MethodPost, c.replicas[1].URL()+"/proxy/mcp",
		`{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"name":"work__wait","arguments":{"key":"k","ms":1000},"_meta":{"progressToken":"p"}}}`,
		"Mcp-Session-Id", session.Session, "MCP-Protocol-Version", "2025-11-25")
	call.until("notifications/progress")
	call.hangUp()
	call = c.read(http.MethodGet, c.replicas[2].URL()+"/proxy/mcp", "", "Mcp-Session-Id", session.Session, "Last-Event-ID", call.last)
	call.until("notifications/progress")
	call.until(`"id":"long","result"`)

	if out, code := c.nexus("cluster", "drain", "r1", "--remote", c.replicas[2].URL()); code != 0 {
		t.Fatalf("drain r1: got %q and exit code %d", out, code)
	}
	stream.ends()
	again := c.read(http.MethodGet, c.balancer.URL()+"/proxy/mcp", "", "Mcp-Session-Id", session.Session, "Last-Event-ID", stream.last)
	told(again)

	if err := c.at(c.replicas[1], session).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again.ends()
}

// A session of HTTP+SSE lives with its stream, and its messages arrive at any replica.
func TestCluster_SSE(t *testing.T) {
	t.Parallel()
	c := clusterFor(t, &mcptest.Server{})
	stream := c.read(http.MethodGet, c.replicas[0].URL()+"/proxy/sse", "")
	path, _ := stream.next("the endpoint")
	post := func(r *clustertest.Replica, body string) int {
		t.Helper()
		resp, err := c.http.Do(c.request(http.MethodPost, r.URL()+path, body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for i, body := range []string{
		`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"ask","method":"tools/call","params":{"name":"work__ask","arguments":{}}}`,
	} {
		if status := post(c.replicas[(i+1)%3], body); status != http.StatusAccepted {
			t.Errorf("%s: got status %d, want 202", body, status)
		}
	}
	stream.until(`"id":"hello","result"`)
	asked := stream.until(`"roots/list"`)
	post(c.replicas[2], `{"jsonrpc":"2.0","id":`+string(jsonrpc.Get([]byte(asked), "id"))+`,"result":{"roots":[]}}`)
	stream.until(`"id":"ask","result"`)

	c.replicas[0].Kill()
	stream.ends()
	if status := post(c.replicas[1], `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != http.StatusNotFound {
		t.Errorf("a message after the end of the stream: got status %d, want 404", status)
	}
}
