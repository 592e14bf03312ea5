package app

import (
	"log/slog"
	"slices"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/internal/safe"
	"github.com/agenticnexus/agenticnexus/internal/shared"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
	"github.com/agenticnexus/agenticnexus/router/proxy"
)

// sealingTokens is what the key of the tokens of callers is derived for.
const sealingTokens = "tokens of callers"

// Tokens returns the tokens that the replicas of a cluster share or, if that is nil, those in the state folder. The
// store keeps those of callers if it has some of a configured server, so that a command makes no key, and the error is
// nil.
func Tokens(c *Cluster, cfg *config.Config) (oauth.Store, error) {
	store := storeOf(c, cfg)
	if !slices.ContainsFunc(cfg.Servers, func(s downstream.ServerConfig) bool { return len(store.Callers(s.Name)) > 0 }) {
		return store, nil
	}
	return sealed(store, c, cfg)
}

func storeOf(c *Cluster, cfg *config.Config) oauth.Store {
	if c != nil {
		return oauth.SharedStore(c.common)
	}
	folder, _ := cfg.StateFolder() // empty after an error
	return oauth.NewStore(folder)
}

// sealed returns a store with the key of the tokens of callers: NEXUS_TOKEN_KEY, else one of the cluster or of the
// state folder.
func sealed(store oauth.Store, c *Cluster, cfg *config.Config) (oauth.Store, error) {
	key := []byte(cfg.TokenKey.Reveal())
	switch {
	case len(key) > 0:
	case c != nil:
		_, key = c.ring.First(sealingTokens)
	default:
		folder, err := cfg.StateFolder()
		if err == nil {
			key, err = sessionid.DeriveKey(folder, sealingTokens)
		}
		if err != nil {
			return store, err
		}
	}
	return store.Sealed(key)
}

// openTokens returns the tokens of a router, which takes some of callers if there is a key to seal them with.
func openTokens(c *Cluster, cfg *config.Config, log *slog.Logger) oauth.Store {
	store, err := sealed(storeOf(c, cfg), c, cfg)
	if err != nil && cfg.PerCaller() {
		log.Warn("logins of callers cannot be kept; set state to a writable folder", "error", err)
	}
	return store
}

// announcing are the servers that callers log in to. The clients of a caller who has logged in hear that lists have
// changed.
type announcing struct{ *App }

func (a announcing) LoginAt(name, caller string) (oauth.Server, bool) {
	return downstream.LoginAt(a.servers, name, caller)
}

func (a announcing) LoginEnded(name, caller string, why error) {
	downstream.LoginEnded(a.servers, name, caller, why)
	if why == nil {
		proxy.LoggedIn(a.proxy, caller)
	}
}

// followLogins lets callers log in and out elsewhere: at other replicas, or by a command.
func followLogins(a *App, m *shared.Mirror) {
	m.Follow(func(before, now shared.Entry) {
		defer safe.Recover(a.log, "following the logins of callers", nil)
		if server, caller, changed := a.tokens.NewLogin(before, now); changed {
			announcing{a}.LoginEnded(server, caller, nil)
		}
	})
}
