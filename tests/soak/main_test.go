package soak

import (
	"os"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
	"github.com/agenticnexus/agenticnexus/tests/nexustest"
)

const asServer = "NEXUS_SOAK_SERVER" // the test binary is a server on stdio, with this ledger

// program is the path of the nexus program; TestMain builds it.
var program string

func TestMain(m *testing.M) {
	if ledger, ok := os.LookupEnv(asServer); ok {
		s := &mcptest.Server{Ledger: mcptest.Ledger{Path: ledger}}
		s.ServeLines(os.Stdin, os.Stdout)
		return
	}
	os.Exit(nexustest.Run(m, func(built string) { program = built }))
}
