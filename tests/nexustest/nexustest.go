// Package nexustest builds the nexus program for tests that run it, and keeps what it writes.
package nexustest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Env returns the variables of a program that works in a folder. No settings are among them.
func Env(dir string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "GORACE=" + raceOptions}
}

// raceOptions are options of the race detector: it does not wait a second for more races when a program ends, and has
// its memory in large pages, which makes starts a fifth cheaper.
const raceOptions = "atexit_sleep_ms=0 no_huge_pages_for_shadow=0"

// Run builds the program into a folder that lasts as long as the tests, hands its path to use, runs the
// tests, and returns the exit code. The state of routers is kept in that folder, too. It is built with the flags of
// GOFLAGS, so that the race detector watches it too where it is set there.
func Run(m *testing.M, use func(program string)) int {
	dir, err := os.MkdirTemp("", "nexus-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "nexus")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/agenticnexus/agenticnexus/cmd/nexus").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building nexus: %v\n%s", err, out)
		return 1
	}
	os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state")) // not the user's
	os.Setenv("GORACE", raceOptions)                         // of programs that inherit the environment
	use(program)
	return m.Run()
}
