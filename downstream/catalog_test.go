package downstream_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
	"github.com/agenticnexus/agenticnexus/internal/reason"
	"github.com/agenticnexus/agenticnexus/internal/trust"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

func catalogOf(t *testing.T, m *downstream.Manager) *downstream.Catalog {
	t.Helper()
	c, err := m.Catalog(t.Context())
	if err != nil {
		t.Fatalf("Catalog: %v", err)
	}
	return c
}

// names are the plan names of tools, with their servers.
func names(tools iter.Seq[*downstream.Tool]) string {
	var all []string
	for t := range tools {
		all = append(all, t.Name+"@"+t.Server)
	}
	return strings.Join(all, " ")
}

// A server that hangs in its handshake and one that cannot be reached cost the others nothing; the list of
// the hanging one is waited for once.
func TestDeadServersDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging, dead, fine := newServer(), newServer(), newServer()
		var well atomic.Bool
		hanging.dial = func(ctx context.Context) error {
			if well.Load() {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		dead.dial = func(context.Context) error { return errors.New("nobody there") }
		m := start(t, pipes([]string{"hanging", "dead", "fine"}, hanging, dead, fine))
		synctest.Wait()
		if s := m.Status(); s["fine"].Status != downstream.StateConnected || s["hanging"].Status != downstream.StateConnecting || s["dead"].Status != downstream.StateDisconnected {
			t.Errorf("got fine %s, hanging %s, dead %s", s["fine"].Status, s["hanging"].Status, s["dead"].Status)
		}
		began := time.Now()
		if _, err := m.Call(t.Context(), request("fine", "echo")); err != nil || time.Since(began) != 0 {
			t.Errorf("got %v after %v, want an answer at once", err, time.Since(began))
		}
		c := catalogOf(t, m)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the catalog took %v, want the deadline of a list at most", took)
		}
		if got := names(c.See(nil)); got != "echo@fine" || len(c.Missing) != 2 || c.Missing[0].Server != "hanging" ||
			c.Missing[1] != (downstream.Missing{Server: "dead", Reason: reason.Unavailable, Message: "nobody there"}) {
			t.Errorf("got tools %s, missing %v", got, c.Missing)
		}
		hidden := func(server, _ string) bool { return server != "dead" }
		for name, want := range map[string]string{
			"dead__x": reason.Unavailable, "dead:x": reason.Unavailable, "dead.x": reason.Unavailable,
			"x": reason.UnknownTool, "fine__x": reason.UnknownTool, "nobody__x": reason.UnknownTool,
		} {
			if _, err := c.Lookup(name, nil); err == nil || err.Reason != want {
				t.Errorf("%s: got %v, want the reason %s", name, err, want)
			}
		}
		if _, err := c.Lookup("dead__x", hidden); err == nil || err.Reason != reason.UnknownTool {
			t.Errorf("a server that the caller must not see: got %v, want the tool unknown", err)
		}
		for i, limit := range []time.Duration{100 * time.Millisecond, 0} {
			began = time.Now()
			if catalogOf(t, m); time.Since(began) > limit {
				t.Errorf("catalog %d after the first took %v, want %v", i+1, time.Since(began), limit)
			}
		}
		// It comes to its senses.
		well.Store(true)
		time.Sleep(time.Minute)
		if got := names(catalogOf(t, m).See(nil)); got != "hanging.echo@hanging fine.echo@fine" {
			t.Errorf("got tools %s once it answers", got)
		}
		m.Stop()
	})
}

