package console_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/browser"
)

// blockSite is a router with a server, a policy, and a secret in clear.
func blockSite(t *testing.T) (s *site, folder, server string) {
	t.Helper()
	s, folder = editable(t, bossSettings()+"# the rules\npolicy:\n  # careful\n  - {when: destructive, then: ask}\n")
	server = fmt.Sprintf("hr:\n  url: %s # here\n  headers: {X-Secret: %s}\n", guardedPeer(t), secretValue)
	text := "mcpServers:\n  " + strings.ReplaceAll(strings.TrimSpace(server), "\n", "\n  ") + "\n"
	if err := os.WriteFile(filepath.Join(folder, "servers.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, folder, server
}

// Operators read a part of the configuration as it is written, check and try another text, and save it. A mistake names
// its line and changes nothing, as does a text of a part that is no longer so. Others do not read it.
func TestBlocksAreEdited(t *testing.T) {
	s, folder, hr := blockSite(t)
	const policy = "policy:\n  # careful\n  - {when: destructive, then: ask}\n"
	settings, servers := contentOf(t, folder, "settings.yaml"), contentOf(t, folder, "servers.yaml")
	do := func(do, was, text string) string {
		raw, _ := json.Marshal(map[string]string{"was": was, "text": text, "do": do})
		return string(raw)
	}
	deny := strings.Replace(policy, "ask", "deny", 1)
	for _, row := range []struct {
		name, method, path, by, body string
		status                       int
		has                          string
	}{
		{"read", "GET", "policy", "boss", "", 200, `{"file":"settings.yaml","text":"policy:\n  # careful`},
		{"read a server", "GET", "servers/hr", "boss", "", 200, secretValue},
		{"read what is not there", "GET", "profiles", "boss", "", 200, `"text":""`},
		{"read by another key", "GET", "servers/hr", "clerk", "", 403, "edit: true"},
		{"read without a key", "GET", "servers/hr", "", "", 401, ""},
		{"read another part", "GET", "auth", "boss", "", 404, "only servers"},
		{"no server", "GET", "servers/none", "boss", "", 409, "has no server"},
		{"check", "POST", "policy", "boss", do("check", policy, deny), 200, `then: ask}\n+   - {when: destructive, then: deny}`},
		{"check a mistake", "POST", "policy", "boss", do("check", policy, policy+"  - {when: colour, then: ask}"), 200, `"mistake":"line 4: policy[1].when`},
		{"save what names no server", "POST", "policy", "boss", do("save", policy, policy+"  - {when: 'server == \"x\"', then: ask}"), 400, `"line 4: policy[1].when`},
		{"save a mistake", "POST", "servers/hr", "boss", do("save", hr, strings.Replace(hr, "headers", "header", 1)), 400, `"line 3: `},
		{"save what was another text", "POST", "policy", "boss", do("save", deny, policy), 409, "changed meanwhile"},
		{"save by another key", "POST", "policy", "clerk", do("save", policy, deny), 403, "edit: true"},
		{"a large text", "POST", "policy", "boss", do("save", policy, policy+strings.Repeat("#", 64<<10)), 413, "more than 65536 bytes"},
		{"another order", "POST", "policy", "boss", do("delete", policy, deny), 400, "want check"},
		{"try", "POST", "servers/hr", "boss", do("try", hr, hr), 200, `"Looks up [redacted]"`},
		{"try what does not work", "POST", "servers/hr", "boss", do("try", hr, strings.Replace(hr, secretValue, "wrong", 1)), 502, "unauthorized"},
		{"try the policy", "POST", "policy", "boss", do("try", policy, policy), 400, "want check"},
	} {
		if status, text := s.send(row.method, "blocks/"+row.path, row.by, row.body); status != row.status || !strings.Contains(text, row.has) {
			t.Errorf("%s: got %d %s, want %d with %s", row.name, status, text, row.status, row.has)
		}
	}
	if got := contentOf(t, folder, "settings.yaml") + contentOf(t, folder, "servers.yaml"); got != settings+servers {
		t.Errorf("before anything is saved, got\n%s", got)
	}
	for _, row := range []struct{ path, was, text, warning, view, has string }{
		{"policy", policy, deny, "", "access", `"then":"deny"`},
		{"servers/hr", hr, hr + "  data: private\n", "", "servers", `"private":true`},
		{"profiles", "", "profiles: {people: {servers: [hr]}}", "when the router starts again", "access", `"profiles":[]`},
	} {
		if status, text := s.send("POST", "blocks/"+row.path, "boss", do("save", row.was, row.text)); status != 200 || !strings.Contains(text, row.warning) {
			t.Errorf("saving %s: got %d %s, want 200 with %q", row.path, status, text, row.warning)
		}
		if _, text := s.send("GET", row.view, "boss", ""); !strings.Contains(text, row.has) {
			t.Errorf("after saving %s: got %s, want %s", row.path, text, row.has)
		}
	}
	if got, want := contentOf(t, folder, "settings.yaml"), strings.Replace(settings, "then: ask", "then: deny", 1)+"profiles: {people: {servers: [hr]}}\n"; got != want {
		t.Errorf("got the settings\n%s\nwant\n%s", got, want)
	}
	if got, want := contentOf(t, folder, "servers.yaml"), servers+"    data: private\n"; got != want {
		t.Errorf("got the servers\n%s\nwant\n%s", got, want)
	}
	if status, text := guarded(t).send("GET", "blocks/policy", "edit-key", ""); status != 409 || !strings.Contains(text, "not one folder") {
		t.Errorf("without a folder: got %d %s, want 409", status, text)
	}
}

// The policy and a server are edited on the page, which selects the line with a mistake.
func testEditor(t *testing.T, b *browser.Browser, _ *site) {
	s, _, _ := blockSite(t)
	headers := map[string]string{"Authorization": browser.BasicAuth("any", "boss")}
	for name, options := range map[string]browser.Options{"light": {Headers: headers}, "dark-phone": {Headers: headers, Dark: true, Phone: true}} {
		p := b.Open(t, s.base+"/ui/#/access", options)
		p.Click(`a[href="#/access/policy"]`)
		p.Wait(`document.querySelector("#text")?.value.includes("# careful")`)
		add := func(rule string) {
			browser.Eval[bool](p, fmt.Sprintf(`(() => { const text = document.querySelector("#text"); text.value += %q; text.dispatchEvent(new Event("input")); return true; })()`, rule))
		}
		add("  - when: tool == \"" + name + "\"\n    then: forbid\n")
		p.Click("#editor button[value=check]")
		p.Wait(`document.querySelector(".problem")?.textContent.startsWith("line ")`)
		if got := browser.Eval[string](p, `(() => { const text = document.activeElement; return text.value.slice(text.selectionStart, text.selectionEnd); })()`); got != "    then: forbid" {
			t.Errorf("got the selection %q, want the line with the mistake", got)
		}
		p.Screenshot("page-edit-mistake-" + name)
		p.Check()
		visit(p, "#/tools", "all servers")
		visit(p, "#/access/policy", "Edit policy")
		browser.Eval[bool](p, `(() => { const text = document.querySelector("#text"); text.value = text.value.replace("forbid", "deny"); return true; })()`)
		p.Click("#editor button[value=check]")
		p.Wait(`document.querySelector("pre ins")?.textContent.includes("` + name + `")`)
		p.Screenshot("page-edit-check-" + name)
		p.Check()
		p.Click("#editor button[value=save]")
		p.Wait(`document.querySelector("[aria-live=polite]").textContent.includes("It is in force")`)
		p.Screenshot("page-edit-saved-" + name)
		visit(p, "#/access", `tool == "`+name+`"`)
		p.Screenshot("page-access-edit-" + name)

		visit(p, "#/servers/hr", "Changes of state")
		p.Screenshot("page-server-edit-" + name)
		p.Click(`a[href="#/servers/hr/edit"]`)
		p.Wait(`document.querySelector("#text")?.value.startsWith("hr:")`)
		p.Click("#editor button[value=try]")
		p.Wait(`document.querySelector("main").textContent.includes("Looks up [redacted]")`)
		p.Screenshot("page-edit-server-" + name)
		p.Check()
		if wide := browser.Eval[float64](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
			t.Errorf("the page is %v pixels too wide", wide)
		}
	}
}
