package auth

import "testing"

// With patterns for tools, a key has no resources, prompts and methods of a server's own but what its lists name.
func TestCallerLimits(t *testing.T) {
	tools := Filter{Allow: []string{"a__*"}}
	docs := AllowList{Allow: []string{"a__file:///docs/*", "b__x"}}
	for _, row := range []struct {
		name                       string
		key                        KeyConfig
		use, read, prompt, all     bool // of a__t, a__file:///docs/x, a__p and everything of a
		seesTools, seesRes, seesPr bool // of a
	}{
		{"no limits", KeyConfig{}, true, true, true, true, true, true, true},
		{"the server", KeyConfig{Servers: []string{"a"}}, true, true, true, true, true, true, true},
		{"another server", KeyConfig{Servers: []string{"b"}}, false, false, false, false, false, false, false},
		{"allowed tools", KeyConfig{Tools: tools}, true, false, false, false, true, false, false},
		{"denied tools", KeyConfig{Tools: Filter{Deny: []string{"a__other"}}}, true, false, false, false, true, false, false},
		{"tools and resources", KeyConfig{Tools: tools, Resources: docs}, true, true, false, false, true, true, false},
		{"tools and prompts", KeyConfig{Tools: tools, Prompts: AllowList{[]string{"*__p"}}},
			true, false, true, false, true, false, true},
		{"resources without tools", KeyConfig{Resources: docs}, true, true, true, false, true, true, true},
		{"other resources without tools", KeyConfig{Resources: AllowList{[]string{"a__y"}}},
			true, false, true, false, true, true, true},
		{"no tool, some resources", KeyConfig{Tools: Filter{Deny: []string{"*"}}, Resources: docs},
			false, true, false, false, false, true, false},
		{"resources of another server", KeyConfig{Servers: []string{"b"}, Tools: tools, Resources: docs},
			false, false, false, false, false, false, false},
	} {
		row.key.Name, row.key.Key = "k", "K"
		c, _ := mustNew(t, row.key).Identify("K")
		for _, check := range []struct {
			what      string
			got, want bool
		}{
			{"MayUse", c.MayUse("a", "t"), row.use},
			{"MayRead", c.MayRead("a", "file:///docs/x"), row.read},
			{"MayPrompt", c.MayPrompt("a", "p"), row.prompt},
			{"MayAll", c.MayAll("a"), row.all},
			{"MaySeeAny tools", c.MaySeeAny(Tools, "a"), row.seesTools},
			{"MaySeeAny resources", c.MaySeeAny(Resources, "a"), row.seesRes},
			{"MaySeeAny prompts", c.MaySeeAny(Prompts, "a"), row.seesPr},
			{"MaySee", c.MaySee("a"), row.seesTools || row.seesRes || row.seesPr},
			{"Visible", c.Visible() == nil || c.Visible()("a", "t"), row.use},
		} {
			if check.got != check.want {
				t.Errorf("%s: %s: got %t, want %t", row.name, check.what, check.got, check.want)
			}
		}
	}
}

// A scope and a key both limit; several grants of a token add up.
func TestCallerLimitsCombine(t *testing.T) {
	c, _ := mustNew(t, KeyConfig{Name: "k", Key: "K", Servers: []string{"a", "b"}, Ops: true}).Identify("K")
	scope, err := NewScope("s", Limits{Tools: Filter{Allow: []string{"a__*"}}, Prompts: AllowList{[]string{"a__p"}}})
	if err != nil {
		t.Fatal(err)
	}
	within := c.Within(scope)
	if !c.MayAll("a") || within.MayAll("a") || within.MayRead("a", "x") || !within.MayPrompt("a", "p") || within.MayPrompt("b", "p") {
		t.Error("a key within a profile: got more or less than both allow")
	}
	if !c.Ops() || !within.Ops() || (Caller{}).Ops() || Anonymous("::1").Ops() {
		t.Error("Ops: want it of the key with ops alone")
	}
	limited, _ := newGrant(Limits{Tools: Filter{Allow: []string{"a__*"}}})
	whole, _ := newGrant(Limits{Servers: []string{"b"}})
	both := Caller{access: &access{grants: []grant{limited, whole}}}
	if !both.MayRead("b", "x") || both.MayRead("a", "x") || !both.MayUse("a", "t") || !both.MayAll("b") || both.MayAll("a") {
		t.Error("two claims: want the tools of one and the server of the other")
	}
	if _, err := NewScope("s", Limits{Resources: AllowList{[]string{"["}}}); err == nil {
		t.Error("a malformed pattern of resources: got no error")
	}
}

// What is denied by the name that people see cannot be used under a name with hidden characters.
func TestCallerMayUse_HiddenCharacters(t *testing.T) {
	c, _ := mustNew(t, KeyConfig{Name: "k", Key: "K", Tools: Filter{Deny: []string{"a__delete_all"}}}).Identify("K")
	for tool, want := range map[string]bool{"delete\u200b_all": false, "delete_all": false, "delete\u200b_some": true} {
		if got := c.MayUse("a", tool); got != want {
			t.Errorf("%q: got %t, want %t", tool, got, want)
		}
	}
}

// A pattern for a folder must not open what a server finds by climbing out of it. A pattern for all resources of a
// server opens all of them.
func TestCallerMayRead_Segments(t *testing.T) {
	const folder, all = "a__file:///docs/*", "a__*"
	for _, row := range []struct {
		pattern, uri string
		want         bool
	}{
		{folder, "file:///docs/a..b/.c", true},
		{folder, "file:///docs/100%", true},
		{folder, "file:///docs/../secret", false},
		{folder, "file:///docs/%2e%2E/secret", false},
		{folder, "file:///docs/%252e%252e%252fx", false},
		{folder, `file:///docs/..\secret`, false},
		{folder, "file:///docs/x/..", false},
		{folder, "file:///docs/%2e%2e/secret?%zz", false},
		{folder, "file:///docs/.\t./secret", false},
		{folder, "file:///docs/;/..;v=1/secret", false},
		{folder, "file:///docs/%2e.%3B/secret", false},
		{folder, "file:///docs/a／‥；/secret", false},
		{folder, "file:///docs/％2e%EF%BC%8E/secret", false},
		{folder, "file:///docs/.;/x", true},
		{folder, "file:///docs/a;v=1/Ａ…", true},
		{folder, "file:///docs\x00/x", false},
		{folder, "file:///docs/x%00", false},
		{folder, "file:\x00\x00\x00docs\x00anything", false},
		{folder, "file:///docs/./x", true},
		{folder, "file:///docs/%2e/x", true},
		{folder, "file:///docs/./../x", false},
		{"a__file:///docs/.*", "file:///docs/./x", false}, // it would be file:///docs/x
		{"a__file:///docs/?/*", "file:///docs/./x", false},
		{"a__file:///docs/[.]/*", "file:///docs/./x", false},
		{"a__file:///docs/./x", "file:///docs/./x", false},
		{all, "file:///docs/./x", true},
		{all, "file:///docs/../x", true},
		{all, "file:///docs/x%00", true},
		{"*", "file:///docs/../x", true},
		{"a__file:*", "file:///docs/../x", false},
		{"b__*", "file:///docs/./x", false},
	} {
		c, _ := mustNew(t, KeyConfig{Name: "k", Key: "K", Resources: AllowList{[]string{row.pattern}}}).Identify("K")
		if got := c.MayRead("a", row.uri); got != row.want {
			t.Errorf("%s: MayRead(%q): got %t, want %t", row.pattern, row.uri, got, row.want)
		}
	}
}