func TestNames(t *testing.T) {
	a := []string{tool("search"), tool("both"), tool("x__y"), tool("x:y"), tool("x.y")}
	b := []string{tool("both"), tool("other"), tool("a__search"), tool("a.both")}
	for _, tc := range []struct {
		policy, names string
		lookups       map[string]string // name → server/tool, or the reason
	}{
		{catalog.ConflictNamespace, "search@a a.both@a x__y@a x:y@a x.y@a b.both@b other@b b.a__search@b b.a.both@b", map[string]string{
			"search": "a/search", "a__search": "a/search", "a:search": "a/search", "a.search": "a/search",
			"both": reason.AmbiguousTool, "a.both": "a/both", "b__both": "b/both",
			"x__y": "a/x__y", "a__x__y": "a/x__y", "a:x__y": "a/x__y", "a.x__y": "a/x__y",
			"x:y": "a/x:y", "a:x:y": "a/x:y", "a__x:y": "a/x:y", "a.x:y": "a/x:y",
			"x.y": "a/x.y", "a.x.y": "a/x.y", "a:x.y": "a/x.y", "a__x.y": "a/x.y",
			"b__a__search": "b/a__search", "b.a.both": "b/a.both", "b:a__search": "b/a__search",
			"nothing": reason.UnknownTool, "a__other": reason.UnknownTool, "": reason.UnknownTool, "a__": reason.UnknownTool, "__search": reason.UnknownTool,
		}},
		{catalog.ConflictLastWins, "search@a a.both@a x__y@a x:y@a x.y@a both@b other@b b.a__search@b b.a.both@b", map[string]string{
			"both": "b/both", "a.both": "a/both", "a__both": "a/both", "b:both": "b/both",
		}},
		{catalog.ConflictError, "search@a both@a x__y@a x:y@a x.y@a other@b b.a__search@b b.a.both@b", map[string]string{
			"both": "a/both", "b__both": "quarantined",
		}},
	} {
		t.Run(tc.policy, func(t *testing.T) {
			// The later server is there first; the order of the configuration counts.
			first, second := newServer(a...), newServer(b...)
			gate := make(chan struct{})
			first.dial = func(ctx context.Context) error {
				select {
				case <-gate:
				case <-ctx.Done():
				}
				return nil
			}
			o := pipes([]string{"a", "b"}, first, second)
			o.NameConflicts = tc.policy
			var log mcptest.Log
			o.Logger = logger(&log)
			m := start(t, o)
			mcptest.Eventually(t, "the later server is connected", func() bool { return m.Status()["b"].Status == downstream.StateConnected })
			close(gate)
			c := catalogOf(t, m)
			if got := names(c.See(nil)); got != tc.names {
				t.Errorf("got  %s\nwant %s", got, tc.names)
			}
			for name, want := range tc.lookups {
				got := ""
				if found, err := c.Lookup(name, nil); err != nil {
					got = err.Reason
				} else {
					got = found.Server + "/" + found.Tool.Tool
				}
				if got != want {
					t.Errorf("Lookup(%q): got %s, want %s", name, got, want)
				}
			}
			conflicts := catalogOf(t, m).Conflicts
			if tc.policy != catalog.ConflictError {
				if len(conflicts) > 0 {
					t.Errorf("got conflicts %v", conflicts)
				}
				return
			}
			if len(conflicts) != 1 || conflicts[0].Tool != "both" || !slices.Equal(conflicts[0].Servers, []string{"a", "b"}) {
				t.Errorf("got conflicts %v, want both of a and b", conflicts)
			} else if text := conflicts[0].Error(); !strings.Contains(text, "both") || !strings.Contains(text, "a and b") {
				t.Errorf("got text %s", text)
			}
			all := m.Status()["b"]
			if len(all.Quarantined) != 1 || !strings.Contains(all.Quarantined[0].Reason, "a and b") {
				t.Errorf("got status %+v, want both quarantined because of a and b", all)
			}
			seen := m.StatusFor(func(server, _ string) bool { return server == "b" })
			if b := seen["b"]; len(seen) != 1 || b.Tools != all.Tools || len(b.Quarantined) != 1 ||
				b.Quarantined[0].Reason != "its name is also used by another server" {
				t.Errorf("for who sees b: got %+v, want nothing of a", seen)
			}
			seen = m.StatusFor(func(server, tool string) bool { return server == "b" && (tool == "" || tool == "other") })
			if b := seen["b"]; len(seen) != 1 || b.Tools != 1 || len(b.Quarantined) != 0 {
				t.Errorf("for who sees one tool of b: got %+v, want nothing of the others", seen)
			}
			if !log.Has("tool quarantined", "tool=both", "server=b") {
				t.Error("the log does not say that b's tool is left out")
			}
		})
	}
}

