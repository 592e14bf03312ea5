package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBatchKill kills a batch at random points and resumes it: each case has one line in the end. BATCH_KILLS says how
// often.
func TestBatchKill(t *testing.T) {
	t.Parallel()
	kills := 10
	if text := os.Getenv("BATCH_KILLS"); text != "" {
		kills = atoi(t, text)
	}
	cases := 40 * kills
	dir := t.TempDir()
	in, out := filepath.Join(dir, "cases.jsonl"), filepath.Join(dir, "results.jsonl")
	var text strings.Builder
	for i := range cases {
		fmt.Fprintf(&text, `{"id":"case %d","query":"sum","plan":[{"tool":"calculate","arguments":{"expression":"%d + 1"}}],"expect":{"answer_contains":["%d"]}}`+"\n", i, i, i+1)
	}
	if err := os.WriteFile(in, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	killed := 0
	random := rand.New(rand.NewPCG(13, 0))
	run := func() *exec.Cmd {
		c := exec.Command(program, "batch", "run", in, "--out", out, "--demo", "--resume", "--concurrency", "2")
		c.Stderr = &bytes.Buffer{}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range kills {
		before := size(out)
		c := run()
		// The point is a number of bytes, so that it does not depend on how fast the machine is.
		point := before + random.Int64N(20_000)
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		tick := time.NewTicker(time.Millisecond)
		for waiting := true; waiting; {
			select {
			case <-tick.C:
				if size(out) > point {
					_ = c.Process.Kill()
					killed++
					<-ended
					waiting = false
				}
			case err := <-ended:
				if err != nil {
					t.Fatalf("the batch failed: %v\n%s", err, c.Stderr)
				}
				waiting = false
			}
		}
		tick.Stop()
	}
	t.Logf("killed %d times", killed)
	if c := run(); c.Wait() != nil {
		t.Fatalf("the last run failed: %s", c.Stderr)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range bytes.Lines(raw) {
		var l struct{ Case, Outcome string }
		if err := json.Unmarshal(line, &l); err != nil || l.Outcome != "passed" {
			t.Fatalf("got line %s, %v", line, err)
		}
		seen[l.Case]++
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s: got %d lines, want 1", id, n)
		}
	}
	if len(seen) != cases {
		t.Errorf("got lines of %d cases, want %d", len(seen), cases)
	}
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// TestBatchDemo asks the demo servers what testdata/batch/demo.yaml asks, without a model.
func TestBatchDemo(t *testing.T) {
	t.Parallel()
	suite, err := filepath.Abs(filepath.Join("testdata", "batch", "demo.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "results.jsonl")
	got := ended(t, batch(t, suite, "--out", out, "--demo"), 0)
	if n := lines(out); n < 60 || !strings.Contains(got, fmt.Sprintf("%d of %d done: %d passed, 0 failed", n, n, n)) {
		t.Errorf("got %s, want at least 60 cases that pass", got)
	}
}
