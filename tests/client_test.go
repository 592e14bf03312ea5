package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agenticnexus/agenticnexus/tests/nexustest"
)

// cursorHome returns a home folder with Cursor's file, and a command that runs nexus in it.
func cursorHome(t *testing.T, content string) (file string, nexus func(args ...string) *exec.Cmd) {
	t.Helper()
	home := t.TempDir()
	file = filepath.Join(home, ".cursor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o640); err != nil {
		t.Fatal(err)
	}
	return file, func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Env = nexustest.Env(home)
		cmd.Dir = home
		return cmd
	}
}

// TestClientAtOnce lets several processes change one file at once: no entry is lost.
func TestClientAtOnce(t *testing.T) {
	t.Parallel()
	file, nexus := cursorHome(t, `{"mcpServers": {"mine": {"command": "x"}}}`)
	const many = 6
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			out, err := nexus("client", "add", "cursor", "--demo", "--yes", "--name", fmt.Sprint("n", i)).CombinedOutput()
			if err != nil {
				t.Errorf("adding: %v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Servers map[string]any `json:"mcpServers"`
	}
	if err := json.Unmarshal(content, &got); err != nil || len(got.Servers) != many+1 {
		t.Errorf("got %v, want %d servers in\n%s", err, many+1, content)
	}
}

// TestClientKilled kills a process while it changes a file, at many moments: the file is as before or as after.
func TestClientKilled(t *testing.T) {
	t.Parallel()
	var before strings.Builder
	before.WriteString("{\n  \"mcpServers\": {\n")
	for i := range 1000 { // long enough to be caught while it is written
		fmt.Fprintf(&before, "    \"s%d\": {\"command\": \"x\"}, // %d\n", i, i)
	}
	before.WriteString("  }\n}\n")
	file, nexus := cursorHome(t, before.String())
	add := func() *exec.Cmd { return nexus("client", "add", "cursor", "--demo", "--yes") }
	began := time.Now()
	if out, err := add().CombinedOutput(); err != nil {
		t.Fatalf("adding: %v\n%s", err, out)
	}
	took := time.Since(began)
	after, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const moments = 10
	for i := range moments {
		if err := os.WriteFile(file, []byte(before.String()), 0o640); err != nil {
			t.Fatal(err)
		}
		cmd := add()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(took/4+took*time.Duration(i)/moments, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
		got, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, []byte(before.String())) && !bytes.Equal(got, after) {
			t.Fatalf("moment %d: got %d bytes, %v, want %d or %d", i, len(got), err, before.Len(), len(after))
		}
	}
}