func TestVisibility(t *testing.T) {
	m := start(t, pipes([]string{"a", "b"}, newServer(tool("both"), tool("one")), newServer(tool("both"))))
	c := catalogOf(t, m)
	onlyB := func(server, _ string) bool { return server == "b" }
	if got := names(c.See(onlyB)); got != "b.both@b" {
		t.Errorf("got %s", got)
	}
	for name, want := range map[string]string{"both": "b", "b.both": "b", "a.both": "", "a__one": "", "one": ""} {
		found, err := c.Lookup(name, onlyB)
		switch {
		case want == "" && (err == nil || err.Reason != reason.UnknownTool || strings.Contains(err.Message, "mbiguous")):
			t.Errorf("Lookup(%q): got %v, %v; want it unknown", name, found, err)
		case want != "" && (err != nil || found.Server != want):
			t.Errorf("Lookup(%q): got %v, %v; want that of %s", name, found, err, want)
		}
	}
	r := request("a", "one")
	r.Visible = onlyB
	var unknown *downstream.UnknownError
	if _, err := m.Call(t.Context(), r); !errors.As(err, &unknown) || err.Error() != "Unknown tool: a__one" {
		t.Errorf("got %v, want an unknown tool", err)
	}
	if _, err := m.Call(t.Context(), request("c", "one")); !errors.As(err, &unknown) || err.Error() != "Unknown server: c" {
		t.Errorf("got %v, want an unknown server", err)
	}
}

func TestToolFilter(t *testing.T) {
	s := newServer(tool("get_a"), tool("get_b"), tool("delete_a"), tool("delete_a/b"), tool("put_a"), tool("get_\u200bc"))
	o := pipes([]string{"a"}, s)
	o.Servers[0].Tools = downstream.ToolFilter{Allow: []string{"get_*", "delete_*", "delete_*/*"}, Deny: []string{"*_b", "delete_*", "get_c"}}
	m := start(t, o)
	if got := names(catalogOf(t, m).See(nil)); got != "get_a@a" {
		t.Errorf("got %s", got)
	}
	items, err := m.Sessions().List(t.Context(), "a", "", "tools/list")
	if err != nil || len(items) != 1 {
		t.Errorf("got %d items, %v; want 1", len(items), err)
	}
	if _, err := m.Call(t.Context(), request("a", "delete_a")); err == nil || s.count("tools/call") > 0 {
		t.Errorf("got %v and %d calls, want the tool to be unknown", err, s.count("tools/call"))
	}
}

// Until its definition is known, a tool counts as destructive, so that a rule that denies holds.
func TestPolicyOnUnknownDefinitions(t *testing.T) {
	s := newServer(tool("get", readOnly))
	m := start(t, pipes([]string{"a"}, s))
	policy, err := trust.Compile([]trust.Rule{{When: "destructive || !reads", Then: trust.Deny, Reason: "No."}})
	if err != nil {
		t.Fatal(err)
	}
	m.SetPolicy(policy)
	var forbidden *downstream.ForbiddenError
	if _, err := m.Call(t.Context(), request("a", "get")); !errors.As(err, &forbidden) || s.count("tools/call") > 0 {
		t.Errorf("before the list: got %v and %d calls, want it forbidden", err, s.count("tools/call"))
	}
	catalogOf(t, m)
	if _, err := m.Call(t.Context(), request("a", "get")); err != nil {
		t.Errorf("after the list: got %v, want a result", err)
	}
}

