package tests

import (
	"flag"
	"os"
	"runtime"
	"strconv"
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
	_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))) // the tests wait for programs; -parallel has the last word
	os.Exit(nexustest.Run(m, func(built string) { program = built }))
}
