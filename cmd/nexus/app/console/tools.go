package console

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/history"
)

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
	i := slices.IndexFunc(all, func(t downstream.Tool) bool { return t.Tool.Tool == name })
	if i < 0 || v.Visible != nil && !v.Visible(server, name) {
		fail(w, http.StatusNotFound, "no tool has that name; its server may be down")
		return
	}
	view := viewOf(&all[i], c.used(v)[idOf(server, name)])
	view.Schema, view.Output = all[i].InputSchema, all[i].OutputSchema
	reply(w, view)
}

// viewOf describes a tool and its use, without its schemas.
func viewOf(t *downstream.Tool, u history.Use) toolView {
	view := toolView{
		Name: t.Full(), Server: t.Server, Tool: t.Tool.Tool, Title: t.Title, Description: t.Description,
		Reads: t.Reads(), Destructive: t.Annotations.Destructive(), Calls: u.Calls, Failed: u.Failed,
	}
	if u.Calls > 0 {
		view.Mean = u.Time / float64(u.Calls)
	}
	return view
}
