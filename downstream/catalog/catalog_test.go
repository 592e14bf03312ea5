package catalog

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// list reads a list of valid tools.
func list(server string, names ...string) *List {
	var items []json.RawMessage
	for _, name := range names {
		items = append(items, json.RawMessage(fmt.Sprintf(`{"name":%q,"inputSchema":{}}`, name)))
	}
	return Read(server, items, true, func(string) bool { return true }, func(string, error) {})
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

// 20,000 tools are catalogued within 200 ms, also if many have equal names.
func TestBuild_Speed(t *testing.T) {
	var sources []Source
	for s := range 200 {
		var names []string
		for n := range 100 {
			names = append(names, fmt.Sprintf("tool_%d", n*(s%2)+n))
		}
		server := fmt.Sprintf("server%d", s)
		sources = append(sources, Source{Server: server, List: list(server, names...)})
	}
	best := time.Hour
	for range 5 { // the machine may be busy
		began := time.Now()
		c := Build(nil, Options{NameLimit: 46}, sources, nil)
		best = min(best, time.Since(began))
		if _, err := c.Lookup("server7__tool_3", nil); err == nil || c.Of("server6")[3].Name != "server6.tool_3" {
			t.Fatalf("got %v and %s", err, c.Of("server6")[3].Name)
		}
	}
	if best > 200*time.Millisecond {
		t.Errorf("20,000 tools took %v, want at most 200ms", best)
	}
	t.Logf("20,000 tools took %v", best)
}
