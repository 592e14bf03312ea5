package tests

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// takesTasks returns a client of a surface that takes tasks.
func takesTasks(t *testing.T, url string) *mcptest.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &mcptest.Client{URL: url, HTTP: &http.Client{Transport: transport}, Version: mcptest.Modern,
		Capabilities: mcptest.Tasks, Answers: func(mcptest.Message) string { return `{"action":"accept","content":{}}` }}
}

// The client of the extension's own package gets the results of tasks of the router and of a server.
func TestTasks_OfTheirPackage(t *testing.T) {
	t.Parallel()
	c := others(t)
	s := httptest.NewServer(&mcptest.Server{Version: mcptest.Modern, OnHTTP: mcptest.CheckHeaders})
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	r := serve(t, fmt.Sprintf("mcpServers: {tasks: {url: %q}}", s.URL))
	for _, row := range []struct{ path, tool, arguments, want string }{
		{"/mcp", "process_query", `{"query":"q","plan":[{"tool":"greet","arguments":{"name":"Ann"}}]}`, "Hello, Ann!"},
		{"/proxy/mcp", "tasks__confirm_delete", `{}`, `{\"action\":\"accept\",\"content\":{\"user_name\":\"Ann\"}}`},
		{"/servers/tasks/mcp", "slow_compute", `{"seconds":0.1}`, "computed"},
	} {
		out, err := exec.Command(c.node, filepath.Join(c.folder, "task.mjs"), r.url+row.path, row.tool, row.arguments,
			`{"action":"accept","content":{"user_name":"Ann"}}`).CombinedOutput()
		if err != nil || !strings.Contains(string(out), `"kind":"task"`) || !strings.Contains(string(out), row.want) {
			t.Errorf("%s %s: got %s, %v, want a task with %s", row.path, row.tool, out, err, row.want)
		}
	}
}

// A task of the router lives at one replica, which the others reach, and ends with it; the task of a server is known to
// all of them.
func TestCluster_Tasks(t *testing.T) {
	t.Parallel()
	c := clusterFor(t, &mcptest.Server{Version: mcptest.Modern})
	at := func(i int, path string) *mcptest.Client { return takesTasks(t, c.replicas[i].URL()+path) }
	begin := func(c *mcptest.Client, tool, arguments string) string {
		t.Helper()
		task, err := c.Begin(t.Context(), "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
		if err != nil {
			t.Fatal(err)
		}
		return task.ID
	}
	const query = `{"query":"q","plan":[{"tool":%q,"arguments":{"ms":%d}}]}`
	for i := range c.replicas {
		id := begin(at(i, "/mcp"), "process_query", fmt.Sprintf(query, "greet", 0))
		task, err := mcptest.Await(t.Context(), at((i+1)%3, "/mcp"), id)
		if err != nil || task.Status != "completed" || !strings.Contains(string(task.Result), "Hello") {
			t.Errorf("a task of %s at the next one: got %+v, %v, want its result", c.replicas[i].Name, task, err)
		}
	}
	id := begin(at(0, "/mcp"), "process_query", fmt.Sprintf(query, "wait", 60_000))
	if got := at(1, "/mcp").OfTask(t.Context(), "cancel", id, ""); got.Outcome() != "result" {
		t.Errorf("cancelling at another replica: got %s", got.Outcome())
	}
	if task, err := mcptest.Await(t.Context(), at(2, "/mcp"), id); err != nil || task.Status != "cancelled" {
		t.Errorf("got %+v, %v, want a cancelled task", task, err)
	}
	of := begin(at(0, "/proxy/mcp"), "work__confirm_delete", `{}`)
	c.replicas[0].Kill()
	if got := at(1, "/mcp").OfTask(t.Context(), "get", id, ""); got.Outcome() != "HTTP 400 -32602" {
		t.Errorf("a task of a replica that is gone: got %s %s, want -32602", got.Outcome(), got.Error)
	}
	if task, err := mcptest.Await(t.Context(), at(1, "/proxy/mcp"), of); err != nil || task.Status != "completed" {
		t.Errorf("a task of a server after the end of a replica: got %+v, %v, want its result", task, err)
	}
}

// A task of the router ends with its process; the task of a server goes on, as long as the router keeps its state.
func TestTasks_AfterARestart(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(&mcptest.Server{Version: mcptest.Modern})
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	config := fmt.Sprintf("state: %q\nmcpServers: {tasks: {url: %q}}\n", t.TempDir(), s.URL)
	r := serve(t, config)
	own, err := takesTasks(t, r.url+"/mcp").Begin(t.Context(), "tools/call", `{"name":"process_query","arguments":{"query":"q","plan":[{"tool":"greet"}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	of, err := takesTasks(t, r.url+"/proxy/mcp").Begin(t.Context(), "tools/call", `{"name":"tasks__confirm_delete","arguments":{}}`)
	if err != nil {
		t.Fatal(err)
	}
	r.kill()
	r = serve(t, config, "--listen", strings.TrimPrefix(r.url, "http://"))
	if got := takesTasks(t, r.url+"/mcp").OfTask(t.Context(), "get", own.ID, ""); got.Failure().Code != -32602 {
		t.Errorf("a task of the router: got %s%s, want -32602", got.Result, got.Error)
	}
	if task, err := mcptest.Await(t.Context(), takesTasks(t, r.url+"/proxy/mcp"), of.ID); err != nil || task.Status != "completed" {
		t.Errorf("a task of the server: got %+v, %v, want its result", task, err)
	}
	s.CloseClientConnections()
	s.Close()
	got := takesTasks(t, r.url+"/proxy/mcp").OfTask(t.Context(), "get", of.ID, "")
	if f := got.Failure(); f.Data.Server != "tasks" || f.Data.Reason != "unavailable" {
		t.Errorf("a task of a server that is gone: got %s%s, want that it is unavailable", got.Result, got.Error)
	}
}
