package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/limit"
)

const (
	containerShare = 0.9 // of a container's memory; the rest is for memory that the Go runtime does not count
	heapGrowth     = 200 // percent between two collections; at the usual 100 they are a fifth of the cost of a call
)

// tuneMemory sets the memory limit and the frequency of garbage collections, unless GOMEMLIMIT and GOGC do.
func tuneMemory() {
	most := limit.ContainerLimit(os.DirFS("/"))
	if os.Getenv("GOMEMLIMIT") == "" && most > 0 {
		debug.SetMemoryLimit(int64(containerShare * float64(most)))
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
}

type serveCmd struct {
	source
	Listen string `help:"Address to listen on (default 127.0.0.1:8002)." placeholder:"HOST:PORT"`
}

// load and reload read the configuration. The --listen flag overrides it.
func (c *serveCmd) load() (config.Config, error) { return c.flagged(c.source.load()) }

func (c *serveCmd) reload(used config.Config) (config.Config, error) {
	return c.flagged(c.source.reload(used))
}

func (c *serveCmd) flagged(cfg config.Config, err error) (config.Config, error) {
	if c.Listen != "" {
		cfg.Listen = c.Listen
	}
	return cfg, err
}

// Run serves until the first signal.
func (c *serveCmd) Run(w *world) error {
	tuneMemory()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // before anything else: an unhandled SIGHUP ends the process
	defer signal.Stop(hangup)
	files := config.Watch(c.Config, c.options()) // before load, so that no change is missed
	cfg, err := c.load()
	if err != nil {
		return err
	}
	c.joins = true
	a, err := c.app(w.ctx, cfg, nil, w.stderr)
	if err != nil {
		return err
	}
	if err := a.Listen(w.ctx); err != nil {
		_ = stop(a, cfg.Shutdown.Grace) // no calls can be cut off yet
		return err
	}
	if hint := c.idle(cfg); hint != "" {
		a.Log().Warn(hint)
	}
	c.mentionIgnored(a.Log())
	if w.terminal {
		base := "http://" + a.Addr()
		fmt.Fprintf(w.stderr, "Page: %[1]s/ui/\nMCP:  %[1]s/mcp (questions), %[1]s/proxy/mcp (all tools)\nStop with Ctrl+C.\n", base)
	}
	notify(a.Log(), "READY=1")
	(&follower{app: a, load: c.reload, files: files, used: cfg}).follow(w.ctx, hangup)
	a.Log().Info("Shutdown signal received")
	notify(a.Log(), "STOPPING=1")
	return stop(a, cfg.Shutdown.Grace)
}

type stdioCmd struct {
	source
	Profile string `help:"What to serve: router, proxy or server:NAME." default:"router"`
}

// reload reads the configuration again as Run does.
func (c *stdioCmd) reload(used config.Config) (config.Config, error) {
	cfg, err := c.source.reload(used)
	besideCluster(&cfg)
	return cfg, err
}

func (c *stdioCmd) Run(w *world) error {
	files := config.Watch(c.Config, c.options())
	cfg, err := c.load()
	if err != nil {
		return err
	}
	hint := besideCluster(&cfg)
	a, err := c.app(w.ctx, cfg, nil, w.stderr)
	if err != nil {
		return err
	}
	if err := a.CheckProfile(c.Profile); err != nil {
		return &exitError{exitUsage, err.Error()}
	}
	if hint != "" {
		a.Log().Warn(hint)
	}
	c.mentionIgnored(a.Log())
	// A signal must not end the context of the calls in flight: they have the grace period to finish.
	served := make(chan error, 1)
	go func() { served <- a.ServeStdio(context.WithoutCancel(w.ctx), c.Profile, w.stdin, w.stdout) }()
	following, end := context.WithCancel(w.ctx)
	var follow sync.WaitGroup
	defer follow.Wait()
	defer end()
	follow.Go(func() { (&follower{app: a, load: c.reload, files: files, used: cfg}).follow(following, nil) })
	select {
	case err = <-served:
		return errors.Join(err, stop(a, cfg.Shutdown.Grace))
	case <-w.ctx.Done():
		a.Log().Info("Shutdown signal received")
		err = stop(a, cfg.Shutdown.Grace)
		<-served //nolint:errcheck // it ends because it is stopped
		return err
	}
}
