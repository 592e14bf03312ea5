package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/trust"
	"github.com/agenticnexus/agenticnexus/router"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// taskClient is a client of a surface that takes tasks. key may be empty.
func (r *running) taskClient(path, key string) *mcptest.Client {
	transport := &http.Transport{}
	r.t.Cleanup(transport.CloseIdleConnections)
	return &mcptest.Client{URL: r.base + path, Version: mcptest.Modern, Capabilities: mcptest.Tasks,
		HTTP: &http.Client{Timeout: deadline, Transport: mcptest.WithKey(transport, key)}}
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
	if c := r.taskClient("/profiles/none/mcp", ""); declares(t, c) || c.OfTask(t.Context(), "get", "x", "").Failure().Code != -32602 {
		t.Error("a surface without process_query, in front of a server without tasks, declares tasks, or knows one")
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

// taskServer starts a server of 2026-07-28 whose tools begin tasks. Tasks are found by their ids alone there.
func taskServer(t *testing.T) (*mcptest.Server, string) {
	t.Helper()
	s := &mcptest.Server{Version: mcptest.Modern, OnHTTP: mcptest.CheckHeaders}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	t.Cleanup(h.CloseClientConnections)
	return s, h.URL
}

// callOf are the params of a call of a tool.
func callOf(tool, arguments string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments)
}

// Tasks of a server of 2026-07-28 pass through the proxy: their ids are sealed, what they ask has the server's name where
// there are several, and results have the URIs of the surface.
func TestTasksOfServers(t *testing.T) {
	_, url := taskServer(t)
	r := start(t, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("peer", url))
		o.Config.Profiles = map[string]config.Profile{"some": {Surface: config.SurfaceProxy}}
	})
	for _, row := range []struct{ path, prefix, uri, question string }{
		{"/servers/peer/mcp", "", `"uri":"file:///x"`, `"Delete it?"`},
		{"/proxy/mcp", "peer__", `"uri":"peer__file:///x"`, `"Server peer asks: Delete it?"`},
		{"/profiles/some/mcp", "peer__", `"uri":"peer__file:///x"`, `"Server peer asks: Delete it?"`},
	} {
		c := r.taskClient(row.path, "")
		var asked []string
		c.Answers = func(m mcptest.Message) string {
			asked = append(asked, m.Raw)
			return `{"action":"accept","content":{"n":9007199254740993}}`
		}
		if !declares(t, c) {
			t.Errorf("%s: server/discover does not declare the extension", row.path)
		}
		ended := func(tool, arguments string) mcptest.Task {
			task, err := c.Begin(t.Context(), "tools/call", callOf(row.prefix+tool, arguments))
			if err != nil {
				t.Fatalf("%s %s: %v", row.path, tool, err)
			}
			if strings.Contains(task.ID, "server") {
				t.Errorf("%s: got the id %s, want a sealed one", row.path, task.ID)
			}
			done, err := mcptest.Await(t.Context(), c, task.ID)
			if err != nil || done.ID != task.ID {
				t.Errorf("%s %s: got %+v, %v, want the task %s", row.path, tool, done, err, task.ID)
			}
			return done
		}
		if got := ended("confirm_delete", "{}"); !strings.Contains(string(got.Result), "9007199254740993") || !strings.Contains(string(got.Result), row.uri) {
			t.Errorf("%s: got %s, want the answer and %s", row.path, got.Result, row.uri)
		}
		if len(asked) == 0 || !strings.Contains(asked[0], row.question) {
			t.Errorf("%s: got the questions %q, want %s", row.path, asked, row.question)
		}
		if got := ended("failing_job", "{}"); got.Status != "completed" || !strings.Contains(string(got.Result), `"isError":true`) {
			t.Errorf("%s: got %+v, want a result with isError", row.path, got)
		}
		if got := ended("protocol_error_job", "{}"); got.Status != "failed" || !strings.Contains(string(got.Error), "it broke") {
			t.Errorf("%s: got %+v, want the error of the server", row.path, got)
		}
		if got := ended("test_tool_with_task", "{}"); !strings.Contains(string(got.Result), "9007199254740993") {
			t.Errorf("%s: got %+v, want the answer of the round trip", row.path, got)
		}
		task, err := c.Begin(t.Context(), "tools/call", callOf(row.prefix+"slow_compute", `{"seconds":60}`))
		if got := c.OfTask(t.Context(), "cancel", task.ID, ""); err != nil || got.Outcome() != "result" {
			t.Errorf("%s: cancel: got %s, %v", row.path, got.Outcome(), err)
		}
		if done, err := mcptest.Await(t.Context(), c, task.ID); err != nil || done.Status != "cancelled" {
			t.Errorf("%s: got %+v, %v, want a cancelled task", row.path, done, err)
		}
		plain := r.taskClient(row.path, "")
		plain.Capabilities = `{}`
		if got := plain.Do(t.Context(), "tools/call", callOf(row.prefix+"slow_compute", "{}")); got.Text() != "computed" {
			t.Errorf("%s: without the extension: got %s%s, want the result", row.path, got.Result, got.Error)
		}
		if got := plain.OfTask(t.Context(), "get", task.ID, ""); got.Failure().Code != -32021 {
			t.Errorf("%s: tasks/get without the extension: got %s, want -32021", row.path, got.Error)
		}
	}
	c := r.taskClient("/mcp", "")
	for _, call := range []string{callOf("run", `{"tool":"peer__slow_compute","parameters":{}}`), callOf("peer__slow_compute", `{}`)} {
		if got := c.Do(t.Context(), "tools/call", call); got.Text() != "computed" {
			t.Errorf("%s: got %s%s, want no task", call, got.Result, got.Error)
		}
	}
	steps := c.Do(t.Context(), "tools/call", callOf("process_query", `{"query":"q","plan":[{"tool":"slow_compute"}]}`))
	done, err := mcptest.Await(t.Context(), c, jsonrpc.Text(jsonrpc.Get(steps.Result, "taskId")))
	if err != nil || !strings.Contains(string(done.Result), "computed") {
		t.Errorf("a step: got %+v, %v, want no task of the server", done, err)
	}
}

