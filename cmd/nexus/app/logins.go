package app

import (
	"log/slog"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/oauth"
	"github.com/agenticnexus/agenticnexus/router/edge/sessionid"
	"github.com/agenticnexus/agenticnexus/router/proxy"
)

// SealTokens returns the store with a key for the tokens of callers: NEXUS_TOKEN_KEY, else one of the state folder.
func SealTokens(store oauth.Store, cfg *config.Config) (oauth.Store, error) {
	key := []byte(cfg.TokenKey.Reveal())
	if len(key) == 0 {
		folder, err := cfg.StateFolder()
		if err != nil {
			return store, err
		}
		if key, err = sessionid.DeriveKey(folder, "tokens of callers"); err != nil {
			return store, err
		}
	}
	return store.Sealed(key)
}

// callerTokens is SealTokens, for a router that uses the store without a key if there is none.
func callerTokens(store oauth.Store, cfg *config.Config, log *slog.Logger) oauth.Store {
	sealed, err := SealTokens(store, cfg)
	if err != nil && cfg.PerCaller() {
		log.Warn("logins of callers cannot be kept; set state to a writable folder", "error", err)
	}
	return sealed
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
