package tests

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// healthz returns what the router says of its servers.
func (r *router) healthz() string {
	r.t.Helper()
	resp, err := http.Get(r.url + "/healthz")
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(body)
}

// healthy waits until all servers are connected.
func (r *router) healthy() {
	r.t.Helper()
	mcptest.Eventually(r.t, "the servers to connect", func() bool { return strings.Contains(r.healthz(), `"status": "healthy"`) })
}

// configure replaces the configuration file, as editors do.
func (r *router) configure(content string) {
	r.t.Helper()
	file := filepath.Join(r.dir, "nexus.yaml")
	if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		r.t.Fatal(err)
	}
}

// The running program takes over a changed file while calls are in flight, keeps the last good configuration
// where the file has a mistake, and reads everything anew at SIGHUP.
func TestReload(t *testing.T) {
	t.Parallel()
	none := func(string) {}
	first, second := newDownstream(t, "first", none), newDownstream(t, "second", none)
	entry := func(d *downstream) string { return fmt.Sprintf("  %s: {url: %q}\n", d.name, d.url) }
	key := filepath.Join(t.TempDir(), "key")
	r := serve(t, "mcpServers:\n"+entry(first))
	answer := first.wait(r)

	r.configure("mcpServers:\n" + entry(second))
	r.waitLog(`configuration reloaded.* added=\[second\] removed=\[first\]`)
	if got := r.healthz(); !strings.Contains(got, `"second"`) || strings.Contains(got, `"first"`) {
		t.Errorf("/healthz: got %s, want the second server alone", got)
	}
	other := second.wait(r)
	close(first.release)
	close(second.release)
	for want, answer := range map[string]<-chan string{"first waited": answer, "second waited": other} {
		if got := <-answer; !strings.Contains(got, want) {
			t.Errorf("got %s, want %q", got, want)
		}
	}

	r.configure("mcpServers:\n" + entry(second) + "  third: {ulr: x}\n")
	r.waitLog(`Configuration not reloaded, the last good one stays in use: \S*nexus.yaml:3:11: .*unknown key \S+ulr`)
	if got := r.healthz(); !strings.Contains(got, `"second"`) {
		t.Errorf("/healthz after a mistake: got %s, want the second server", got)
	}

	r.configure("limits: {sessions: 5}\nmcpServers:\n" + entry(second) + entry(first))
	r.waitLog(`added=\[first\]`)
	r.waitLog(`configuration: limits.sessions cannot change while running`)

	if err := os.WriteFile(key, []byte("right"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.configure(fmt.Sprintf("auth: {api_keys: [{name: a, file: %q}]}\nmcpServers:\n", key) + entry(second))
	mcptest.Eventually(t, "the third reload", func() bool { return strings.Count(r.log.String(), "configuration reloaded") == 3 })
	if resp, err := http.Get(r.url + "/healthz"); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("/healthz without the key: got %v, %v, want 401", resp, err)
	} else {
		resp.Body.Close()
	}
	if err := os.WriteFile(key, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	mcptest.Eventually(t, "the other key", func() bool {
		req, _ := http.NewRequest(http.MethodGet, r.url+"/healthz", nil)
		req.Header.Set("X-API-Key", "other")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// A folder that is away for a moment changes nothing.
func TestReload_FolderIsAway(t *testing.T) {
	t.Parallel()
	d := newDownstream(t, "first", func(string) {})
	dir := filepath.Join(t.TempDir(), "config")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "servers.yaml"), fmt.Appendf(nil, "mcpServers:\n  %s: {url: %q}\n", d.name, d.url), 0o600); err != nil {
		t.Fatal(err)
	}
	r := serve(t, "", "--config", dir)
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	r.waitLog(`level=WARN msg="Configuration not reloaded, the last good one stays in use: \S*config: no such file`)
	if got := r.healthz(); !strings.Contains(got, `"first"`) {
		t.Errorf("/healthz without the folder: got %s, want the server", got)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	r.waitLog(`The configuration files can be used again; nothing has changed`)
	if got := r.healthz(); !strings.Contains(got, `"first"`) {
		t.Errorf("/healthz with the folder back: got %s, want the server", got)
	}
}

// Not one call is lost while the configuration changes under load.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	d := newDownstream(t, "d", func(string) {})
	close(d.release)
	content := func(i int) string {
		return fmt.Sprintf("mcpServers:\n  d: {url: %q, timeout: %ds}\n", d.url, 60+i)
	}
	r := serve(t, content(0))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := http.Post(r.url+"/proxy/mcp", "application/json",
					strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"d__wait","arguments":{}}}`))
				if err != nil {
					t.Errorf("got %v, want an answer", err)
					return
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				<-d.started
				if !strings.Contains(string(body), "d waited") {
					t.Errorf("got %s, want an answer of the tool", body)
					return
				}
			}
		})
	}
	for i := range 5 {
		r.configure(content(i + 1))
		mcptest.Eventually(t, "the reload", func() bool { return strings.Count(r.log.String(), "changed=[d]") == i+1 })
	}
	close(stop)
	wg.Wait()
}

// SIGHUP does not end a program that is still starting: here its server sends it, and the start waits for that server.
func TestHangupWhileStarting(t *testing.T) {
	t.Parallel()
	r := serve(t, "name_conflicts: error\nmcpServers:\n  a: {command: sh, args: [-c, \"mkdir once && kill -HUP $PPID\"]}\n")
	r.waitLog(`configuration reloaded`)
}
