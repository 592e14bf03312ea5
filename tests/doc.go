// Package tests holds black-box tests: they build the nexus program once, start it as its users do and
// look at what it says on the wire, on the terminal and on exit. Nothing here imports the router.
//
// Tests against programs of others need node and curl; they run where NEXUS_COUNTERPARTS names the folder
// that counterparts/package.json was installed in, and are skipped elsewhere.
package tests
