package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/internal/history"
	"github.com/agenticnexus/agenticnexus/internal/short"
)

// serverView is a server on the page.
type serverView struct {
	Name string `json:"name"`
	downstream.Status
	Transitions []health.Transition `json:"transitions"`
	Calls       int                 `json:"calls"` // in the history
	Failed      int                 `json:"failed"`
}

// listTime is how long the page waits for lists of tools that it does not need.
const listTime = time.Second

func (c *Console) servers(w http.ResponseWriter, r *http.Request, v Viewer) {
	ctx, cancel := context.WithTimeout(r.Context(), listTime)
	defer cancel()
	_, _ = c.opts.Servers.Catalog(ctx) // so that the numbers of tools are there; servers that are late have none yet
	states := c.opts.Servers.StatusFor(v.Visible)
	calls := map[string]history.Use{}
	for tool, u := range c.used(v) {
		sum := calls[tool.server]
		sum.Calls += u.Calls
		sum.Failed += u.Failed
		calls[tool.server] = sum
	}
	list := []serverView{}
	for _, name := range c.visibleServers(v) {
		u := calls[name]
		list = append(list, serverView{name, states[name], c.opts.Servers.Transitions(name), u.Calls, u.Failed})
	}
	reply(w, map[string]any{"servers": list, "can_switch": v.maySwitch()})
}

// maySwitch reports whether the viewer may disable servers: for everybody, so it must see everything.
func (v Viewer) maySwitch() bool { return v.Visible == nil && v.Known }

func (c *Console) switchServer(w http.ResponseWriter, r *http.Request, v Viewer) {
	var order struct {
		Enabled *bool `json:"enabled"`
	}
	if !read(w, r, &order) {
		return
	}
	name := r.PathValue("name")
	switch {
	case order.Enabled == nil:
		fail(w, http.StatusBadRequest, "enabled must be true or false")
	case !slices.Contains(c.visibleServers(v), name):
		fail(w, http.StatusNotFound, "no server has that name")
	case !v.maySwitch():
		fail(w, http.StatusForbidden, "only a key that may use all servers and tools can switch servers")
	default:
		done := map[string]any{"enabled": *order.Enabled}
		if err := c.opts.Switch(name, *order.Enabled, v.Caller.Name); err != nil {
			done["warning"] = err.Error()
		}
		reply(w, done)
	}
}

// toolID names a tool in the history.
type toolID struct{ server, tool string }

// maxTool bounds what is kept of a tool's name, which servers and clients make up, in bytes.
const maxTool = 300

func idOf(server, tool string) toolID { return toolID{server, short.Text(tool, maxTool)} }

// usage is how often tools were called.
type usage map[toolID]history.Use

func (u usage) add(e *history.Entry) {
	for _, use := range e.Uses {
		sum := u[toolID{use.Server, use.Tool}]
		sum.Calls += use.Calls
		sum.Failed += use.Failed
		sum.Time += use.Time
		u[toolID{use.Server, use.Tool}] = sum
	}
}

// used counts the calls of the tools in the history, as far as the viewer may see them.
func (c *Console) used(v Viewer) usage {
	used := usage{}
	c.opts.Journal.log().Each(func(e *history.Entry) bool {
		if v.sees(e.Caller) {
			used.add(e)
		}
		return true
	})
	return used
}
