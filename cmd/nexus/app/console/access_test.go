package console_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/trust"
	"github.com/agenticnexus/agenticnexus/tests/browser"
)

// send sends a request to the page's interface with a key as a browser does, and returns the status and what came.
func (s *site) send(method, path, key, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.base+"/ui/api/"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.SetBasicAuth("any", key)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// keyOf is the settings of a key that is its own name.
func keyOf(name string, change func(k *auth.KeyConfig)) auth.KeyConfig {
	k := auth.KeyConfig{Name: name, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(name)))}
	change(&k)
	return k
}

// guarded starts a router with keys, a profile and rules.
func guarded(t *testing.T) *site {
	return open(t, func(o *app.Options) {
		o.Demo = true
		o.Config.Auth.APIKeys = []auth.KeyConfig{
			keyOf("ops-key", func(k *auth.KeyConfig) { k.Ops = true }), keyOf("all-key", func(*auth.KeyConfig) {}),
			keyOf("edit-key", func(k *auth.KeyConfig) { k.Edit = true }),
			keyOf("narrow-key", func(k *auth.KeyConfig) { k.Ops, k.Edit, k.Servers = true, true, []string{"hr"} }),
			keyOf("hr-key", func(k *auth.KeyConfig) {
				k.Servers, k.Tools = []string{"hr", "warehouse"}, auth.Filter{Deny: []string{"*__delete_*"}}
			}),
		}
		o.Config.Servers = []downstream.ServerConfig{{Name: "warehouse", Type: downstream.TransportHTTP, URL: warehouse(t), Data: "private"}}
		o.Config.Profiles = map[string]config.Profile{"support": {Servers: []string{"hr"}, Surface: config.SurfaceProxy}}
		o.Config.Policy = []trust.Rule{{When: `tool == "ship_order" && arguments.id > 9007199254740992`, Then: trust.Deny, Reason: "too far"}}
	})
}

// Only operators see keys, profiles and the policy, without anything of a key, and have decisions explained.
func TestAccessIsForOperators(t *testing.T) {
	s := guarded(t)
	for _, row := range []struct {
		method, path, key, body string
		status                  int
		has                     string
	}{
		{"GET", "access", "ops-key", "", 200, `"name":"hr-key"`},
		{"GET", "access", "all-key", "", 403, "ops: true"},
		{"GET", "access", "narrow-key", "", 403, "without limits"},
		{"GET", "access", "", "", 401, ""},
		{"POST", "explain", "ops-key", `{"caller":"hr-key","tool":"warehouse__delete_order"}`, 200, `"decision":"deny","rule":"access"`},
		{"POST", "explain", "ops-key", `{"caller":"nobody","tool":"calculate","source":"model"}`, 200, "no API key has that name"},
		{"POST", "explain", "ops-key", `{"caller":"x","tool":"none"}`, 400, "none"},
		{"POST", "explain", "ops-key", `{"caller":"x","tool":"calculate","arguments":[]}`, 400, "not a JSON object"},
		{"POST", "explain", "ops-key", `{"caller":"x","tool":"calculate","profile":"none"}`, 400, "none"},
		{"POST", "keys", "narrow-key", `{"name":"x"}`, 403, "without limits"},
		{"POST", "explain", "narrow-key", `{"caller":"x","tool":"calculate"}`, 403, "without limits"},
		{"POST", "explain", "all-key", `{"caller":"hr-key","tool":"calculate"}`, 403, "ops: true"},
	} {
		status, text := s.send(row.method, row.path, row.key, row.body)
		if status != row.status || !strings.Contains(text, row.has) {
			t.Errorf("%s %s with %q: got %d %s, want %d with %s", row.method, row.path, row.key, status, text, row.status, row.has)
		}
		if strings.Contains(text, "sha256") || strings.Contains(text, fmt.Sprintf("%x", sha256.Sum256([]byte("hr-key")))) {
			t.Errorf("%s %s: got %s, want nothing that tells a key", row.method, row.path, text)
		}
	}
}

// The view of the access shows who may do what, and tells the decision on a call with exact arguments.
func testAccess(t *testing.T, b *browser.Browser, _ *site) {
	s := guarded(t)
	headers := map[string]string{"Authorization": browser.BasicAuth("any", "ops-key")}
	for name, options := range map[string]browser.Options{"light": {Headers: headers}, "dark-phone": {Headers: headers, Dark: true, Phone: true}} {
		p := b.Open(t, s.base+"/ui/#/access", options)
		p.Wait(`document.querySelector("main h1")?.textContent === "Access"`)
		rows := browser.Eval[string](p, `[...document.querySelectorAll("tbody tr")].map((x) => [...x.children].map((c) => c.textContent).join("|")).join("\n")`)
		for _, want := range []string{"hr-key|servers hr, warehouse; not *__delete_*|no", "ops-key|everything|✓ ops: true", "support|/profiles/support/mcp|proxy|servers hr", "|✕ deny|too far"} {
			if !strings.Contains(rows, want) {
				t.Errorf("got the rows\n%s\nwant one with %q", rows, want)
			}
		}
		p.Type("#explain-tool", "warehouse__ship_order")
		browser.Eval[bool](p, `(document.querySelector("#explain-arguments").value = '{"id":9007199254740993}', true)`)
		p.Click("form button.primary")
		p.Wait(`document.querySelector("[aria-live=polite]:has(.badge)")?.textContent.includes("is denied") && document.querySelector("main").textContent.includes("policy[0]")`)
		p.Screenshot("page-explain-" + name)
		p.Check()
		browser.Eval[bool](p, `(document.querySelector("#explain-tool").value = "search__web_search", document.querySelector("#explain-arguments").value = "{}",
			document.querySelector("#explain-carries").value = "warehouse", document.querySelector("#explain-source").value = "model", true)`)
		p.Click("form button.primary")
		p.Wait(`document.querySelector("main").textContent.includes("it carries private data of warehouse to search")`)
	}
}
