package tests

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

// sums writes a file of n cases.
func sums(t *testing.T, n int) (path string) {
	t.Helper()
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"id":"case %d","query":"sum","plan":[{"tool":"calculate","arguments":{"expression":"%d + 1"}}],"expect":{"answer_contains":["%d"]}}`+"\n", i, i, i+1)
	}
	path = filepath.Join(t.TempDir(), "cases.jsonl")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// lines counts the lines of a file.
func lines(path string) int {
	raw, _ := os.ReadFile(path) // none yet
	return bytes.Count(raw, []byte("\n"))
}

// batch starts a batch. Both outputs are its Stdout.
func batch(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := command(t.TempDir(), append([]string{"batch", "run"}, args...)...)
	both := &bytes.Buffer{}
	c.Stdout, c.Stderr = both, both
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	return c
}

// ended waits for a batch and checks its exit code.
func ended(t *testing.T, c *exec.Cmd, code int) (output string) {
	t.Helper()
	_ = c.Wait() // the exit code tells
	output = fmt.Sprint(c.Stdout)
	if got := c.ProcessState.ExitCode(); got != code {
		t.Fatalf("got exit code %d, want %d\n%s", got, code, output)
	}
	return output
}

// A batch waits where the router's rate limit asks for it, and --yes gives consent.
func TestBatchRemote(t *testing.T) {
	t.Parallel()
	r := serve(t, "rate_limit: {requests: 4, per: 1s}\nexecution: {confirm_writes: always}", "--demo")
	out := filepath.Join(t.TempDir(), "results.jsonl")
	if got := ended(t, batch(t, sums(t, 10), "--out", out, "--remote", r.url), 0); !strings.Contains(got, "10 of 10 done: 10 passed") {
		t.Errorf("got %s, want 10 cases that passed", got)
	}
	mail := filepath.Join(t.TempDir(), "mail.jsonl")
	text := `{"id":"mail","query":"send","context":"hi","max_rounds":1,"servers":["email"],"timeout_seconds":20,` +
		`"plan":[{"tool":"send_email","arguments":{"to":"a@example.com","subject":"s","body":"b"}}],"expect":{"tools":["email__send_email"]}}`
	if err := os.WriteFile(mail, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ended(t, batch(t, mail, "--out", out+"1", "--remote", r.url), 3)
	ended(t, batch(t, mail, "--out", out+"2", "--remote", r.url, "--yes"), 0)
	if got := ended(t, batch(t, sums(t, 1), "--out", out+"3", "--remote", "127.0.0.1"), 2); !strings.Contains(got, "is not a URL") {
		t.Errorf("got %s, want the wrong URL named", got)
	}
}

// A router that goes away ends the batch, which another router completes.
func TestBatchRemoteGone(t *testing.T) {
	t.Parallel()
	const cases = 300
	r := serve(t, "rate_limit: {requests: 100000}", "--demo")
	in, out := sums(t, cases), filepath.Join(t.TempDir(), "results.jsonl")
	c := batch(t, in, "--out", out, "--remote", r.url, "--concurrency", "1")
	mcptest.Eventually(t, "a result", func() bool { return lines(out) > 0 })
	r.once.Do(func() { // instead of an orderly end
		_ = r.cmd.Process.Kill()
		<-r.end
	})
	got := ended(t, c, 1)
	kept := lines(out)
	if kept == 0 || kept == cases || !strings.Contains(got, "resume with: nexus batch run "+in) {
		t.Fatalf("got %d lines and %s, want some and how to resume", kept, got)
	}
	again := serve(t, "rate_limit: {requests: 100000}", "--demo")
	c = batch(t, in, "--out", out, "--remote", again.url, "--resume")
	_ = c.Wait() // the question under way when the router was killed may be an error
	if n := lines(out); n != cases {
		t.Errorf("got %d lines, want %d\n%s", n, cases, c.Stdout)
	}
}

// An interrupt finishes what runs, keeps it, and tells how to resume.
func TestBatchInterrupt(t *testing.T) {
	t.Parallel()
	in, out := sums(t, 5000), filepath.Join(t.TempDir(), "results.jsonl")
	c := batch(t, in, "--out", out, "--demo", "--concurrency", "2")
	mcptest.Eventually(t, "a result", func() bool { return lines(out) > 0 })
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	got := ended(t, c, 3)
	for _, want := range []string{
		"nexus: finishing the questions in progress", "0 failed, 0 errors",
		"nexus: interrupted; resume with: nexus batch run " + in + " --out " + out + " --demo --concurrency 2 --resume\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %q in it", got, want)
		}
	}
	if n := lines(out); n == 0 || n == 5000 {
		t.Errorf("got %d lines, want some of 5000", n)
	}
}

// A question that waits for the rate limit does not hold up an interrupt, and its wait is not its latency.
func TestBatchInterruptWhileRefused(t *testing.T) {
	t.Parallel()
	r := serve(t, "rate_limit: {requests: 1, per: 10m}", "--demo")
	in, out := sums(t, 3), filepath.Join(t.TempDir(), "results.jsonl")
	c := batch(t, in, "--out", out, "--remote", r.url, "--concurrency", "1")
	mcptest.Eventually(t, "a result", func() bool { return lines(out) > 0 })
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if got := ended(t, c, 3); lines(out) != 1 || !strings.Contains(got, "nexus: interrupted; resume with: ") {
		t.Errorf("got %d lines and %s, want 1 and how to resume", lines(out), got)
	}
}
