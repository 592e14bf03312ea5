package main

import (
	"fmt"
	"log/slog"
	"os/user"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

type toolsApproveCmd struct {
	configFlag
	Server string `arg:"" help:"Name of the server." completes:"server"`
	Tool   string `arg:"" optional:"" help:"Own name of the tool (default: all changed tools of the server)."`
}

// writeWait is how long a change that a running router has just seen may take to be in the file.
const writeWait = time.Second

func (c *toolsApproveCmd) Run(w *world) error {
	store, leave, err := c.open(w)
	if err != nil {
		return err
	}
	defer leave()
	defer store.Close()
	by := "command line"
	if u, err := user.Current(); err == nil {
		by = u.Username
	}
	approved, err := store.Approve(c.Server, pins.Selection{Tool: c.Tool}, by)
	for began := time.Now(); err == nil && len(approved) == 0 && time.Since(began) < writeWait; {
		select {
		case <-w.ctx.Done():
			return w.ctx.Err()
		case <-time.After(lookAgain):
		}
		approved, err = store.Approve(c.Server, pins.Selection{Tool: c.Tool}, by)
	}
	switch {
	case err != nil:
		return fmt.Errorf("cannot approve: %w", err)
	case len(approved) > 0:
		return printApproved(w, c.Server, approved)
	case !store.Known(c.Server):
		return fmt.Errorf("no tools of server %s were seen yet; run: nexus tools", c.Server)
	case c.Tool != "" && store.Refusal(c.Server, c.Tool, "") != "":
		return fmt.Errorf("no tool %s of server %s was seen yet; run: nexus tools", c.Tool, c.Server)
	}
	_, err = fmt.Fprintf(w.stdout, "nothing to approve: the tools of %s are as they were approved\n", c.Server)
	return err
}

// open opens the pins of the configuration. leave ends what they need, after they are closed.
func (c *toolsApproveCmd) open(w *world) (store *pins.Store, leave func(), err error) {
	cfg, err := config.Load(c.Config, config.Options{})
	if err != nil {
		return nil, nil, err
	}
	switch {
	case !slices.ContainsFunc(cfg.Servers, func(s downstream.ServerConfig) bool { return s.Name == c.Server }):
		return nil, nil, &exitError{exitUsage, "the configuration has no server " + c.Server}
	case cfg.Tools.Pin == pins.Off:
		return nil, nil, &exitError{exitUsage, "tools.pin is off: there is nothing to approve"}
	}
	folder, err := cfg.StateFolder()
	if err != nil {
		return nil, nil, err
	}
	o := pins.Options{Folder: folder, Mode: pins.Enforce, Logger: slog.New(slog.DiscardHandler)}
	leave = func() {}
	if cfg.Cluster.Enabled() {
		joined, err := app.Join(w.ctx, cfg.Cluster, o.Logger)
		if err != nil {
			return nil, nil, err
		}
		o.Shared, leave = joined.Pins(), joined.Close
	}
	store = pins.Open(o)
	if damage := store.Damage(); damage != "" {
		fmt.Fprintln(w.stderr, "nexus: "+damage)
	}
	return store, leave, nil
}

// printApproved prints what was approved, word by word.
func printApproved(w *world, server string, approved []pins.Change) error {
	for _, c := range approved {
		name := texts.Line(texts.Reveal(c.Tool), 200)
		if c.Added() {
			fmt.Fprintf(w.stdout, "%s: %s is new\n", server, name)
		} else {
			fmt.Fprintf(w.stdout, "%s: %s has changed since it was approved by %s on %s\n", server, name,
				texts.Line(c.Approved.By, 100), c.Approved.At.Format(time.DateOnly))
		}
		fields := c.Fields()
		if len(fields) == 0 {
			fmt.Fprintf(w.stdout, "  not kept: SHA-256 %s, before %s\n", c.Latest.SHA256, c.Approved.SHA256)
		}
		for _, f := range fields {
			fmt.Fprintln(w.stdout, "  "+f.String())
		}
	}
	_, err := fmt.Fprintf(w.stdout, "approved: %d of %s; a running router follows within 2 s\n", len(approved), server)
	return err
}
