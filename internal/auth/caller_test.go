package auth

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCallerVisibility(t *testing.T) {
	for _, row := range []struct {
		name         string
		servers      []string
		tools        Filter
		server, tool string
		use, see     bool
	}{
		{"no limits", nil, Filter{}, "a", "x", true, true},
		{"server listed", []string{"a"}, Filter{}, "a", "x", true, true},
		{"server not listed", []string{"a"}, Filter{}, "b", "x", false, false},
		{"allowed", nil, Filter{Allow: []string{"a__*"}}, "a", "x", true, true},
		{"allowed elsewhere only", nil, Filter{Allow: []string{"a__*"}}, "b", "x", false, false},
		{"another tool of the server is allowed", nil, Filter{Allow: []string{"a__get_*"}}, "a", "put", false, true},
		{"longer server name", nil, Filter{Allow: []string{"a__*"}}, "a2", "x", false, false},
		{"star over servers", nil, Filter{Allow: []string{"*__get"}}, "b", "get", true, true},
		{"class", nil, Filter{Allow: []string{"[ab]__?et"}}, "b", "get", true, true},
		{"class without it", nil, Filter{Allow: []string{"[ab]__?et"}}, "c", "get", false, false},
		{"pattern shorter than the server", nil, Filter{Allow: []string{"a"}}, "abc", "x", false, false},
		{"denied", nil, Filter{Deny: []string{"a__del*"}}, "a", "delete", false, true},
		{"not denied", nil, Filter{Deny: []string{"a__del*"}}, "a", "get", true, true},
		{"deny wins", nil, Filter{Allow: []string{"a__*"}, Deny: []string{"a__x"}}, "a", "x", false, true},
		{"all of the server denied", nil, Filter{Deny: []string{"a__*"}}, "a", "x", false, false},
		{"everything denied", nil, Filter{Deny: []string{"*"}}, "a", "x", false, false},
		{"a slash in a denied tool", nil, Filter{Deny: []string{"a__*"}}, "a", "x/y", false, false},
		{"a slash in an allowed tool", nil, Filter{Allow: []string{"a__x/*"}}, "a", "x/y/z", true, true},
		{"an escaped star", nil, Filter{Allow: []string{`a__\*`}}, "a", "x", false, true},
		{"listed but not allowed", []string{"a", "b"}, Filter{Allow: []string{"a__*"}}, "b", "x", false, false},
	} {
		k := mustNew(t, KeyConfig{Name: "k", Key: "K", Servers: row.servers, Tools: row.tools})
		c, _ := k.Identify("K")
		if got := c.MayUse(row.server, row.tool); got != row.use {
			t.Errorf("%s: MayUse(%s, %s): got %t, want %t", row.name, row.server, row.tool, got, row.use)
		}
		if got := c.MaySee(row.server); got != row.see {
			t.Errorf("%s: MaySee(%s): got %t, want %t", row.name, row.server, got, row.see)
		}
	}
	anonymous := Anonymous("192.0.2.1")
	if anonymous.ID != "addr:192.0.2.1" || anonymous.Name != "anonymous" || !anonymous.Anonymous || !anonymous.MayUse("a", "x") || !anonymous.MaySee("a") {
		t.Errorf("anonymous: got %+v, want a caller of that address who may use everything", anonymous)
	}
	if (Caller{}).MayUse("a", "x") || (Caller{}).MaySee("a") {
		t.Error("the zero Caller: got something it may use, want nothing")
	}
}

// Whatever a key's limits consist of, they are applied.
func TestCallerVisible(t *testing.T) {
	some := []string{"a__x"}
	for _, row := range []struct {
		name       string
		servers    []string
		tools      Filter
		restricted bool
	}{
		{"nothing", nil, Filter{}, false},
		{"servers", []string{"a"}, Filter{}, true},
		{"allowed tools", nil, Filter{Allow: some}, true},
		{"denied tools", nil, Filter{Deny: some}, true},
		{"servers and allowed tools", []string{"a"}, Filter{Allow: some}, true},
		{"servers and denied tools", []string{"a"}, Filter{Deny: some}, true},
		{"allowed and denied tools", nil, Filter{Allow: some, Deny: some}, true},
	} {
		k := mustNew(t, KeyConfig{Name: "k", Key: "K", Servers: row.servers, Tools: row.tools})
		c, _ := k.Identify("K")
		visible := c.Visible()
		if c.Restricted() != row.restricted || (visible != nil) != row.restricted {
			t.Errorf("%s: got restricted %t and a Visible %t, want %t", row.name, c.Restricted(), visible != nil, row.restricted)
			continue
		}
		if visible != nil && (visible("a", "x") != c.MayUse("a", "x") || visible("b", "x") != c.MayUse("b", "x") || visible("b", "") != c.MaySee("b")) {
			t.Errorf("%s: the filter differs from MayUse and MaySee", row.name)
		}
	}
}

// TestMaySeeAgreesWithMayUse checks that a server with a usable tool is always seen, and that couldMatch
// says no only where path.Match does for every continuation of up to three characters.
func TestMaySeeAgreesWithMayUse(t *testing.T) {
	pattern := rapid.StringMatching(`([ab_*?/]|\[[ab_]\]|\\[ab*]){0,8}`)
	text := rapid.StringMatching(`[ab_/]{0,3}`)
	rapid.Check(t, func(t *rapid.T) {
		server := rapid.StringMatching(`[ab]{1,2}`).Draw(t, "server")
		tool := text.Draw(t, "tool")
		k, err := New(Config{APIKeys: []KeyConfig{{Name: "k", Key: "K", Tools: Filter{
			Allow: rapid.SliceOfN(pattern, 0, 2).Draw(t, "allow"),
			Deny:  rapid.SliceOfN(pattern, 0, 2).Draw(t, "deny"),
		}}}}, Options{})
		if err != nil {
			t.Fatalf("New: got %v, want no error", err)
		}
		c, _ := k.Identify("K")
		if c.MayUse(server, tool) && !c.MaySee(server) {
			t.Fatalf("got %s__%s usable and %s hidden, want it seen", server, tool, server)
		}
		p := strings.ReplaceAll(pattern.Draw(t, "pattern"), "/", "a")
		if ok, _ := path.Match(p, server+"__"+strings.ReplaceAll(tool, "/", "a")); ok && !couldMatch(p, server+"__") {
			t.Fatalf("couldMatch(%q, %q): got false, want true because of %q", p, server+"__", tool)
		}
	})
}
