package tests

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// auditing returns the configuration of a router with an audit log, and the log.
func auditing(t *testing.T, settings string) (config, path string) {
	t.Helper()
	s := httptest.NewServer(&mcptest.Server{Stateless: true})
	t.Cleanup(s.Close)
	path = filepath.Join(t.TempDir(), "audit.jsonl")
	return fmt.Sprintf("mcpServers: {a: {url: %q}}\nhistory: {entries: 0}\naudit: {path: %q%s}\n", s.URL, path, settings), path
}

// verified returns what nexus audit verify says about a log.
func verified(path string) string {
	out, _ := command(filepath.Dir(path), "audit", "verify", path).CombinedOutput() // the output tells why it fails
	return string(out)
}

// A router that is killed while it writes leaves a log that is whole, up to a part of a line. The next one moves that
// part to another file and continues the log.
func TestAuditOfAKilledRouter(t *testing.T) {
	t.Parallel()
	config, path := auditing(t, "")
	parts := 0
	for kill := range 4 {
		r := serve(t, config)
		ctx, cancel := context.WithCancel(t.Context())
		var load sync.WaitGroup
		var answered atomic.Int64
		for range 8 {
			load.Go(func() {
				c := &mcptest.Client{URL: r.url + "/proxy/mcp", HTTP: http.DefaultClient}
				for ctx.Err() == nil && c.Call(ctx, "a__echo", "{}").Err == nil {
					answered.Add(1)
				}
			})
		}
		mcptest.Eventually(t, "the load", func() bool { return answered.Load() > int64(300+100*kill) })
		r.kill()
		cancel()
		load.Wait()
		switch got, n := verified(path), lines(path); {
		case strings.Contains(got, fmt.Sprintf("line %d is cut off", n+1)):
			parts++
		case !strings.HasPrefix(got, fmt.Sprintf("%d lines in 1 files are whole", n)) || n == 0:
			t.Fatalf("after kill %d: got %s, want a log that is whole", kill+1, got)
		}
	}
	r := serve(t, config)
	before := lines(path)
	r.run("a__echo", map[string]any{})
	r.stop()
	want := fmt.Sprintf("%d lines in 1 files are whole", before+1)
	if got := verified(path); !strings.HasPrefix(got, want) || strings.Contains(got, fmt.Sprintf("%d lines were not written", parts)) != (parts > 0) {
		t.Errorf("at the end: got %s, want %s and %d parts of lines missing", got, want, parts)
	}
}

// A log that cannot grow refuses calls, and continues without a gap when it can. RLIMIT_FSIZE cuts a write like a full
// disk.
func TestAuditOfAFullDisk(t *testing.T) {
	t.Parallel()
	config, path := auditing(t, ", on_failure: refuse")
	r := serve(t, config)
	limit := func(bytes uint64) {
		if err := unix.Prlimit(r.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Skip(err)
		}
	}
	limit(10_000)
	c := &mcptest.Client{URL: r.url + "/proxy/mcp", HTTP: http.DefaultClient}
	made := 0
	mcptest.Eventually(t, "a refusal", func() bool {
		reply := c.Call(t.Context(), "a__echo", "{}")
		if reply.Err != nil {
			t.Fatal(reply.Err)
		}
		refusal := string(reply.Error)
		if refusal == "" {
			made++
			return false
		}
		for _, part := range []string{"the audit log cannot record it: file too large; make the log writable", `"server":"","reason":"unavailable"`} {
			if !strings.Contains(refusal, part) {
				t.Errorf("got %s, want %s in it", refusal, part)
			}
		}
		return true
	})
	if n := lines(path); n == 0 || n > made {
		t.Errorf("got %d lines of %d calls", n, made)
	}
	limit(unix.RLIM_INFINITY)
	mcptest.Eventually(t, "a call", func() bool { return c.Call(t.Context(), "a__echo", "{}").Error == nil })
	r.stop()
	want := fmt.Sprintf("%d lines in 1 files are whole", made+1)
	if got := verified(path); !strings.HasPrefix(got, want) || strings.Contains(got, "not written") {
		t.Errorf("got %s, want %s", got, want)
	}
	if !r.log.Has("the audit log cannot be written", "file too large") || !r.log.Has("the audit log is written again") {
		t.Errorf("got the log %s, want that the failure and its end are told", r.log)
	}
}
