package app

import (
	"fmt"
	"net/http"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	"github.com/agenticnexus/agenticnexus/router/edge"
)

// scopesOf returns the scope of each profile.
func scopesOf(profiles map[string]config.Profile) (map[string]*auth.Scope, error) {
	scopes := make(map[string]*auth.Scope, len(profiles))
	for name, p := range profiles {
		scope, err := auth.NewScope(name, p.Servers, p.Tools)
		if err != nil {
			return nil, fmt.Errorf("profiles.%s: %w", name, err)
		}
		scopes[name] = scope
	}
	return scopes, nil
}

// mountProfiles serves each configured profile at /profiles/NAME/mcp. A caller may use there what both the profile and
// its key allow.
func mountProfiles(mux *http.ServeMux, a *App) {
	for name, scope := range a.scopes {
		var handler edge.Handler = a.tools
		if a.opts.Config.Profiles[name].Surface == config.SurfaceProxy {
			handler = a.proxy.All()
		}
		mux.Handle("/profiles/"+name+"/mcp", a.edge.Streamable(handler, scope))
	}
}
