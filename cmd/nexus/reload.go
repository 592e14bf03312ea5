package main

import (
	"context"
	"os"
	"time"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/config"
)

// lookInterval is the time between two checks of the configuration files.
const lookInterval = 500 * time.Millisecond

// follower applies changes of the configuration files to an App.
type follower struct {
	app   *app.App
	load  func(used config.Config) (config.Config, error)
	files *config.Watcher
	used  config.Config // the last good configuration

	failed bool // the last reload failed
}

// follow reloads the configuration when its files change and, including key files, at each signal, until ctx ends. If
// the configuration has an error, the last good one stays.
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
		f.used = cfg // with the current text of the files
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
		f.app.Log().Warn("Configuration not reloaded, the last good one stays in use: " + err.Error())
		return
	}
	f.used, f.failed = cfg, false
}
