package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
)

// lookInterval is the time between two looks at the files of the configuration.
const lookInterval = 500 * time.Millisecond

// follower keeps an App up to date with its configuration files.
type follower struct {
	app   *app.App
	load  func(used config.Config) (config.Config, error)
	files *config.Watcher
	used  config.Config // the last good configuration

	failed bool // the files could not be used when they were last read
}

// follow takes over what changes in the files, and all of it, files of keys included, at each signal, until
// ctx ends. A configuration with an error in it is not used: the last good one stays.
func (f *follower) follow(ctx context.Context, signals <-chan os.Signal) {
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			f.reload(true)
		case <-look.C:
			if f.files.Changed() {
				f.reload(false)
			}
		}
	}
}

func (f *follower) reload(always bool) {
	cfg, err := f.load(f.used)
	if err == nil && !always && cfg.Same(f.used) {
		f.used = cfg // with the files as they are now
		if f.failed {
			f.failed = false
			f.app.Log().Info("The configuration files can be used again; nothing has changed")
		}
		return
	}
	if err == nil {
		err = f.app.Reload(cfg)
	}
	if err != nil {
		f.failed = true
		f.app.Log().Warn("Configuration not reloaded, the last good one stays in use: " + firstProblem(err))
		return
	}
	f.used, f.failed = cfg, false
}

// firstProblem is the first of the things that are wrong, with its file and line.
func firstProblem(err error) string {
	var wrong *config.Error
	if !errors.As(err, &wrong) {
		return err.Error()
	}
	text := wrong.Problems[0].String()
	if len(wrong.Problems) > 1 {
		text += "; nexus config check lists all"
	}
	return text
}
