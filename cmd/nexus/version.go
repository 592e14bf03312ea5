package main

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// version is the version of the next release. Packages take it from here.
const version = "0.1.0"

// commit is the hash of the commit and its date. It is set at link time.
var commit string

type versionCmd struct{}

func (*versionCmd) Run(w *world) error {
	text := "nexus " + version
	if commit != "" {
		text += " (commit " + commit + ")"
	}
	_, err := fmt.Fprintln(w.stdout, text)
	return err
}

// versionFlag is --version.
type versionFlag bool

func (versionFlag) BeforeReset(app *kong.Kong, w *world) error {
	app.Exit(exitFine)
	return (&versionCmd{}).Run(w)
}
