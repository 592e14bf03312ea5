package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/cmd/nexus/tape"
	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/server"
	"github.com/agenticnexus/agenticnexus/internal/demo"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/telemetry"
)

// configFlag names the configuration.
type configFlag struct {
	Config []string `help:"Configuration file or folder; may be repeated (default: config/ if it exists)." placeholder:"PATH" sep:"none"`
}

// source has the flags of commands that talk to servers.
type source struct {
	configFlag
	Demo bool `help:"Use the built-in demo servers; needs no configuration, network or key."`

	calls bool // the command calls tools, which the audit log has to record
	names bool // the command itself names servers that are disabled by a mistake
	joins bool // the command is a replica if the configuration has a cluster
}

// load reads the configuration.
func (s *source) load() (config.Config, error) {
	return config.Load(s.Config, s.options())
}

// reload reads the configuration again to replace used.
func (s *source) reload(used config.Config) (config.Config, error) {
	return config.Reload(s.Config, s.options(), used)
}

// options returns the options for loading: --demo ignores the default folder.
func (s *source) options() config.Options {
	o := config.Options{NoFile: s.Demo}
	if s.Demo {
		for _, server := range demo.Servers() {
			o.Others = append(o.Others, server.Name)
		}
	}
	return o
}

// mentionIgnored logs that --demo ignores the files of the default folder, if it does.
func (s *source) mentionIgnored(log *slog.Logger) {
	if s.Demo && len(s.Config) == 0 && config.Implied() {
		log.Warn("--demo ignores the folder " + config.DefaultFolder + "; add --config " + config.DefaultFolder +
			" to use it, too")
	}
}

// folder returns the folder of the configuration if that is one folder.
func (s *source) folder() string {
	switch {
	case len(s.Config) == 0 && !s.Demo:
		return config.DefaultFolder
	case len(s.Config) == 1:
		if info, err := os.Stat(s.Config[0]); err == nil && info.IsDir() {
			return s.Config[0]
		}
	}
	return ""
}

// open makes an App for a command that runs once. It prints configuration warnings. The App's log is discarded unless
// the configuration sets a level.
func (s *source) open(w *world) (*app.App, func(), error) { return s.openTaped(w, nil) }

// openTaped is open with a Tape that records or replays. Stop the App before closing the Tape.
func (s *source) openTaped(w *world, t *tape.Tape) (*app.App, func(), error) {
	cfg, err := s.load()
	if err != nil {
		return nil, nil, err
	}
	hint := ""
	if !t.Replays() {
		hint = besideCluster(&cfg)
	}
	if hint == "" {
		hint = s.idle(cfg)
	}
	if hint != "" {
		fmt.Fprintln(w.stderr, "nexus: "+hint)
	}
	logs := w.stderr
	if cfg.Log.Level == telemetry.DefaultLog().Level {
		logs = io.Discard
		for _, warning := range cfg.Warnings {
			fmt.Fprintln(w.stderr, "nexus: configuration: "+firstLine(warning, 300))
		}
		for _, server := range cfg.Servers {
			if server.Unusable != "" && !s.names {
				fmt.Fprintf(w.stderr, "nexus: server %s is disabled: %s\n", server.Name, server.Unusable)
			}
		}
	}
	a, err := s.app(w.ctx, cfg, t, logs)
	if err != nil {
		return nil, nil, err
	}
	if damage := app.PinsDamage(a); damage != "" && logs == io.Discard {
		fmt.Fprintln(w.stderr, "nexus: "+damage)
	}
	if s.calls {
		err = app.OpenAudit(a)
	}
	if err == nil {
		err = a.Connect(w.ctx)
	}
	if err != nil {
		_ = stop(a, cfg.Shutdown.Grace) // leave no child process behind
		return nil, nil, err
	}
	return a, func() { _ = stop(a, cfg.Shutdown.Grace) }, nil
}

// besideCluster disables the servers that run once in the cluster, for a router that is no replica. It returns a line
// that says so; empty without a cluster.
func besideCluster(cfg *config.Config) string {
	if !cfg.Cluster.Enabled() {
		return ""
	}
	cfg.Servers = slices.Clone(cfg.Servers)
	left := ""
	for i := range cfg.Servers {
		if s := &cfg.Servers[i]; runsOnce(cfg, s) && !s.Disabled {
			s.Disabled = true
			left += ", " + s.Name
		}
	}
	if left != "" {
		left = " and leaves out what runs once (" + left[2:] + ")"
	}
	return fmt.Sprintf("this is no replica of cluster %s: it uses a state folder of its own%s; --remote URL, "+
		"and clients with the URL of a replica, use the cluster", cfg.Cluster.Name, left)
}

// runsOnce reports whether a server runs at one replica of a cluster alone.
func runsOnce(cfg *config.Config, s *downstream.ServerConfig) bool {
	return cfg.Cluster.Enabled() && s.Placement == server.PlacementOne
}

// idle says what to do if every server is disabled; otherwise it is empty.
func (s *source) idle(cfg config.Config) string {
	if s.Demo || slices.ContainsFunc(cfg.Servers, func(c downstream.ServerConfig) bool { return !c.Disabled }) {
		return ""
	}
	if len(cfg.Files) > 0 {
		return "no server is in use: name or enable one in " + strings.Join(cfg.Files, " or ") + ", or try --demo"
	}
	return "no server is in use: name some in config/servers.yaml (nexus config init writes examples), or try --demo"
}

func (s *source) app(ctx context.Context, cfg config.Config, t *tape.Tape, logs io.Writer) (*app.App, error) {
	mask := redact.NewMasker(cfg.Secrets())
	logger, level, err := telemetry.NewLogger(cfg.Log, logs, mask)
	if err != nil {
		return nil, &exitError{exitUsage, err.Error()}
	}
	opts := app.Options{
		Config: cfg, Demo: s.Demo, Version: version, Logger: logger, Level: level, Mask: mask, Tape: t, Folder: s.folder(),
	}
	if s.joins && cfg.Cluster.Enabled() {
		if opts.Cluster, err = app.Join(ctx, cfg.Cluster, logger); err != nil {
			return nil, err
		}
		if err = opts.Cluster.TakeOver(ctx, cfg); err != nil {
			opts.Cluster.Close()
			return nil, err
		}
	}
	a, err := app.New(ctx, opts)
	if err != nil {
		if opts.Cluster != nil {
			opts.Cluster.Close()
		}
		return nil, &exitError{exitUsage, err.Error()}
	}
	return a, nil
}

// stop stops an App within the grace period, even if the command's context has ended. The error means that calls of
// clients were cut off.
func stop(a *app.App, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := a.Stop(ctx); errors.Is(err, app.ErrForced) {
		return &exitError{exitPartly, app.ErrForced.Error()}
	}
	return nil // the App has logged other failures
}