func TestQuarantinedDefinitions(t *testing.T) {
	s := newServer(
		tool("fine"),
		`{"name":"bad_schema","inputSchema":"x"}`,
		`{"name":"no_schema"}`,
		`{"name":"","inputSchema":{}}`,
		`{"inputSchema":{}}`,
		`{"name":7,"inputSchema":{}}`,
		`{"name":"decoy","name":"twice","inputSchema":{}}`, `{"name":"cased","inputSchema":{},"Name":"decoy"}`,
		tool("fine", `,"title":"again"`),
		tool("big", `,"x":"`+strings.Repeat("y", 256<<10)+`"`),
		`"a string"`, `null`, `[]`,
		tool("last"),
	)
	o := pipes([]string{"a"}, s)
	var log mcptest.Log
	o.Logger = logger(&log)
	m := start(t, o)
	c := catalogOf(t, m)
	if got := names(c.See(nil)); got != "fine@a last@a" || c.Of("a")[0].Title != "" {
		t.Errorf("got %s", got)
	}
	for _, name := range []string{"bad_schema", "no_schema", "fine", "big", "twice", "cased"} {
		if !log.Has("tool quarantined", "server=a", "tool="+name) {
			t.Errorf("the log does not name %s", name)
		}
	}
	if _, err := m.Call(t.Context(), request("a", "last")); err != nil {
		t.Errorf("calling a tool of the server: %v", err)
	}
	// Who asks for one of them learns why it cannot be used.
	for name, want := range map[string]string{"bad_schema": reason.Quarantined, "big": reason.Quarantined, "twice": reason.Quarantined,
		"cased": reason.Quarantined, "decoy": "", "fine": "", "other": ""} {
		known, err := m.Has(t.Context(), "a", "", name, nil)
		if want == "" {
			if err != nil || known != (name == "fine") {
				t.Errorf("Has(%s): got %t, %v", name, known, err)
			}
		} else if f := failureOf(err); f.Reason != want || f.Server != "a" || !strings.Contains(f.Error(), name) || known {
			t.Errorf("Has(%s): got %t, %v, want a failure with reason %s that names the tool", name, known, err, want)
		}
	}
	for _, name := range []string{"bad_schema", "a__bad_schema", "a.bad_schema", "a:bad_schema"} {
		if _, fault := c.Lookup(name, nil); fault == nil || fault.Reason != reason.Quarantined || !strings.Contains(fault.Message, "its inputSchema is not an object") {
			t.Errorf("looking up %s: got %v, want it quarantined, and why", name, fault)
		}
	}
	hidden := func(string, string) bool { return false }
	if _, fault := c.Lookup("bad_schema", hidden); fault == nil || fault.Reason != reason.UnknownTool {
		t.Errorf("for somebody who may not see it: got %v, want it unknown", fault)
	}
	if known, err := m.Has(t.Context(), "a", "", "big", hidden); known || err != nil {
		t.Errorf("Has(big) for somebody who may not see it: got %t, %v, want false", known, err)
	}
	var told []string
	for _, q := range m.Status()["a"].Quarantined {
		told = append(told, q.Tool)
		if q.Tool == "bad_schema" && q.Reason != "its inputSchema is not an object" {
			t.Errorf("the status says %q of bad_schema", q.Reason)
		}
	}
	if got := strings.Join(told, " "); got != " bad_schema big cased no_schema twice" {
		t.Errorf("the status names %q, want the tools that are quarantined", got)
	}
	// The definition is mended.
	s.mu.Lock()
	s.tools = []string{tool("big")}
	s.mu.Unlock()
	s.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	mcptest.Eventually(t, "big can be used", func() bool {
		known, err := m.Has(t.Context(), "a", "", "big", nil)
		return known && err == nil
	})
	if q := m.Status()["a"].Quarantined; q != nil {
		t.Errorf("the status still names %v", q)
	}
}

// The same lists make the same catalog, also where a server is disabled.
func TestCatalogIsKept(t *testing.T) {
	o := pipes([]string{"a", "off"}, newServer(), newServer())
	o.Servers[1].Disabled = true
	m := start(t, o)
	first := catalogOf(t, m)
	if second := catalogOf(t, m); first != second {
		t.Error("got another catalog though nothing changed")
	}
	if n := testing.AllocsPerRun(100, func() { catalogOf(t, m) }); n > 0 {
		t.Errorf("a catalog that has not changed takes %v allocations", n)
	}
	if a, b := first.Of("a"), first.Of("a"); len(a) != 1 || &a[0] != &b[0] || first.Of("off") != nil {
		t.Errorf("got %v and %v", a, first.Of("off"))
	}
	if got := m.Status()["off"].Status; got != downstream.StateDisabled {
		t.Errorf("got state %s", got)
	}
	if _, err := m.Call(t.Context(), request("off", "echo")); err == nil {
		t.Error("a disabled server was called")
	}
	if ok, err := m.Has(t.Context(), "off", "", "echo", nil); ok || err != nil {
		t.Errorf("Has of a disabled server: got %t, %v, want no tool", ok, err)
	}
}

// A server that announces changes is asked again only after one; a change in the middle of a list does not
// leave the old one behind.
func TestChangesMakeListsVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.caps = `{"tools":{"listChanged":true}}`
		n := 0 // read only while the server is quiet
		s.list = func(s *server, _ mcptest.Message) (string, string) {
			n++
			before := fmt.Sprintf(`{"tools":[%s]}`, tool(fmt.Sprintf("v%d", n)))
			if n == 2 { // it changes once the list has been made
				s.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			}
			return before, ""
		}
		m := start(t, pipes([]string{"a"}, s))
		if got := names(catalogOf(t, m).See(nil)); got != "v1@a" {
			t.Errorf("got %s", got)
		}
		time.Sleep(time.Hour)
		if catalogOf(t, m); n != 1 {
			t.Errorf("got %d lists, want the first to hold", n)
		}
		s.say(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
		synctest.Wait()
		if catalogOf(t, m); n != 1 {
			t.Errorf("got %d lists after prompts changed, want the first to hold", n)
		}
		s.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		synctest.Wait()
		catalogOf(t, m)
		if got := names(catalogOf(t, m).See(nil)); got != "v3@a" {
			t.Errorf("got %s, want the list after the change", got)
		}
		m.Stop()
	})
}

