package app_test

import "testing"

// A tool that its server has added since it was listed is found by every kind of call.
func TestAddedTools(t *testing.T) {
	r, p := withPeer(t, nil, nil, textTool("first", object, "1"))
	c := r.dial("", nil)
	add := func(name string) {
		t.Helper()
		if got := c.result(c.call("run", `{"tool":"first"}`, "")).text(); got != "1" {
			t.Fatalf("got %s, want 1", got)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.tools = append(p.tools, textTool(name, object, "new"))
	}
	for _, row := range []struct{ name, tool, arguments string }{
		{"bare", "run", `{"tool":"bare"}`},
		{"full", "run", `{"tool":"peer.full"}`},
		{"hidden", "peer__hidden", `{}`},
	} {
		add(row.name)
		if got := c.result(c.call(row.tool, row.arguments, "")).text(); got != "new" {
			t.Errorf("%s: got %s, want the tool that was added", row.name, got)
		}
	}
	add("planned")
	c.query(`{"query":"q","plan":[{"tool":"planned","arguments":{}}]}`)
	if calls := p.calls(); len(calls) != 8 {
		t.Errorf("got calls %q, want one of the planned tool at the end", calls)
	}
	wantError(t, c.call("run", `{"tool":"none"}`, ""), -32602, "Unknown tool: none", "")
}
