package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/telemetry"
)

// live are the settings that Reload changes, or what they begin with. The others count at the next start.
var live = []string{"auth.", "rate_limit.", "log.level"}

// Reload takes over another configuration while requests are served: its servers, API keys, access tokens, rate limit
// and log level. Calls in flight are not disturbed, but for those with a key or token that counts no more. What cannot
// change while the App runs is named in a warning. On an error nothing has changed. Reload may be called from any
// goroutine.
func (a *App) Reload(cfg config.Config) error {
	a.lifecycle.reloading.Lock()
	defer a.lifecycle.reloading.Unlock()
	keys, err := auth.New(cfg.Auth, auth.Options{Logger: a.log})
	if err != nil {
		return err
	}
	if a.web.server != nil {
		if err := config.CheckBind(a.opts.Config.Listen, cfg.Auth); err != nil {
			return err
		}
	}
	level, err := telemetry.ParseLevel(cfg.Log.Level)
	if err != nil {
		return err
	}
	if a.opts.Level != nil {
		a.opts.Level.Set(level)
	}
	access := a.keys.Replace(keys)
	a.logAccess(access)
	a.rate.Configure(cfg.RateLimit)
	a.proxy.RightsChanged(access.Rights)
	a.serverSet.configured = cfg.Servers
	changes := a.servers.Apply(a.serverSet.servers())
	if !changes.None() {
		a.proxy.ServersChanged(changes)
	}
	a.log.Info("configuration reloaded", "servers", len(a.servers.Servers()),
		"added", changes.Added, "removed", changes.Removed, "changed", changes.Changed)
	for _, warning := range cfg.Warnings {
		a.log.Warn("configuration: " + warning)
	}
	fixed := slices.DeleteFunc(config.Compare(a.opts.Config.Settings, cfg.Settings), func(path string) bool {
		return slices.ContainsFunc(live, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
	})
	if len(fixed) > 0 {
		a.log.Warn(fmt.Sprintf("configuration: %s cannot change while running; restart to use the new values",
			strings.Join(fixed, ", ")))
	}
	return nil
}

// logAccess says whose access a reload changed.
func (a *App) logAccess(c auth.Changes) {
	if c.None() {
		return
	}
	a.log.Warn("access changed by a reload", "keys_added", c.Added, "keys_removed", c.Removed, "keys_changed", c.Changed,
		"oauth_changed", c.OAuth, "key_required", a.keys.Required())
}
