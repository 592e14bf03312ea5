package main

import (
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/redact"
)

type serverCmd struct {
	Add     serverAddCmd     `cmd:"" help:"Try a server, and add it to servers.yaml."`
	Remove  serverRemoveCmd  `cmd:"" help:"Take a server out of servers.yaml."`
	Enable  serverEnableCmd  `cmd:"" help:"Use a disabled server again."`
	Disable serverDisableCmd `cmd:"" help:"Keep a server in servers.yaml, but do not use it."`
	List    serverListCmd    `cmd:"" help:"Show the servers of the configuration."`
	Search  serverSearchCmd  `cmd:"" help:"Search a registry for servers to add."`
	Doctor  serverDoctorCmd  `cmd:"" help:"Run one server in the foreground, show every message, and say what is wrong."`
}

// serverEdit has the arguments of commands that change one server of servers.yaml.
type serverEdit struct {
	Name string `arg:"" help:"The server." completes:"server"`
	configFlag
	editFlags
}

// into returns the file or folder to change.
func (c *serverEdit) into() (string, error) {
	switch len(c.Config) {
	case 0:
		return config.DefaultFolder, nil
	case 1:
		return c.Config[0], nil
	}
	return "", &exitError{exitUsage, "a server is in one configuration; give --config once"}
}

// run makes a change, and prints what is done or, if there is nothing to do, is.
func (c *serverEdit) run(w *world, plan func(into string) ([]step, error), done, is string) error {
	into, err := c.into()
	if err != nil {
		return err
	}
	e := edit{editFlags: c.editFlags, plan: func() ([]step, error) { return plan(into) }}
	switch changed, err := e.run(w); {
	case err != nil:
		return err
	case changed:
		fmt.Fprintf(w.stdout, "%s is %s; %s\n", c.Name, done, takesOver)
	case !c.DryRun:
		fmt.Fprintf(w.stdout, "%s is %s\n", c.Name, is)
	}
	return nil
}

const takesOver = "a running router takes this over by itself"

type serverRemoveCmd struct{ serverEdit }

// Run removes a server, with the credentials that add has put into secrets.env for it.
func (c *serverRemoveCmd) Run(w *world) error {
	return c.run(w, func(into string) ([]step, error) {
		r, err := config.Remove(into, c.Name)
		if err != nil {
			return nil, err
		}
		for _, warning := range r.Warnings {
			fmt.Fprintln(w.stderr, "nexus: after this, "+warning)
		}
		secrets, err := r.Secrets()
		if err != nil || secrets == nil {
			return []step{{Change: r.File}}, err
		}
		return []step{{Change: r.File}, {Change: secrets, values: true, again: r.Secrets}}, nil
	}, "removed", "")
}

type serverEnableCmd struct{ serverEdit }

func (c *serverEnableCmd) Run(w *world) error { return c.disable(w, false, "enabled") }

type serverDisableCmd struct{ serverEdit }

func (c *serverDisableCmd) Run(w *world) error { return c.disable(w, true, "disabled") }

func (c *serverEdit) disable(w *world, disabled bool, done string) error {
	return c.run(w, func(into string) ([]step, error) {
		file, err := config.Disable(into, c.Name, disabled)
		if err != nil || file == nil {
			return nil, err
		}
		return []step{{Change: file}}, nil
	}, done, "already "+done)
}

type serverListCmd struct {
	configFlag
	JSON bool `name:"json" help:"Print JSON."`
}

// configured is what nexus server list tells about a server.
type configured struct {
	Name      string `json:"name"`
	Transport string `json:"transport"`
	Enabled   bool   `json:"enabled"`
	Command   string `json:"command,omitempty"` // with its arguments
	Host      string `json:"host,omitempty"`
	Problem   string `json:"problem,omitempty"`
}

// Run shows the servers without connecting to them.
func (c *serverListCmd) Run(w *world) error {
	cfg, err := config.Load(c.Config, config.Options{})
	if err != nil {
		return err
	}
	mask := redact.NewMasker(cfg.Secrets())
	all := []configured{}
	for _, s := range cfg.Servers {
		all = append(all, describe(s, mask))
	}
	if c.JSON {
		return printJSON(w, all)
	}
	if len(all) == 0 {
		fmt.Fprintln(w.stderr, "nexus: no server is configured; add one with nexus server add, or find one with nexus server search")
	}
	table := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	for _, s := range all {
		state := "enabled"
		if !s.Enabled {
			state = "disabled"
		}
		what := s.Command + s.Host
		if s.Problem != "" {
			what += " (" + s.Problem + ")"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Name, s.Transport, state, what)
	}
	return table.Flush()
}

// maxShown is how much is shown of a text of the configuration, of a server or of a registry, in characters.
const maxShown = 300

func describe(s downstream.ServerConfig, mask *redact.Masker) configured {
	d := configured{Name: s.Name, Transport: s.Type, Enabled: !s.Disabled, Problem: firstLine(s.Unusable, maxShown)}
	if u, err := url.Parse(s.URL); s.URL != "" && err == nil {
		d.Host = firstLine(mask.Text(u.Host), maxShown)
	}
	if s.Command != "" {
		line := strings.Join(append([]string{s.Command}, s.Args...), " ")
		d.Command = firstLine(mask.Text(line), maxShown)
	}
	return d
}