func TestPages(t *testing.T) {
	page := func(m mcptest.Message) string { return jsonrpc.Text(jsonrpc.Get(m.Params, "cursor")) }
	for _, tc := range []struct {
		name  string
		list  func(*server, mcptest.Message) (string, string)
		want  int
		error string
	}{
		{"three pages", func(_ *server, m mcptest.Message) (string, string) {
			next := map[string]string{"": `,"nextCursor":"\"1"`, `"1`: `,"nextCursor":"2"`, "2": ""}[page(m)]
			return fmt.Sprintf(`{"prompts":[{"name":%q},{"name":"x"}]%s}`, page(m), next), ""
		}, 6, ""},
		{"repeated cursor", func(*server, mcptest.Message) (string, string) { return `{"prompts":[{}],"nextCursor":"1"}`, "" }, 0, "repeats a cursor"},
		{"endless", func(_ *server, m mcptest.Message) (string, string) {
			return `{"prompts":[],"nextCursor":"` + page(m) + `x"}`, ""
		}, 0, "pages"},
		{"unknown method", func(*server, mcptest.Message) (string, string) { return "", `{"code":-32601,"message":"no"}` }, -1, ""},
		{"unknown in the middle", func(_ *server, m mcptest.Message) (string, string) {
			if page(m) == "" {
				return `{"prompts":[{}],"nextCursor":"1"}`, ""
			}
			return "", `{"code":-32601,"message":"no more"}`
		}, 0, "no more"},
		{"refused", func(*server, mcptest.Message) (string, string) { return "", `{"code":-32603,"message":"broken"}` }, 0, "broken"},
		{"empty", func(*server, mcptest.Message) (string, string) { return `{"prompts":[]}`, "" }, 0, ""},
		{"no list at all", func(*server, mcptest.Message) (string, string) { return `{}`, "" }, 0, ""},
		{"silence", func(*server, mcptest.Message) (string, string) { return "", "" }, 0, "longer than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.list = tc.list
				m := start(t, pipes([]string{"a"}, s))
				began := time.Now()
				items, err := m.Sessions().List(t.Context(), "a", "", "prompts/list")
				if time.Since(began) > 5*time.Second {
					t.Errorf("got an answer after %v, want the deadline to end it", time.Since(began))
				}
				switch {
				case tc.error != "":
					if err == nil || !strings.Contains(err.Error(), tc.error) {
						t.Errorf("got %d items, %v; want an error with %q", len(items), err, tc.error)
					}
				case err != nil || tc.want >= 0 && len(items) != tc.want || (items == nil) != (tc.want < 0):
					t.Errorf("got %v, %v; want %d items", items, err, tc.want)
				}
				m.Stop()
			})
		})
	}
}

// A list that was overtaken by a change, and by the list after it, does not replace what that one told.
func TestOvertakenListIsNotTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.caps = `{"tools":{"listChanged":true}}`
		late := make(chan struct{})
		var n atomic.Int64
		s.list = func(*server, mcptest.Message) (string, string) {
			if n.Add(1) == 1 {
				<-late
				return `{"tools":[` + tool("old") + `]}`, ""
			}
			return `{"tools":[` + tool("new") + `,` + tool("newer") + `]}`, ""
		}
		m := start(t, pipes([]string{"a"}, s))
		go m.Catalog(t.Context())
		synctest.Wait()
		s.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		synctest.Wait()
		if got := names(catalogOf(t, m).See(nil)); got != "new@a newer@a" {
			t.Errorf("got %s after the change, want the new tools", got)
		}
		close(late)
		synctest.Wait()
		if got := m.Status()["a"].Tools; got != 2 {
			t.Errorf("got %d tools in the status once the old list has come, too; want those of the new one, 2", got)
		}
		if has, err := m.Has(t.Context(), "a", "", "old", nil); has || err != nil {
			t.Errorf("got %t, %v for a tool of the old list, want it gone", has, err)
		}
		m.Stop()
	})
}
