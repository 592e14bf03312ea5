package console_test

import (
	"encoding/json"
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
				t.Errorf("the change is not taken over: %v", err)
				return
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
	s, folder := editable(t, "# mine\nrate_limit: {requests: 1000}\n")
	status, text := s.send("POST", "keys", "", `{"name":"boss","ops":false}`)
	if status != 400 || !strings.Contains(text, "first key needs all rights") {
		t.Errorf("a first key without rights: got %d %s, want 400", status, text)
	}
	made := func(by, body string) string {
		t.Helper()
		status, text := s.send("POST", "keys", by, body)
		var answer struct{ Key string }
		if err := json.Unmarshal([]byte(text), &answer); err != nil || status != 200 || !strings.HasPrefix(answer.Key, "nx_") {
			t.Fatalf("making a key: got %d %s, want a key", status, text)
		}
		mcptest.Eventually(t, "the key is accepted, and needed", func() bool {
			with, _ := s.send("GET", "now", answer.Key, "")
			without, _ := s.send("GET", "now", "", "")
			return with == 200 && without == 401
		})
		return answer.Key
	}
	boss := made("", `{"name":"boss","ops":true}`)
	clerk := made(boss, `{"name":"clerk"}`)
	settings := contentOf(t, folder, "settings.yaml")
	if !strings.HasPrefix(settings, "# mine\nrate_limit: {requests: 1000}\n") || strings.Contains(settings, boss) || strings.Contains(settings, clerk) {
		t.Errorf("got the settings\n%s\nwant the former ones first, and hashes of the keys only", settings)
	}
	for _, row := range []struct {
		path, by, body string
		status         int
		has            string
	}{
		{"keys", clerk, `{"name":"x"}`, 403, "ops: true"},
		{"keys/clerk/revoke", clerk, `{}`, 403, "ops: true"},
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
	if status, text := s.send("POST", "keys/clerk/revoke", boss, `{}`); status != 200 {
		t.Fatalf("revoking: got %d %s", status, text)
	}
	mcptest.Eventually(t, "the key is refused", func() bool { status, _ := s.send("GET", "now", clerk, ""); return status == 401 })
	if status, text := s.send("POST", "keys/boss/revoke", boss, `{}`); status != 409 || !strings.Contains(text, "last API key") {
		t.Errorf("revoking the last key: got %d %s, want 409", status, text)
	}
	if status, text := guarded(t).send("POST", "keys", "ops-key", `{"name":"x"}`); status != 409 || !strings.Contains(text, "not one folder") {
		t.Errorf("without a folder: got %d %s, want 409", status, text)
	}
}

// Keys are made and revoked on the page.
func testKeys(t *testing.T, b *browser.Browser, _ *site) {
	s, _ := editable(t, "auth:\n  api_keys:\n    - name: boss\n      sha256: "+keyOf("boss", func(*auth.KeyConfig) {}).SHA256+"\n      ops: true\n")
	p := b.Open(t, s.base+"/ui/#/access", browser.Options{Headers: map[string]string{"Authorization": browser.BasicAuth("any", "boss")}})
	p.Type("#key-name", "clerk")
	p.Click("section[aria-labelledby=maker] button.primary")
	p.Wait(`document.querySelector("section[aria-labelledby=maker] .copied code")?.textContent.startsWith("nx_")`)
	key := browser.Eval[string](p, `document.querySelector("section[aria-labelledby=maker] .copied code").textContent`)
	p.Wait(`document.getElementById("revoke-clerk")`)
	p.Screenshot("page-key")
	p.Check()
	if status, _ := s.send("GET", "now", key, ""); status != 200 {
		t.Errorf("the new key: got %d, want 200", status)
	}
	p.Click("#revoke-clerk")
	p.Click("dialog button.primary")
	p.Wait(`!document.getElementById("revoke-clerk") && document.querySelector("tbody").textContent.includes("boss")`)
	if status, _ := s.send("GET", "now", key, ""); status != 401 {
		t.Errorf("the revoked key: got %d, want 401", status)
	}
}
