package catalog

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/reason"
)

// list reads a list of valid tools.
func list(server string, names ...string) *List {
	var items []json.RawMessage
	for _, name := range names {
		items = append(items, json.RawMessage(fmt.Sprintf(`{"name":%q,"inputSchema":{}}`, name)))
	}
	return Read(server, items, true, func(string) bool { return true }, func(*Tool) string { return "" }, func(string, error) {})
}

// A change of one server leaves the tools of the others as they are, unless it changes their names.
func TestBuild_SharesUnchangedTools(t *testing.T) {
	var last *Catalog
	build := func(a, b *List) (c *Catalog, changed string) {
		former := last
		last = Build(former, Options{}, []Source{{Server: "a", List: a}, {Server: "b", List: b}}, nil)
		for server, tools := range last.Changed(former) {
			changed += fmt.Sprint(server, len(tools))
		}
		return last, changed
	}
	a, b := list("a", "x", "y"), list("b", "z")
	for i, step := range []struct {
		a, b          *List
		changed, name string // name is that of a's first tool
	}{
		{a, b, "a2b1", "x"},
		{a, b, "", "x"},
		{a, list("b", "z", "w"), "b2", "x"},
		{a, list("b", "x"), "a2b1", "a.x"},
		{a, list("b", "x", "z"), "b2", "a.x"},
		{nil, b, "a0b1", ""},
	} {
		number := 0
		if last != nil {
			number = last.Number
		}
		c, changed := build(step.a, step.b)
		name := ""
		if tools := c.Of("a"); len(tools) > 0 {
			name = tools[0].Name
		}
		if changed != step.changed || name != step.name || (c.Number > number) != (changed != "") {
			t.Errorf("step %d: got %s changed, number %d after %d, and the name %s; want %+v", i, changed, c.Number, number, name, step)
		}
	}
	one := Build(last, Options{}, []Source{{Server: "b", List: b}}, nil)
	for server, tools := range one.Changed(last) {
		if server != "a" || tools != nil {
			t.Errorf("got %s with %v changed, want a without tools", server, tools)
		}
	}
}

// BenchmarkBuild catalogues 20,000 tools of 200 servers, many with equal names.
func BenchmarkBuild(b *testing.B) {
	var sources []Source
	for s := range 200 {
		var names []string
		for n := range 100 {
			names = append(names, fmt.Sprintf("tool_%d", n*(s%2)+n))
		}
		server := fmt.Sprintf("server%d", s)
		sources = append(sources, Source{Server: server, List: list(server, names...)})
	}
	for b.Loop() {
		c := Build(nil, Options{NameLimit: 46}, sources, nil)
		if _, err := c.Lookup("server7__tool_3", nil); err == nil || c.Of("server6")[3].Name != "server6.tool_3" {
			b.Fatalf("got %v and %s", err, c.Of("server6")[3].Name)
		}
	}
}

// The tools of a missing server are not listed but found by each of their names, so that a call of one connects anew.
// A name of one that is listed, or of one whose server is named, comes first.
func TestLookup_MissingServer(t *testing.T) {
	c := Build(nil, Options{NameLimit: 46}, []Source{{Server: "a"}, {Server: "b", List: list("b", "echo", "a.x", "a__x")}, {Server: "c"}},
		[]Missing{{Server: "a", Last: list("a", "echo", "x", "a__x", "get.it", "both")}, {Server: "c", Last: list("c", "both")}})
	for tool := range c.See(nil) {
		if tool.Server != "b" {
			t.Errorf("got %s of %s listed", tool.Name, tool.Server)
		}
	}
	onlyA := func(server, _ string) bool { return server == "a" }
	nobody := func(string, string) bool { return false }
	for _, row := range []struct {
		name    string
		visible Visible
		want    string // server/tool, or the reason
	}{
		{"echo", nil, "b/echo"}, {"a__echo", nil, "a/echo"}, {"a:echo", nil, "a/echo"}, {"a.echo", nil, "a/echo"},
		{"a__x", nil, "a/x"}, {"a.x", nil, "a/x"}, {"a:x", nil, "a/x"}, {"x", nil, "a/x"}, {"a__a__x", nil, "a/a__x"},
		{"get.it", nil, "a/get.it"}, {Alias("a", "get.it", 46), nil, "a/get.it"},
		{"both", nil, reason.AmbiguousTool}, {"c__both", nil, "c/both"},
		{"echo", onlyA, "a/echo"}, {"both", onlyA, "a/both"}, {"c__both", onlyA, reason.UnknownTool},
		{"x", nobody, reason.UnknownTool}, {"a__echo", nobody, reason.UnknownTool},
	} {
		found, err := c.Lookup(row.name, row.visible)
		got := ""
		if err != nil {
			got = err.Reason
		} else {
			got = found.Server + "/" + found.Tool.Tool
			if again, err := c.Lookup(found.Name, nil); err != nil || again != found {
				t.Errorf("%s: its name %s is found as %v, %v", row.name, found.Name, again, err)
			}
		}
		if got != row.want {
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
}
