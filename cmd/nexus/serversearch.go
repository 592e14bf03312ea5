package main

import (
	"fmt"
	"strings"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/registry"
)

type serverSearchCmd struct {
	Words    []string `arg:"" help:"Words of the name of a server; the longest is looked for there, the others also in its description."`
	Registry string   `help:"The address of the registry." default:"${registry}" placeholder:"URL"`
}

// maxFound is how many servers are shown.
const maxFound = 10

// Run prints what a registry has, with the command lines that add it.
func (c *serverSearchCmd) Run(w *world) error {
	found, err := registry.Search(w.ctx, c.Registry, c.Words, maxFound)
	switch {
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case err != nil:
		return err
	case len(found) == 0:
		fmt.Fprintf(w.stderr, "nexus: no server in the registry has %q in its name; try one word, or a shorter one\n",
			firstLine(strings.Join(c.Words, " "), maxShown))
	}
	for i, e := range found {
		title := strings.TrimSpace(e.Name + " " + e.Version)
		if e.Deprecated {
			title += " (deprecated)"
		}
		fmt.Fprintf(w.stdout, "%s\n  %s\n", title, e.Description)
		add := e.Add()
		for _, need := range add.Needs {
			fmt.Fprintln(w.stdout, "  "+need)
		}
		if add.Line != "" {
			fmt.Fprintln(w.stdout, "  "+add.Line)
		}
		if i < len(found)-1 {
			fmt.Fprintln(w.stdout)
		}
	}
	return nil
}
