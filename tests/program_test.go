package tests

import (
	"os"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/nexustest"
)

// program is the path of the nexus program under test; TestMain builds it.
var program string

func TestMain(m *testing.M) {
	if os.Getenv(driverProgram) != "" {
		os.Exit(drive(os.Args[1]))
	}
	if dir := os.Getenv(soleServer); dir != "" {
		os.Exit(serveAlone(dir))
	}
	os.Exit(nexustest.Run(m, func(built string) { program = built }))
}
