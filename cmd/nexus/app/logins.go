package app

import (
	"log/slog"

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

// Tokens returns the tokens that the replicas of a cluster share or, if that is nil, those in the state folder. Those
// of callers are sealed with NEXUS_TOKEN_KEY, else with a key of the cluster or of the folder. After an error the store
// keeps none of callers.
func Tokens(c *Cluster, cfg *config.Config) (oauth.Store, error) {
	folder, err := cfg.StateFolder()
	store, key := oauth.NewStore(folder), []byte(cfg.TokenKey.Reveal())
	if c != nil {
		store = oauth.SharedStore(c.common)
	}
	switch {
	case len(key) > 0:
	case c != nil:
		_, key = c.ring.First(sealingTokens)
	case err != nil:
		return store, err
	default:
		if key, err = sessionid.DeriveKey(folder, sealingTokens); err != nil {
			return store, err
		}
	}
	return store.Sealed(key)
}

// openTokens is Tokens, for a router that uses the store without a key if there is none.
func openTokens(c *Cluster, cfg *config.Config, log *slog.Logger) oauth.Store {
	store, err := Tokens(c, cfg)
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
