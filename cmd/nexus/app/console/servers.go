package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/downstream/health"
	"github.com/agenticnexus/agenticnexus/internal/history"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// serverView is a server on the page.
type serverView struct {
	Name    string `json:"name"`
	Private bool   `json:"private,omitempty"` // its results are confidential
	downstream.Status
	Transitions []health.Transition `json:"transitions"`
	Calls       int                 `json:"calls"` // in the history
	Failed      int                 `json:"failed"`
}

// listTime bounds the wait for lists of tools, which the page can do without.
const listTime = time.Second

func (c *Console) servers(w http.ResponseWriter, r *http.Request, v Viewer) {
	ctx, cancel := context.WithTimeout(r.Context(), listTime)
	defer cancel()
	_, _ = c.opts.Servers.Catalog(ctx) // fills in the numbers of tools; slow servers have none yet
	states := c.opts.Servers.StatusFor(v.Visible)
	calls := map[string]history.Use{}
	for tool, u := range c.used(v) {
		sum := calls[tool.server]
		sum.Calls += u.Calls
		sum.Failed += u.Failed
		calls[tool.server] = sum
	}
	list, private := []serverView{}, c.opts.Servers.Private()
	for _, name := range c.visibleServers(v) {
		u := calls[name]
		list = append(list, serverView{
			name, slices.Contains(private, name), states[name], c.opts.Servers.Transitions(name), u.Calls, u.Failed})
	}
	reply(w, map[string]any{"servers": list, "can_switch": v.maySwitch(), "sees_stderr": v.Operator,
		"can_edit": c.opts.Edit.allows(v)})
}

// maySwitch reports whether the viewer may disable servers. This affects everybody, so the viewer must see everything.
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
		err := c.opts.Switch(name, *order.Enabled, v.Caller.Name)
		if errors.Is(err, ErrNotSwitched) {
			fail(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		if err != nil {
			done["warning"] = err.Error()
		}
		reply(w, done)
	}
}

// restart ends a server and starts it again.
func restart(c *Console, w http.ResponseWriter, r *http.Request, v Viewer) {
	var order struct{}
	if !read(w, r, &order) {
		return
	}
	name := r.PathValue("name")
	switch {
	case !slices.Contains(c.visibleServers(v), name):
		fail(w, http.StatusNotFound, "no server has that name")
	case !v.maySwitch():
		fail(w, http.StatusForbidden, "only a key that may use all servers and tools can restart servers")
	default:
		c.opts.Restart(r.Context(), name, v.Caller.Name)
		reply(w, map[string]any{"restarted": true})
	}
}

// stderr returns the end of a server's error output, which may tell what all callers do.
func stderr(c *Console, w http.ResponseWriter, r *http.Request, v Viewer) {
	name := r.PathValue("name")
	switch {
	case !slices.Contains(c.visibleServers(v), name):
		fail(w, http.StatusNotFound, "no server has that name")
	case !v.Operator:
		fail(w, http.StatusForbidden, "only a key with ops: true sees the error output of servers")
	default:
		reply(w, map[string]any{"lines": append([]string{}, downstream.Stderr(c.opts.Servers, name)...)})
	}
}

// ErrNotSwitched is the error of Options.Switch if nothing has changed.
var ErrNotSwitched = errors.New("the server is not switched")

// toolID names a tool in the history.
type toolID struct{ server, tool string }

// maxTool bounds a stored tool name, in bytes. Servers and clients choose these names.
const maxTool = 300

func idOf(server, tool string) toolID { return toolID{server, texts.Cut(tool, maxTool)} }

// usage counts calls by tool.
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

// used counts the tool calls in the history that the viewer may see.
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

// toolView is a tool on the page.
type toolView struct {
	Name        string          `json:"name"` // server__tool
	Server      string          `json:"server"`
	Tool        string          `json:"tool"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description"`
	Reads       bool            `json:"reads"`
	Destructive bool            `json:"destructive"`
	Calls       int             `json:"calls"` // in the history
	Failed      int             `json:"failed"`
	Mean        float64         `json:"mean_ms"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Output      json.RawMessage `json:"output_schema,omitempty"`
}

const (
	maxFound  = 50
	maxListed = 2000
)

// tools lists all tools, or the results of a search, best first.
func (c *Console) tools(w http.ResponseWriter, r *http.Request, v Viewer) {
	used := c.used(v)
	list, total := []toolView{}, 0
	query := r.URL.Query() // the body is not read
	server := query.Get("server")
	add := func(t *downstream.Tool) {
		if server != "" && t.Server != server {
			return
		}
		if total++; len(list) < maxListed {
			list = append(list, viewOf(t, used[idOf(t.Server, t.Tool.Tool)]))
		}
	}
	missing := []string{}
	if q := query.Get("q"); q != "" {
		found, err := c.opts.Router.Search(r.Context(), q, maxFound, v.Visible)
		if err != nil {
			fail(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		for i := range found {
			add(&found[i].Tool)
		}
	} else {
		catalog, err := c.opts.Servers.Catalog(r.Context())
		if err != nil {
			return // the client is gone
		}
		for t := range catalog.See(v.Visible) {
			add(t)
		}
		for _, m := range catalog.Missing {
			if v.Visible == nil || v.Visible(m.Server, "") {
				missing = append(missing, m.String())
			}
		}
	}
	reply(w, map[string]any{"tools": list, "total": total, "missing": missing})
}

// tool describes one tool with its schemas.
func (c *Console) tool(w http.ResponseWriter, r *http.Request, v Viewer) {
	catalog, err := c.opts.Servers.Catalog(r.Context())
	if err != nil {
		return // the client is gone
	}
	query := r.URL.Query()
	server, name := query.Get("server"), query.Get("tool")
	all := catalog.Of(server)
	i := slices.IndexFunc(all, func(t downstream.Tool) bool { return t.Bare() == name })
	if i < 0 || v.Visible != nil && !v.Visible(server, all[i].Tool.Tool) {
		fail(w, http.StatusNotFound, "no tool has that name; its server may be down")
		return
	}
	view := viewOf(&all[i], c.used(v)[idOf(server, all[i].Tool.Tool)])
	view.Schema, view.Output = all[i].InputSchema, all[i].OutputSchema
	reply(w, view)
}

// viewOf describes a tool and its use, without its schemas.
func viewOf(t *downstream.Tool, u history.Use) toolView {
	view := toolView{
		Name: catalog.FullName(t.Server, t.Bare()), Server: t.Server, Tool: t.Bare(), Title: t.Title,
		Description: t.Description,
		Reads:       t.Reads(), Destructive: t.Annotations.Destructive(), Calls: u.Calls, Failed: u.Failed,
	}
	if u.Calls > 0 {
		view.Mean = u.Time / float64(u.Calls)
	}
	return view
}
