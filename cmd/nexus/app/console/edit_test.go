package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/tests/browser"
	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// editable starts a router whose configuration is a folder, which it reads again when that changes, as the program does.
func editable(t *testing.T, settings string) (s *site, folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "settings.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	watch := config.Watch([]string{folder}, config.Options{})
	used, err := config.Load([]string{folder}, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s = open(t, func(o *app.Options) {
		state := o.Config.State
		o.Config, o.Folder = used, folder
		o.Config.Listen, o.Config.State = "127.0.0.1:0", state
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		for {
			select {
			case <-t.Context().Done():
				return
			case <-look.C:
			}
			if !watch.Changed() {
				continue
			}
			cfg, err := config.Reload([]string{folder}, config.Options{}, used)
			if err == nil {
				err = s.app.Reload(cfg)
			}
			if err != nil {
				t.Logf("the change is not taken over: %v", err)
				continue
			}
			used = cfg
		}
	}()
	t.Cleanup(func() { <-ended })
	return s, folder
}

func contentOf(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Operators make and revoke keys; a new key is shown once and works, a revoked one does not. Others change nothing.
func TestKeysAreMadeAndRevoked(t *testing.T) {
	s, folder := editable(t, bossSettings())
	open, _ := editable(t, "")
	if status, text := open.send("POST", "keys", "", `{"name":"boss","ops":true}`); status != 403 || !strings.Contains(text, "edit: true") {
		t.Errorf("the first key: got %d %s, want 403", status, text)
	}
	made := func(by, body string) string {
		t.Helper()
		status, text := s.send("POST", "keys", by, body)
		var answer struct{ Key string }
		if err := json.Unmarshal([]byte(text), &answer); err != nil || status != 200 || !strings.HasPrefix(answer.Key, "nx_") {
			t.Fatalf("making a key: got %d %s, want a key", status, text)
		}
		if status, text := s.send("GET", "now", answer.Key, ""); status != 200 {
			t.Errorf("the new key: got %d %s, want 200", status, text)
		}
		return answer.Key
	}
	const boss = "boss"
	chief, clerk := made(boss, `{"name":"chief","ops":true}`), made(boss, `{"name":"guest"}`)
	settings := contentOf(t, folder, "settings.yaml")
	if !strings.HasPrefix(settings, bossSettings()) || strings.Contains(settings, chief) || strings.Contains(settings, clerk) {
		t.Errorf("got the settings\n%s\nwant the former ones first, and hashes of the keys only", settings)
	}
	for _, row := range []struct {
		path, by, body string
		status         int
		has            string
	}{
		{"keys", clerk, `{"name":"x"}`, 403, "edit: true"},
		{"keys", chief, `{"name":"x"}`, 403, "edit: true"},
		{"keys/guest/revoke", clerk, `{}`, 403, "edit: true"},
		{"keys", boss, `{"name":"clerk"}`, 409, "another key"},
		{"keys", boss, `{"name":"a\nb"}`, 400, "name of a key"},
		{"keys", boss, `{"name":"x","servers":["none"]}`, 400, "does not exist"},
		{"keys/none/revoke", boss, `{}`, 409, "has no API key"},
	} {
		if status, text := s.send("POST", row.path, row.by, row.body); status != row.status || !strings.Contains(text, row.has) {
			t.Errorf("%s %s: got %d %s, want %d with %s", row.path, row.body, status, text, row.status, row.has)
		}
	}
	if got := contentOf(t, folder, "settings.yaml"); got != settings {
		t.Errorf("refused changes: got\n%s", got)
	}
	if status, text := s.send("POST", "keys/guest/revoke", boss, `{}`); status != 200 {
		t.Fatalf("revoking: got %d %s", status, text)
	}
	if status, text := s.send("GET", "now", clerk, ""); status != 401 {
		t.Errorf("the revoked key: got %d %s, want 401", status, text)
	}
	if err := os.WriteFile(filepath.Join(folder, "servers.yaml"), []byte("mcpServers: {a: {}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, text := s.send("POST", "keys", boss, `{"name":"late"}`); status != 200 || !strings.Contains(text, "not in force: ") || !strings.Contains(text, "servers.yaml:1:") {
		t.Errorf("a key beside a mistake: got %d %s, want 200 with a warning that names it", status, text)
	}
	if status, text := guarded(t).send("POST", "keys", "edit-key", `{"name":"x"}`); status != 409 || !strings.Contains(text, "not one folder") {
		t.Errorf("without a folder: got %d %s, want 409", status, text)
	}
}

// Keys are made and revoked on the page.
func testKeys(t *testing.T, b *browser.Browser, _ *site) {
	s, _ := editable(t, bossSettings())
	p := b.Open(t, s.base+"/ui/#/access", browser.Options{Headers: map[string]string{"Authorization": browser.BasicAuth("any", "boss")}})
	p.Type("#key-name", "guest")
	p.Click("section[aria-labelledby=maker] button.primary")
	p.Wait(`document.querySelector("section[aria-labelledby=maker] .copied code")?.textContent.startsWith("nx_")`)
	key := browser.Eval[string](p, `document.querySelector("section[aria-labelledby=maker] .copied code").textContent`)
	p.Wait(`document.getElementById("revoke-guest")`)
	p.Screenshot("page-key")
	p.Check()
	if status, _ := s.send("GET", "now", key, ""); status != 200 {
		t.Errorf("the new key: got %d, want 200", status)
	}
	p.Click("#revoke-guest")
	p.Click("dialog button.primary")
	p.Wait(`!document.getElementById("revoke-guest") && document.querySelector("tbody").textContent.includes("boss")`)
	if status, _ := s.send("GET", "now", key, ""); status != 401 {
		t.Errorf("the revoked key: got %d, want 401", status)
	}
}

// guardedPeer is a server that wants a header.
func guardedPeer(t *testing.T) string {
	t.Helper()
	peer := &mcptest.Server{Stateless: true}
	peer.SetTools(`[{"name":"look\u202eup","description":"Looks up ` + secretValue + `","inputSchema":{"type":"object"}}]`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Secret") != secretValue {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		peer.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const secretValue = "correct-horse"

const bossKey = "# mine\nauth:\n  api_keys:\n    - name: boss\n      sha256: %s\n      ops: true\n      edit: true\n    - name: clerk\n      sha256: %s\n"

func bossSettings() string {
	hash := func(name string) string { return keyOf(name, func(*auth.KeyConfig) {}).SHA256 }
	return fmt.Sprintf(bossKey, hash("boss"), hash("clerk"))
}

// Operators try servers, add and remove them. Secrets go to secrets.env and come back nowhere. Without keys, nobody adds
// a server.
func TestServersAreTriedAddedAndRemoved(t *testing.T) {
	s, folder := editable(t, bossSettings()+"rate_limit: {tools: [hr__lookup]}\n")
	open, openFolder := editable(t, "")
	peer := guardedPeer(t)
	good := fmt.Sprintf(`"url":%q,"headers":{"X-Secret":%q}`, peer, secretValue)
	for _, row := range []struct {
		name   string
		site   *site
		by     string
		body   string
		status int
		has    string
	}{
		{"try", s, "boss", `{"name":"hr",` + good + `,"try":true}`, 200, `{"name":"lookup","description":"Looks up [redacted]"}`},
		{"try with a wrong header", s, "boss", fmt.Sprintf(`{"name":"hr","url":%q,"headers":{"X-Secret":"guess-of-mine"},"try":true}`, peer), 502, "unauthorized"},
		{"try a command that ends", s, "boss", `{"name":"hr","command":["sh","-c","echo $TOKEN >&2; exit 3"],"env":{"TOKEN":"tell-nobody-this"},"try":true}`, 502, "[redacted]"},
		{"try a credential with braces", s, "boss", `{"name":"hr","command":["sh","-c","exit $(printf %s $1 | wc -c)","--token","pa${x}y"],"try":true}`, 502, "exit status 7"},
		{"no name", s, "boss", `{` + good + `}`, 400, "not a valid server name"},
		{"a bad name", s, "boss", `{"name":"a__b",` + good + `}`, 400, "not a valid server name"},
		{"neither", s, "boss", `{"name":"hr"}`, 400, "an address or a command"},
		{"both", s, "boss", `{"name":"hr",` + good + `,"command":["x"]}`, 400, "an address or a command"},
		{"no operator", s, "clerk", `{"name":"hr",` + good + `}`, 403, "edit: true"},
		{"without keys", open, "", `{"name":"hr",` + good + `}`, 403, "edit: true"},
	} {
		status, text := row.site.send("POST", "servers", row.by, row.body)
		if status != row.status || !strings.Contains(text, row.has) {
			t.Errorf("%s: got %d %s, want %d with %s", row.name, status, text, row.status, row.has)
		}
		for _, secret := range []string{secretValue, "tell-nobody-this", "guess-of-mine"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: got %s, want no secret", row.name, text)
			}
		}
	}
	for _, file := range []string{filepath.Join(folder, "servers.yaml"), filepath.Join(openFolder, "servers.yaml")} {
		if _, err := os.Stat(file); err == nil {
			t.Fatalf("%s exists before a server is added", file)
		}
	}
	if status, text := s.send("POST", "servers", "boss", `{"name":"hr","private":true,`+good+`}`); status != 200 || strings.Contains(text, secretValue) {
		t.Fatalf("adding: got %d %s, want 200", status, text)
	}
	servers, secrets := contentOf(t, folder, "servers.yaml"), contentOf(t, folder, "secrets.env")
	if strings.Contains(servers, secretValue) || !strings.Contains(servers, "${HR_X_SECRET}") || !strings.Contains(servers, "data: private") || !strings.Contains(secrets, secretValue) {
		t.Errorf("got the servers\n%s\nand the secrets\n%s", servers, secrets)
	}
	connected := func() bool {
		_, text := s.send("GET", "servers", "boss", "")
		return strings.Contains(text, `"name":"hr"`) && strings.Contains(text, `"status":"connected"`)
	}
	mcptest.Eventually(t, "the server is connected", connected)
	if status, text := s.send("POST", "servers", "boss", `{"name":"hr",`+good+`}`); status != 409 {
		t.Errorf("adding the name again: got %d %s, want 409", status, text)
	}
	if status, _ := s.send("POST", "servers/hr/remove", "clerk", `{}`); status != 403 {
		t.Errorf("removing by a key that is no operator's: got %d, want 403", status)
	}
	if status, text := s.send("POST", "servers/hr/remove", "boss", `{}`); status != 200 || !strings.Contains(text, "rate_limit.tools[0] names no server") {
		t.Fatalf("removing: got %d %s, want 200 and what still names it", status, text)
	}
	if _, text := s.send("GET", "servers", "boss", ""); strings.Contains(text, `"name":"hr"`) {
		t.Errorf("got %s, want the server to be gone", text)
	}
	if _, err := os.Stat(filepath.Join(folder, "secrets.env")); err == nil {
		t.Errorf("the secrets stay:\n%s", contentOf(t, folder, "secrets.env"))
	}
}

// A server is tried, added and removed on the page.
func testAddServer(t *testing.T, b *browser.Browser, _ *site) {
	s, _ := editable(t, bossSettings())
	headers := map[string]string{"Authorization": browser.BasicAuth("any", "boss")}
	for name, options := range map[string]browser.Options{"light": {Headers: headers}, "dark-phone": {Headers: headers, Dark: true, Phone: true}} {
		p := b.Open(t, s.base+"/ui/#/servers", options)
		p.Click(`a[href="#/servers/+"]`)
		p.Type("#new-name", "hr-"+name)
		p.Type("#new-url", guardedPeer(t))
		p.Click("fieldset button")
		p.Press("X-Secret")
		p.Type(".pair [type=password]", secretValue)
		p.Click("#adder button.primary")
		p.Wait(`document.querySelector("main").textContent.includes("Looks up [redacted]")`)
		p.Screenshot("page-add-" + name)
		if wide := browser.Eval[float64](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
			t.Errorf("the page is %v pixels too wide", wide)
		}
		p.Check()
		p.Click("#adder button[value=add]")
		p.Wait(`document.querySelector("[aria-live=polite] a[href='#/servers']")`)
		p.Click("[aria-live=polite] a[href='#/servers']")
		p.Wait(`[...document.querySelectorAll("tbody tr")].some((x) => x.textContent.includes("hr-` + name + `") && x.textContent.includes("connected"))`)
		visit(p, "#/servers/hr-"+name, "Changes of state")
		p.Click("#remove-hr-" + name)
		p.Wait(`document.querySelector("dialog h2")?.textContent === "Remove hr-` + name + `?"`)
		p.Click("dialog button.primary")
		p.Wait(`location.hash === "#/servers" && !document.querySelector("main").textContent.includes("hr-` + name + `")`)
	}
	visit(b.Open(t, open(t, func(*app.Options) {}).base+"/ui/", browser.Options{}), "#/servers/+", "cannot be changed here")
}
