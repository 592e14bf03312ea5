package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// taskClient is a client of a surface that takes tasks. key may be empty.
func (r *running) taskClient(path, key string) *mcptest.Client {
	transport := &http.Transport{}
	r.t.Cleanup(transport.CloseIdleConnections)
	return &mcptest.Client{URL: r.base + path, Version: mcptest.Modern, Capabilities: mcptest.Tasks,
		HTTP: &http.Client{Timeout: deadline, Transport: bearing{transport, key}}}
}

// bearing adds a key to requests.
type bearing struct {
	http.RoundTripper
	key string
}

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.key != "" {
		r = r.Clone(r.Context())
		r.Header.Set("X-Api-Key", b.key)
	}
	return b.RoundTripper.RoundTrip(r)
}

// declares reports whether server/discover of a surface declares the extension.
func declares(t *testing.T, c *mcptest.Client) bool {
	t.Helper()
	reply := c.Do(t.Context(), "server/discover", "{}")
	return jsonrpc.Get(reply.Result, "capabilities", "extensions", "io.modelcontextprotocol/tasks") != nil
}

// A query becomes a task where the client takes tasks. Its result is that of the query, forms are its input, and its
// progress is told.
func TestProcessQueryAsATask(t *testing.T) {
	const question = `{"name":"process_query","arguments":{"query":"q","plan":[{"tool":"hotel","arguments":{"nights":1,"class":"low"}},{"tool":"echo","arguments":{"big":9007199254740993}}]}}`
	r, _ := withPeer(t, nil, func(o *app.Options) {
		o.Config.Profiles = map[string]config.Profile{"some": {}, "none": {Surface: config.SurfaceProxy}}
	}, peerTool{"hotel", bookSchema, echoTool("").call}, echoTool("echo"))
	for _, path := range []string{"/mcp", "/profiles/some/mcp"} {
		c := r.taskClient(path, "")
		c.Answers = func(mcptest.Message) string { return `{"action":"accept","content":{"city":"Oslo"}}` }
		if !declares(t, c) {
			t.Errorf("%s: server/discover does not declare the extension", path)
		}
		task, err := c.Begin(t.Context(), "tools/call", question)
		if err != nil {
			t.Fatal(err)
		}
		done, err := mcptest.Await(t.Context(), c, task.ID)
		if err != nil || done.Status != "completed" || done.StatusMessage != "Complete!" {
			t.Fatalf("%s: got %+v, %v, want a completed task", path, done, err)
		}
		plain := r.taskClient(path, "")
		plain.Capabilities, plain.Answers = `{"elicitation":{}}`, c.Answers
		if got, want := briefResult(t, done.Result), briefResult(t, plain.Do(t.Context(), "tools/call", question).Result); got != want || !strings.Contains(got, "Oslo") {
			t.Errorf("%s: got %s, want %s as without a task", path, got, want)
		}
	}
	if c := r.taskClient("/profiles/none/mcp", ""); declares(t, c) || c.OfTask(t.Context(), "get", "x", "").Failure().Code != -32601 {
		t.Error("a surface without process_query, in front of a server without tasks, has tasks")
	}
}

// Cancelling a task cancels the calls of its query; a bad argument or a reached rate limit makes no task.
func TestCancelledTask(t *testing.T) {
	ended := make(chan struct{})
	hang := peerTool{"hang", object + readOnly, func(c *peerCall) (string, string) {
		<-c.ctx.Done()
		close(ended)
		return "", ""
	}}
	r, p := withPeer(t, nil, func(o *app.Options) {
		o.Config.RateLimit = limit.RateConfig{Requests: 2, Per: time.Hour, Tools: []string{router.ToolProcessQuery}}
	}, hang)
	c := r.taskClient("/mcp", "")
	if got := c.Do(t.Context(), "tools/call", `{"name":"process_query","arguments":{}}`).Text(); !strings.Contains(got, "query is required") {
		t.Errorf("without a query: got %q, want why it is refused", got)
	}
	task, err := c.Begin(t.Context(), "tools/call", `{"name":"process_query","arguments":{"query":"q","plan":[{"tool":"hang"}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	mcptest.Eventually(t, "the step to run", func() bool { return len(p.calls()) == 1 })
	if got := c.OfTask(t.Context(), "cancel", task.ID, ""); string(got.Result) != `{"resultType":"complete"}` {
		t.Errorf("cancel: got %s%s", got.Result, got.Error)
	}
	<-ended
	if done, err := mcptest.Await(t.Context(), c, task.ID); err != nil || done.Status != "cancelled" {
		t.Errorf("got %+v, %v, want a cancelled task", done, err)
	}
	if got := c.Do(t.Context(), "tools/call", `{"name":"process_query","arguments":{"query":"q"}}`).Text(); !strings.Contains(got, "ate limit") {
		t.Errorf("beyond the rate limit: got %q, want a refusal", got)
	}
}

// briefResult is brief for a raw result of process_query.
func briefResult(t *testing.T, raw []byte) string {
	t.Helper()
	var a router.AnswerContent
	if err := json.Unmarshal(jsonrpc.Get(raw, "structuredContent"), &a); err != nil {
		t.Fatalf("got %s, want an answer: %v", raw, err)
	}
	return brief(&a) + " " + jsonrpc.Text(jsonrpc.Get(raw, "resultType"))
}