// A task of a server belongs to the caller whose call began it, as far as that may still use the tool.
func TestTasksOfServersAreTheCallersOwn(t *testing.T) {
	_, url := taskServer(t)
	some := func(name string, tools ...string) auth.KeyConfig {
		return auth.KeyConfig{Name: name, Key: redact.Secret("key-" + name), Tools: auth.Filter{Allow: tools}}
	}
	keys := func(ann ...string) auth.Config {
		return auth.Config{APIKeys: []auth.KeyConfig{some("ann", ann...), some("bob", "peer__*")}}
	}
	r := start(t, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("peer", url))
		o.Config.Auth = keys("peer__slow_compute")
	})
	ann, bob := r.taskClient("/servers/peer/mcp", "key-ann"), r.taskClient("/servers/peer/mcp", "key-bob")
	if !declares(t, ann) {
		t.Error("server/discover does not declare the extension for a caller with some tools")
	}
	task, err := ann.Begin(t.Context(), "tools/call", callOf("slow_compute", `{"seconds":60}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"get", "update", "cancel"} {
		const answers = `,"inputResponses":{}`
		unknown := bob.OfTask(t.Context(), method, "nothing", answers)
		if got := bob.OfTask(t.Context(), method, task.ID, answers); string(got.Error) != string(unknown.Error) || got.Failure().Code != -32602 {
			t.Errorf("%s of another's task: got %s, want %s", method, got.Error, unknown.Error)
		}
	}
	elsewhere := r.taskClient("/proxy/mcp", "key-ann")
	if got := elsewhere.OfTask(t.Context(), "get", task.ID, ""); got.Failure().Code != -32602 {
		t.Errorf("on another surface: got %s%s, want -32602", got.Result, got.Error)
	}
	if got := ann.OfTask(t.Context(), "get", task.ID, ""); !strings.Contains(string(got.Result), `"working"`) {
		t.Errorf("the caller's own task: got %s%s, want that it works", got.Result, got.Error)
	}
	replaced := server("peer", url)
	replaced.Timeout = time.Hour
	r.reload(func(c *config.Config) { c.Servers = []downstream.ServerConfig{replaced} })
	if got := ann.OfTask(t.Context(), "get", task.ID, ""); !strings.Contains(string(got.Result), `"working"`) {
		t.Errorf("after a reload: got %s%s, want that it works", got.Result, got.Error)
	}
	r.reload(func(c *config.Config) { c.Servers, c.Auth = []downstream.ServerConfig{replaced}, keys("peer__greet") })
	if got := ann.OfTask(t.Context(), "cancel", task.ID, ""); !strings.Contains(string(got.Error), "Unknown tool: peer__slow_compute") {
		t.Errorf("of a tool that the caller may not use any more: got %s%s, want that it is unknown", got.Result, got.Error)
	}
	r.reload(func(c *config.Config) { c.Auth = keys("peer__*") })
	if got := ann.OfTask(t.Context(), "get", task.ID, ""); got.Failure().Code != -32602 {
		t.Errorf("of a server that is gone: got %s%s, want -32602", got.Result, got.Error)
	}
}

// Another key of the same name has nothing that the former one has begun.
func TestTasksOfAReplacedKey(t *testing.T) {
	_, url := taskServer(t)
	book := newPeer(peerTool{"book", object, func(c *peerCall) (string, string) {
		return textResult(string(c.ask("elicitation/create", `{"message":"Where?"}`).Result)), ""
	}})
	ann := func(key string) []auth.KeyConfig { return []auth.KeyConfig{{Name: "ann", Key: redact.Secret(key)}} }
	r := start(t, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("peer", url), server("book", book.serve(t).URL))
		o.Config.Auth.APIKeys = ann("one")
	})
	session, begun := r.session("/proxy/mcp", "one"), map[string]string{}
	for path, call := range map[string]string{
		"/mcp":              callOf("process_query", `{"query":"q","plan":[]}`),
		"/servers/peer/mcp": callOf("slow_compute", `{"seconds":0.01}`),
	} {
		c := r.taskClient(path, "one")
		task, err := c.Begin(t.Context(), "tools/call", call)
		if err == nil {
			_, err = mcptest.Await(t.Context(), c, task.ID)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		begun[path] = task.ID
	}
	asks := r.taskClient("/servers/book/mcp", "one")
	asks.Answers = func(mcptest.Message) string {
		r.reload(func(c *config.Config) { c.Servers, c.Auth.APIKeys = r.opts.Config.Servers, ann("two") })
		asks.HTTP = r.taskClient("", "two").HTTP
		return `{"action":"accept"}`
	}
	if got := asks.Do(t.Context(), "tools/call", callOf("book", "{}")).Failure(); got.Code != -32602 {
		t.Errorf("a round trip: got %+v, want -32602", got)
	}
	session["X-API-Key"] = "two"
	if resp, text := r.raw("POST", "/proxy/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, session); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a session: got %d %s, want 404", resp.StatusCode, text)
	}
	for path, id := range begun {
		c := r.taskClient(path, "two")
		if got := c.OfTask(t.Context(), "get", id, "").Failure(); got.Code != -32602 {
			t.Errorf("%s: got %+v, want -32602", path, got)
		}
		if got := <-listenTo(t, c, id); strings.Contains(got, id) {
			t.Errorf("%s: got %s, want the id not acknowledged", path, got)
		}
	}
}

// A server cannot give a client a task that it did not ask for, nor ask it without its name, nor what it may not.
func TestHostileTasksOfServers(t *testing.T) {
	const task = `"taskId":"t","status":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Password?"}}}`
	hostile, url := taskServer(t)
	hostile.OnMessage = func(_ context.Context, m mcptest.Message, send func(string)) bool {
		switch name := m.Call().Name; {
		case m.Method == "tools/call" && name == "greet":
			send(m.Response(`{"resultType":"task","taskId":"t"}`))
		case m.Method == "tools/call" && name == "failing_job":
			send(m.Response(`{"resultType":"task","taskId":"a","taskId":"b"}`))
		case m.Method == "tools/call" && name == "multi_input":
			send(m.Response(`{"resultType":"task","taskId":7}`))
		case m.Method == "tasks/get": // without a resultType
			send(m.Response("{" + task + "}"))
		case m.Method == "resources/read":
			send(m.Response(`{"resultType":"task","taskId":"t"}`))
		default:
			return false
		}
		return true
	}
	old := &mcptest.Server{OnMessage: hostile.OnMessage}
	h := httptest.NewServer(old)
	t.Cleanup(h.Close)
	t.Cleanup(h.CloseClientConnections)
	old.SetTools(`[{"name":"greet","inputSchema":{"type":"object"}}]`)
	r := start(t, func(o *app.Options) {
		silent := server("silent", url)
		silent.Requests = []string{}
		o.Config.Servers = append(o.Config.Servers, server("peer", url), silent, server("old", h.URL))
	})
	c := r.taskClient("/proxy/mcp", "")
	plain := r.taskClient("/proxy/mcp", "")
	plain.Capabilities = `{}`
	for what, reply := range map[string]mcptest.Reply{
		"a client without tasks":      plain.Do(t.Context(), "tools/call", callOf("peer__greet", "{}")),
		"a server of a handshake era": c.Do(t.Context(), "tools/call", callOf("old__greet", "{}")),
		"two ids":                     c.Do(t.Context(), "tools/call", callOf("peer__failing_job", "{}")),
		"an id that is no string":     c.Do(t.Context(), "tools/call", callOf("peer__multi_input", "{}")),
		"another request than a call": r.taskClient("/servers/peer/mcp", "").Do(t.Context(), "resources/read", `{"uri":"file:///x"}`),
		"a call by run":               r.taskClient("/mcp", "").Do(t.Context(), "tools/call", callOf("run", `{"tool":"peer__greet","parameters":{}}`)),
	} {
		if got := reply.Failure(); got.Code != -32603 || got.Data.Reason != "protocol" || !strings.Contains(got.Message, "task") {
			t.Errorf("%s: got %s%s, want -32603 with the reason protocol", what, reply.Result, reply.Error)
		}
	}
	begun, err := c.Begin(t.Context(), "tools/call", callOf("peer__greet", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.OfTask(t.Context(), "get", begun.ID, ""); !strings.Contains(string(got.Result), `"Server peer asks: Password?"`) {
		t.Errorf("a request without a resultType: got %s%s, want the name of the server in it", got.Result, got.Error)
	}
	begun, err = c.Begin(t.Context(), "tools/call", callOf("silent__greet", "{}"))
	if got := c.OfTask(t.Context(), "get", begun.ID, ""); err != nil || !strings.Contains(string(got.Error), "does not let the server ask") {
		t.Errorf("a server that may ask nothing: got %s%s, %v", got.Result, got.Error, err)
	}
}

// A policy decides on the call that begins a task: where it asks, there is none, and polling is not judged again. The
// audit log has each request with its tool.
func TestTasksOfServersAreDecidedOn(t *testing.T) {
	_, url := taskServer(t)
	change, path := audited(t, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("peer", url))
		o.Config.Policy = []trust.Rule{
			{When: `tool == "slow_compute"`, Then: trust.Ask},
			{When: `tool == "confirm_delete" && arguments.no`, Then: trust.Deny},
		}
	})
	r := start(t, change)
	c := r.taskClient("/servers/peer/mcp", "")
	c.Answers = func(mcptest.Message) string { return `{"action":"accept","content":{}}` }
	if got := c.Do(t.Context(), "tools/call", callOf("slow_compute", `{"seconds":0.01}`)); got.Text() != "computed" {
		t.Errorf("a call that needs consent: got %s%s, want its result", got.Result, got.Error)
	}
	task, err := c.Begin(t.Context(), "tools/call", callOf("confirm_delete", `{"no":false}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.OfTask(t.Context(), "cancel", task.ID, ""); got.Outcome() != "result" {
		t.Errorf("cancel: got %s", got.Error)
	}
	if got := c.OfTask(t.Context(), "get", "foreign", ""); got.Failure().Code != -32602 {
		t.Errorf("a foreign id: got %s%s", got.Result, got.Error)
	}
	const head = "127.0.0.1 server:peer /servers/peer/mcp peer "
	wantRecorded(t, r, path, head+"tools/call slow_compute client ask policy[0] user ok",
		head+"tools/call confirm_delete client allow ok", head+"tasks/cancel confirm_delete client allow ok",
		head+"tasks/get client deny denied -32602")
}

// What a server announces of a task reaches the caller whose call began it, where it listens to the task, and no other.
func TestTasksOfServersAreAnnounced(t *testing.T) {
	_, url := taskServer(t)
	r := start(t, func(o *app.Options) {
		o.Config.Servers = append(o.Config.Servers, server("peer", url))
		o.Config.Auth = auth.Config{APIKeys: keys("ann", "bob")}
	})
	for _, row := range []struct{ path, prefix, asks, uri string }{
		{"/servers/peer/mcp", "", `"A?"`, `"uri":"file:///x"`},
		{"/proxy/mcp", "peer__", `"Server peer asks: A?"`, `"uri":"peer__file:///x"`},
	} {
		ann, bob := r.taskClient(row.path, "ann"), r.taskClient(row.path, "bob")
		task, err := ann.Begin(t.Context(), "tools/call", callOf(row.prefix+"multi_input", "{}"))
		if err != nil {
			t.Fatal(err)
		}
		said := listenTo(t, ann, task.ID)
		if got := <-said; !strings.Contains(got, `"taskIds":["`+task.ID+`"]`) || !strings.Contains(got, "acknowledged") {
			t.Errorf("%s: got %s, want the id acknowledged", row.path, got)
		}
		foreign := listenTo(t, bob, task.ID)
		if got := <-foreign; strings.Contains(got, "taskIds") || !strings.Contains(got, "acknowledged") {
			t.Errorf("%s: got %s, want another's id not acknowledged", row.path, got)
		}
		if got := ann.OfTask(t.Context(), "update", task.ID, `,"inputResponses":{"a":{},"b":{}}`); got.Outcome() != "result" {
			t.Fatalf("%s: update: got %s", row.path, got.Error)
		}
		for last := ""; !strings.Contains(last, `"status":"completed"`); {
			if last = <-said; !strings.Contains(last, `"taskId":"`+task.ID+`"`) || !strings.Contains(last, `"io.modelcontextprotocol/subscriptionId":"l"`) || strings.Contains(last, "completed") && !strings.Contains(last, row.uri) || strings.Contains(last, "inputRequests") && !strings.Contains(last, row.asks) {
				t.Errorf("%s: got %s, want the task with the client's id and URIs", row.path, last)
			}
			if last == "" {
				t.Fatal("the stream has ended")
			}
		}
		select {
		case got := <-foreign:
			t.Errorf("%s: another caller got %s", row.path, got)
		default:
		}
	}
}

// listenTo returns what a client that listens to a task hears.
func listenTo(t *testing.T, c *mcptest.Client, id string) (said chan string) {
	t.Helper()
	ctx, hangUp := context.WithCancel(t.Context())
	t.Cleanup(hangUp)
	resp, err := c.Post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"taskIds":[%q,"no"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, id, mcptest.Tasks))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	said = make(chan string, 100)
	go func() {
		defer close(said)
		_ = mcptest.Events(resp.Body, func(_, data string) { said <- data })
	}()
	return said
}

// Tasks of a server where each caller logs in itself go with the caller's own login, also what it announces of them.
func TestTasksOfServersWithLogins(t *testing.T) {
	o := &mcptest.OAuth{}
	t.Cleanup(mcptest.ServeOAuth(o, &mcptest.Server{Version: mcptest.Modern, OnHTTP: mcptest.CheckHeaders}))
	r := start(t, func(opts *app.Options) {
		mail := server("mail", o.URL+"/mcp")
		mail.Auth = &oauth.Config{Scope: oauth.ScopePerCaller}
		opts.Config.Servers = append(opts.Config.Servers, mail)
		opts.Config.Auth.APIKeys = keys("k1", "k2")
	})
	newBrowser(t, "ann").logIn(r.base+"/login/mail", "k1")
	c := r.taskClient("/servers/mail/mcp", "k1")
	task, err := c.Begin(t.Context(), "tools/call", callOf("slow_compute", `{"seconds":60}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.OfTask(t.Context(), "get", task.ID, ""); !strings.Contains(string(got.Result), `"working"`) {
		t.Errorf("get: got %s%s, want that it works", got.Result, got.Error)
	}
	if got := <-listenTo(t, c, task.ID); !strings.Contains(got, `"taskIds":["`+task.ID+`"]`) {
		t.Errorf("got %s, want the id acknowledged", got)
	}
}
