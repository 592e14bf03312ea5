package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// serveFive starts the router before the reference servers, server-everything on each transport, and
// returns it with the folder of the file server, which holds note.txt.
func (c counterparts) serveFive() (r *router, folder string) {
	c.t.Helper()
	folder, err := filepath.EvalSymlinks(c.t.TempDir())
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "note.txt"), []byte("the kettle is blue"), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return serve(c.t, fmt.Sprintf(`
mcpServers:
  stream: {url: %q}
  events: {url: %q}
  pipe:   {command: %q, args: [%q, stdio]}
  files:  {command: %q, args: [%q, %q]}
  memory: {command: %q, args: [%q], env: {MEMORY_FILE_PATH: %q}}
`, c.listen("streamableHttp").url(), c.listen("sse").url(), c.node, c.everything(),
		c.node, c.script("server-filesystem", "dist/index.js"), folder,
		c.node, c.script("server-memory", "dist/index.js"), filepath.Join(folder, "memory.jsonl"))), folder
}

func TestInspector(t *testing.T) {
	t.Parallel()
	c := others(t)
	r, folder := c.serveFive()
	mcp := []string{r.url + "/mcp", "--transport", "http"}
	call := func(tool string, args ...string) toolResult {
		t.Helper()
		line := slices.Concat(mcp, []string{"--method", "tools/call", "--tool-name", tool})
		for _, arg := range args {
			line = append(line, "--tool-arg", arg)
		}
		return decode[toolResult](t, c.inspect(line...))
	}

	for transport, path := range map[string]string{"http": "/mcp", "sse": "/sse"} {
		list := decode[struct{ Tools []struct{ Name string } }](t, c.inspect(r.url+path, "--transport", transport, "--method", "tools/list"))
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		slices.Sort(names)
		if want := []string{"health_check", "list_available_tools", "process_query", "run", "search_available_tools"}; !slices.Equal(names, want) {
			t.Errorf("tools/list on %s: got %v, want %v", path, names, want)
		}
	}

	states := decode[map[string]string](t, []byte(call("health_check").text()))
	for _, server := range []string{"stream", "events", "pipe", "files", "memory"} {
		if states[server] != "connected" {
			t.Errorf("health_check: got %s %q, want connected", server, states[server])
		}
	}

	for _, server := range []string{"stream", "events", "pipe"} {
		if got := call("run", "tool="+server+"__get-sum", `parameters={"a":17,"b":25}`).text(); !strings.Contains(got, "42") {
			t.Errorf("get-sum of 17 and 25 on %s: got %q, want 42 in it", server, got)
		}
	}
	note := filepath.Join(folder, "note.txt")
	if got := call("run", "tool=read_text_file", fmt.Sprintf(`parameters={"path":%q}`, note)).text(); got != "the kettle is blue" {
		t.Errorf("reading the note: got %q, want its text", got)
	}
	call("run", "tool=memory:create_entities", `parameters={"entities":[{"name":"Ada","entityType":"person","observations":["likes trains"]}]}`)
	if got := call("run", "tool=memory.search_nodes", `parameters={"query":"trains"}`).text(); !strings.Contains(got, "Ada") {
		t.Errorf("searching the memory: got %q, want Ada in it", got)
	}

	result := call("process_query", "query=Read the note, then say it", fmt.Sprintf(
		`plan=[{"tool":"files__read_text_file","arguments":{"path":%q}},{"tool":"pipe__echo","arguments":{"message":"${s1.content}!"}}]`, note))
	a := decode[answer](t, result.StructuredContent)
	if len(a.Steps) != 2 || !a.Steps[0].Success || !a.Steps[1].Success || !strings.Contains(string(a.Steps[1].Result), "the kettle is blue!") {
		t.Errorf("process_query with a plan: got steps %+v, want the text of the first in the second", a.Steps)
	}
	if result.text() != a.Answer || !strings.Contains(a.Answer, "the kettle is blue") {
		t.Errorf("process_query with a plan: got answer %q, want the note in it", a.Answer)
	}

	result = call("process_query", `query=Search the nodes of the knowledge graph for "trains"`)
	a = decode[answer](t, result.StructuredContent)
	if !strings.Contains(a.Answer, "Ada") || a.Plan.Source != "rules" {
		t.Errorf("process_query: got answer %q by plan %+v, want Ada by the rules", a.Answer, a.Plan)
	}
}

// The Inspector as a desktop client: it starts nexus itself.
func TestInspectorStdio(t *testing.T) {
	t.Parallel()
	c := others(t)
	out := c.inspect(program, "stdio", "--demo", "--method", "tools/call", "--tool-name", "run",
		"--tool-arg", "tool=calculate", "--tool-arg", `parameters={"expression":"2500 * 0.15"}`)
	if got := decode[toolResult](t, out).text(); got != "375" {
		t.Errorf("2500 * 0.15: got %q, want 375", got)
	}
}
