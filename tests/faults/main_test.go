package faults

import (
	"os"
	"testing"

	"github.com/agenticnexus/agenticnexus/tests/mcptest"
	"github.com/agenticnexus/agenticnexus/tests/nexustest"
)

// Variables that tell the test binary which part it plays.
const (
	asFault    = "NEXUS_FAULT"          // the process of the named fault
	asServer   = "NEXUS_FAULT_SERVER"   // a server on stdio that misbehaves in the named way
	ledgerVar  = "NEXUS_FAULT_LEDGER"   // the file of its ledger
	runsVar    = "NEXUS_FAULT_RUNS"     // how often a fault is run
	recordVar  = "NEXUS_FAULT_RECORD"   // where its record goes
	asAttacker = "NEXUS_FAULT_ATTACKER" // the process of the named attack
	sizeVar    = "NEXUS_FAULT_SIZE"     // whether attacks have their full sizes
	binaryVar  = "NEXUS_FAULT_PROGRAM"  // the nexus program
)

func TestMain(m *testing.M) {
	if manner, ok := os.LookupEnv(asServer); ok {
		s := &mcptest.Server{Ledger: mcptest.Ledger{Path: os.Getenv(ledgerVar)}}
		misbehave(manner, s)
		s.ServeLines(os.Stdin, os.Stdout)
		return
	}
	if name, ok := os.LookupEnv(asAttacker); ok {
		attackAs(name)
		return
	}
	if os.Getenv(asFault) != "" {
		os.Exit(m.Run())
	}
	os.Exit(nexustest.Run(m, func(program string) { os.Setenv(binaryVar, program) })) // for the faults that need a process of it
}
