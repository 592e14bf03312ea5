package tests

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// TestOAuth logs in to a server with the program, while a router runs that uses the login at once.
func TestOAuth(t *testing.T) {
	t.Parallel()
	o := &mcptest.OAuth{}
	t.Cleanup(mcptest.ServeOAuth(o, &mcptest.Server{}))
	state := t.TempDir()
	r := serve(t, fmt.Sprintf("state: %q\nmcpServers:\n  hr: {url: %q, auth: {}}\n  open: {url: http://127.0.0.1:1/mcp, disabled: true}\n", state, o.URL+"/mcp"))
	r.waitLog(`cannot connect to server.*nobody is logged in; run: nexus auth login hr`)
	config := []string{"--config", filepath.Join(r.dir, "nexus.yaml")}

	auth := func(code int, args ...string) string {
		t.Helper()
		cmd := command(t.TempDir(), append(append([]string{"auth"}, args...), config...)...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != code {
			t.Errorf("nexus auth %v: got %v and %q, want exit status %d", args, err, out, code)
		}
		for _, secret := range []string{"access-", "refresh-", "code-"} {
			if strings.Contains(string(out), secret) {
				t.Errorf("nexus auth %v: got %q, which holds a token", args, out)
			}
		}
		return string(out)
	}
	if got := auth(3, "status"); !strings.Contains(got, "not logged in") || !strings.Contains(got, "nexus auth login hr") {
		t.Errorf("status: got %q", got)
	}
	auth(2, "login", "other")
	auth(2, "login", "hr", "--scope", "two words")
	auth(2, "logout", "open")

	logIn(t, command(t.TempDir(), append([]string{"auth", "login", "hr"}, config...)...))
	mcptest.Eventually(t, "the running router uses the login", func() bool {
		return strings.Contains(r.healthz(), `"status": "connected"`)
	})
	if got := r.healthz(); !strings.Contains(got, `"token_expires_in": 3`) {
		t.Errorf("/healthz: got %s, want token_expires_in", got)
	}
	if got := auth(0, "status"); !strings.Contains(got, "logged in") || !strings.Contains(got, "read") {
		t.Errorf("status: got %q", got)
	}
	var logins []struct {
		Server   string   `json:"server"`
		LoggedIn bool     `json:"logged_in"`
		In       int      `json:"expires_in"`
		Scopes   []string `json:"scopes"`
	}
	if err := json.Unmarshal([]byte(auth(0, "status", "hr", "--json")), &logins); err != nil || len(logins) != 1 ||
		!logins[0].LoggedIn || logins[0].In < 3000 || logins[0].Server != "hr" || len(logins[0].Scopes) != 1 {
		t.Errorf("status --json: got %+v, %v", logins, err)
	}
	if files, err := filepath.Glob(filepath.Join(state, "tokens", "*.json")); err != nil || len(files) != 1 {
		t.Errorf("got the files %v, %v, want one in the state folder", files, err)
	} else if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", info, err)
	}

	auth(0, "logout", "hr")
	if got := auth(0, "logout", "hr"); !strings.Contains(got, "not logged in") {
		t.Errorf("a second logout: got %q", got)
	}
	if o.Count("revoke") != 2 {
		t.Errorf("got %d revocations, want one of each token", o.Count("revoke"))
	}
	auth(3, "status")
	for _, secret := range []string{"access-", "refresh-"} {
		if r.log.Has(secret) {
			t.Errorf("the log has a token: %q", r.log.Lines(secret))
		}
	}
}

// logIn runs a login and opens the page that it prints, as a browser does.
func logIn(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	log := &mcptest.Log{}
	if err := openPages(cmd, log); err != nil || !strings.Contains(log.String(), "logged in to ") {
		t.Fatalf("got %v and %q, want that the login succeeds", err, log.String())
	}
	if strings.Contains(log.String(), "access-") {
		t.Errorf("got %q, which holds a token", log.String())
	}
}

// openPages runs a command and opens the pages that it prints, as a browser does.
func openPages(cmd *exec.Cmd, log io.Writer) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return err
	}
	var failed error
	lines := bufio.NewScanner(io.TeeReader(out, log))
	for lines.Scan() {
		page, ok := strings.CutPrefix(lines.Text(), "  http")
		if !ok {
			continue
		}
		resp, err := http.Get("http" + page)
		if err != nil {
			failed = fmt.Errorf("opening the page: %w", err)
			continue
		}
		resp.Body.Close()
	}
	return errors.Join(failed, cmd.Wait())
}
