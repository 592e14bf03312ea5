package soak

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
)

const (
	asServer  = "NEXUS_SOAK_SERVER" // the test binary is a server on stdio, with this ledger
	binaryVar = "NEXUS_SOAK_PROGRAM"
)

func TestMain(m *testing.M) {
	if ledger, ok := os.LookupEnv(asServer); ok {
		s := &mcptest.Server{Ledger: mcptest.Ledger{Path: ledger}}
		s.ServeLines(os.Stdin, os.Stdout)
		return
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "nexus-soak-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "nexus")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/nexus").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building nexus: %v\n%s", err, out)
		return 1
	}
	os.Setenv(binaryVar, program)
	return m.Run()
}
