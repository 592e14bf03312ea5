package tests

import (
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// Connections of one address do not block a router with few file descriptors, whether they send nothing or begin a
// request that they never end.
func TestFewFileDescriptors(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs several loopback addresses")
	}
	dir := t.TempDir()
	nexus := command(dir, "serve", "--demo", "--listen", "127.0.0.1:0")
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -n 256 && exec "$0" "$@"`}, nexus.Args...)...)
	var log mcptest.Log
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, nexus.Env, &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it is killed
	})
	listening := regexp.MustCompile(`msg=listening address=(\S+)`)
	mcptest.Eventually(t, "it listens", func() bool { return listening.MatchString(log.String()) })
	address := listening.FindStringSubmatch(log.String())[1]
	query := func(from string) error {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}, Timeout: 20 * time.Second}
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"process_query","arguments":{"query":"15% of 2500"}}}`
		resp, err := client.Post("http://"+address+"/mcp", "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), "375") {
			t.Errorf("from %s: got %s, %v, want an answer", from, text, err)
		}
		return nil
	}
	flood := func(text string) {
		for range 300 {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			_, _ = io.WriteString(c, text) // it may be closed already
		}
	}
	flood("")
	for _, from := range []string{"127.0.0.1", "127.0.0.2"} {
		if err := query(from); err != nil {
			t.Errorf("beside idle connections: %v", err)
		}
	}
	flood("POST /mcp HTTP/1.1\r\n")
	if err := query("127.0.0.2"); err != nil {
		t.Errorf("beside unfinished requests of another address: %v", err)
	}
	if n := strings.Count(log.String(), "too many connections"); n != 1 || strings.Contains(log.String(), "too many open files") {
		t.Errorf("got %d warnings, want one, and no lack of descriptors:\n%s", n, log.String())
	}
	mcptest.Eventually(t, "unfinished requests are given up", func() bool { return query("127.0.0.1") == nil })
}
