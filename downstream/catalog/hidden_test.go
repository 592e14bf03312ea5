package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// A tool with hidden characters in its name is found by both names, and hides no other tool.
func TestLookup_HiddenCharacters(t *testing.T) {
	own := []string{"get_x", "get\u200b_x", "drop\u202e", "a\nb", "a\tb", "\u200b", "web__get\u200b"}
	c := Build(nil, Options{}, []Source{{Server: "hr", List: list("hr", own...)}, {Server: "web", List: list("web", "get")}}, nil)
	names := map[string]bool{}
	for tool := range c.See(nil) {
		if names[tool.Name] {
			t.Errorf("%q is the name of two tools", tool.Name)
		}
		names[tool.Name] = true
		if strings.ContainsAny(tool.Name, "\u200b\u202e\n\t") {
			t.Errorf("got the name %q, want no hidden characters", tool.Name)
		}
		for _, name := range []string{tool.Name, tool.Full(), tool.Server + "." + tool.bare, tool.Server + ":" + tool.bare, FullName(tool.Server, tool.bare), Alias(tool.Server, tool.Tool.Tool, 46)} {
			if got, err := c.Lookup(name, nil); err != nil || got.Server != tool.Server || got.Tool.Tool != tool.Tool.Tool {
				t.Errorf("%q: got %v, %v, want %q of %s", name, got, err, tool.Tool.Tool, tool.Server)
			}
		}
	}
	for name, want := range map[string]string{"get_x": "get_x", "drop": "drop\u202e", "web__get": "get"} {
		if got, err := c.Lookup(name, nil); err != nil || got.Tool.Tool != want {
			t.Errorf("%q: got %v, %v, want %q", name, got, err, want)
		}
	}
	if _, err := c.Lookup("drop", func(_, tool string) bool { return tool == "drop" }); err == nil {
		t.Error("a caller that may not use the tool by its own name: want it unknown")
	}
}

// Neither texts nor schemas show hidden characters; values that are part of calls keep what writing needs.
func TestRead_HiddenCharacters(t *testing.T) {
	const hidden = `x\u200b\u202e\udb40\udc41\u0007`
	def := fmt.Sprintf(`{"name":"n","title":"%[1]s","description":"%[1]s\n","inputSchema":{"type":"object","description":"%[1]s",
		"properties":{"a":{"title":"%[1]s","enum":["%[1]s","❤\ufe0f"],"maximum":9007199254740993}}},"outputSchema":{"description":"%[1]s"}}`, hidden)
	l := Read("s", []json.RawMessage{json.RawMessage(def)}, true, func(string) bool { return true }, func(*Tool) string { return "" }, func(_ string, err error) { t.Error(err) })
	tool := l.Tools[0]
	if tool.Title != "x" || tool.Description != "x\n" {
		t.Errorf("got %q and %q, want x", tool.Title, tool.Description)
	}
	if want := `{"type":"object","description":"x","properties":{"a":{"title":"x","enum":["x` + "\u200b" + `\u0007","❤` + "\ufe0f" + `"],"maximum":9007199254740993}}}`; string(tool.InputSchema) != want {
		t.Errorf("got the schema %s, want %s", tool.InputSchema, want)
	}
	if string(tool.OutputSchema) != `{"description":"x"}` || string(tool.Raw) != def || string(l.Items[0]) != def {
		t.Errorf("got %s, raw %s", tool.OutputSchema, tool.Raw)
	}
	var shown struct{ Name, Title, Description string }
	if err := json.Unmarshal(tool.Visible("s__n"), &shown); err != nil || shown.Name != "s__n" || shown.Title != "x" || shown.Description != "x\n" {
		t.Errorf("got %+v, %v shown", shown, err)
	}
	var kinds []string
	for _, f := range l.Findings() {
		kinds = append(kinds, f.Tool+" "+f.Kind)
	}
	if got, want := strings.Join(kinds, ", "), "n bidirectional, n tag, n control"; got != want {
		t.Errorf("got the findings %s, want %s", got, want)
	}
}

// A quarantined tool is one that people look at, so its hidden characters are reported, too.
// A server that lists such a tool again is reported once.
func TestRead_HiddenCharactersOfQuarantined(t *testing.T) {
	def := json.RawMessage(`{"name":"get_x\u200b","description":"Gets\u202e x.","inputSchema":{"type":"object"}}`)
	l := Read("s", []json.RawMessage{def, def}, true, func(string) bool { return true }, func(*Tool) string { return "changed" }, func(_ string, err error) { t.Error(err) })
	const own = "get_x\u200b"
	if got, want := l.Findings(), []Finding{{"get_x", texts.ZeroWidth, own}, {"get_x", texts.Bidirectional, own}}; !slices.Equal(got, want) || len(l.Tools) > 0 {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
