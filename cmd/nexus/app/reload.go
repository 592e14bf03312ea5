package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/internal/telemetry"
	"github.com/agenticnexus/agenticnexus/internal/trust"
)

// live lists the settings, or prefixes of settings, that Reload changes. Other settings apply at the next start.
var live = []string{"auth.", "rate_limit.", "log.level", "policy"}

// Reload applies another configuration while requests are served: its servers, API keys, access tokens, rate limit,
// policy and log level. Calls in flight continue, except those whose key or token is no longer valid. A warning names
// the changed settings that need a restart. After an error nothing has changed. Reload is safe for concurrent use.
func (a *App) Reload(cfg config.Config) error {
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
	policy, err := trust.Compile(cfg.Policy)
	if err != nil {
		return err
	}
	a.lifecycle.reloading.Lock() // not before: nothing that waits for a disk may delay the end of servers
	defer a.lifecycle.reloading.Unlock()
	if a.opts.Level != nil {
		a.opts.Level.Set(level)
	}
	a.opts.Mask.Set(cfg.Secrets()) // before any of them is used
	access := a.keys.Replace(keys)
	a.logAccess(access)
	if len(access.Removed)+len(access.Changed) > 0 || access.OAuth {
		downstream.DismissCallers(a.servers) // the router keeps no token of a caller who has gone
	}
	a.rate.Configure(cfg.RateLimit)
	a.proxy.RightsChanged(access.Rights)
	a.servers.SetPolicy(policy)
	a.serverSet.configured = cfg.Servers
	a.serverSet.placed.configure(cfg.Servers)
	if a.opts.Cluster != nil {
		a.opts.Cluster.configure(cfg)
	}
	changes := applyServers(a)
	inForce := cfg
	inForce.Settings = a.inForce.Load().Settings
	inForce.Auth, inForce.RateLimit, inForce.Policy = cfg.Auth, cfg.RateLimit, cfg.Policy
	a.inForce.Store(&inForce)
	a.log.Info("configuration reloaded", "servers", len(a.servers.Servers()),
		"added", changes.Added, "removed", changes.Removed, "changed", changes.Changed)
	warn(&cfg, a.log)
	fixed := slices.DeleteFunc(config.Compare(a.opts.Config.Settings, cfg.Settings), func(path string) bool {
		return slices.ContainsFunc(live, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
	})
	if len(fixed) > 0 {
		a.log.Warn(fmt.Sprintf("configuration: %s cannot change while running; restart to use the new values",
			strings.Join(fixed, ", ")))
	}
	return nil
}

// logAccess logs the keys whose access a reload changed.
func (a *App) logAccess(c auth.Changes) {
	if c.None() {
		return
	}
	a.log.Warn("access changed by a reload", "keys_added", c.Added, "keys_removed", c.Removed, "keys_changed", c.Changed,
		"oauth_changed", c.OAuth, "key_required", a.keys.Required())
}
