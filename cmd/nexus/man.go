package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

// manCmd writes manual pages, one for the program and one for each command, from the texts of --help. It is hidden: it
// is for those who make packages.
type manCmd struct {
	Folder string `arg:"" help:"The folder to write to."`
}

func (c *manCmd) Run(app *kong.Kong) error {
	if err := os.MkdirAll(c.Folder, 0o755); err != nil {
		return err
	}
	for _, n := range append([]*kong.Node{app.Model.Node}, shown(app.Model.Node)...) {
		name := filepath.Join(c.Folder, pageName(n)+".1")
		if err := os.WriteFile(name, []byte(page(n)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// shown returns the commands below n that are not hidden.
func shown(n *kong.Node) (nodes []*kong.Node) {
	for _, child := range n.Children {
		if !child.Hidden {
			nodes = append(nodes, child)
		}
	}
	return nodes
}

func pageName(n *kong.Node) string { return strings.ReplaceAll(n.FullPath(), " ", "-") }

// page returns the page of a command in the man macros of roff. It has no date: equal programs have equal pages.
func page(n *kong.Node) string {
	var out strings.Builder
	name := pageName(n)
	fmt.Fprintf(&out, ".TH %s 1 \"\" \"nexus %s\" \"AgenticNexus\"\n", strings.ToUpper(name), version)
	fmt.Fprintf(&out, ".SH NAME\n%s \\- %s\n", name, roff(strings.TrimSuffix(n.Help, ".")))
	fmt.Fprintf(&out, ".SH SYNOPSIS\n%s\n", synopsis(n))
	if n.Detail != "" {
		fmt.Fprintf(&out, ".SH DESCRIPTION\n%s\n", roff(n.Detail))
	}
	commands := shown(n)
	switch {
	case n.Parent == nil:
		out.WriteString(".SH COMMANDS\n")
		for _, c := range commands {
			fmt.Fprintf(&out, ".TP\n.BR %s (1)\n%s\n", roff(pageName(c)), roff(c.Help))
		}
	case len(commands) > 0:
		out.WriteString(".SH COMMANDS\n")
		for _, c := range commands {
			fmt.Fprintf(&out, ".SS %s\n%s\n.PP\n%s\n", roff(c.FullPath()), synopsis(c), roff(c.Help))
			options(&out, c)
		}
	}
	if len(n.Flags)+len(n.Positional) > 0 {
		out.WriteString(".SH OPTIONS\n")
		options(&out, n)
	}
	if n.Parent != nil {
		out.WriteString(".SH SEE ALSO\n.BR nexus (1)\n")
	}
	return out.String()
}

func synopsis(n *kong.Node) string {
	text := "nexus"
	if n.Parent != nil {
		text += " " + n.Summary()
	} else {
		text += " <command> [flags]"
	}
	return roff(text)
}

// options writes the arguments and flags of a command.
func options(out *strings.Builder, n *kong.Node) {
	values := append([]*kong.Value{}, n.Positional...)
	for _, f := range n.Flags {
		if !f.Hidden {
			values = append(values, f.Value)
		}
	}
	for _, v := range values {
		fmt.Fprintf(out, ".TP\n.B %s\n%s\n", roff(v.Summary()), roff(kong.DefaultHelpValueFormatter(v)))
	}
}

// roff escapes a text. Lines of it that begin with a control character begin with an empty one instead.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
