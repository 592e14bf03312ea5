package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestServersAtOnce adds servers with several processes at once, while a router runs that takes them over, and removes
// them again: no entry and no credential is lost, and none is left.
func TestServersAtOnce(t *testing.T) {
	t.Parallel()
	const before = "# mine\nmcpServers: {} # none yet\n"
	r := serve(t, before)
	file := filepath.Join(r.dir, "nexus.yaml")
	const many = 4
	atOnce := func(args func(name string) []string) {
		t.Helper()
		var wg sync.WaitGroup
		for i := range many {
			wg.Go(func() {
				args := append([]string{"server"}, args(fmt.Sprint("n", i))...)
				if out, err := command(r.dir, args...).CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", args, err, out)
				}
			})
		}
		wg.Wait()
	}
	atOnce(func(name string) []string {
		return []string{"add", name, "--config", file, "--yes", "--env", "API_TOKEN=secret-of-" + name, "--", program, "stdio", "--demo"}
	})
	secrets, err := os.ReadFile(filepath.Join(r.dir, "secrets.env"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range many {
		if want := fmt.Sprintf("N%d_API_TOKEN=secret-of-n%[1]d\n", i); !strings.Contains(string(secrets), want) {
			t.Errorf("secrets.env lacks %s", want)
		}
		r.waitLog(fmt.Sprintf(`configuration reloaded.* added="?\[[^]]*\bn%d\b`, i))
	}
	atOnce(func(name string) []string { return []string{"disable", name, "--config", file, "--yes"} })
	atOnce(func(name string) []string { return []string{"remove", name, "--config", file, "--yes"} })
	if got, err := os.ReadFile(file); err != nil || string(got) != before {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, before)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "secrets.env")); !os.IsNotExist(err) {
		t.Errorf("secrets.env: %v, want it gone with the last credential", err)
	}
	r.waitLog(`configuration reloaded.* removed="?\[[^]]*\bn\d\b`)
}
