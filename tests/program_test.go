package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program is the path of the nexus program under test; TestMain builds it.
var program string

func TestMain(m *testing.M) {
	if os.Getenv(driverProgram) != "" {
		os.Exit(drive(os.Args[1]))
	}
	os.Exit(buildAndRun(m))
}

// buildAndRun builds the program with the flags of GOFLAGS, so that the race detector watches it too
// where it is set there.
func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "nexus-tests-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "nexus")
	build := exec.Command("go", "build", "-o", program, "../cmd/nexus")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building nexus: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
