package console

import (
	"net/http"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/pins"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// maxChanges is the number of changed tools that are compared at a time; approving some shows others.
const maxChanges = 50

// changeView is a changed tool on the page.
type changeView struct {
	Tool       string       `json:"tool"` // hidden characters are written out
	SHA256     string       `json:"sha256"`
	Seen       time.Time    `json:"seen"`
	ApprovedBy string       `json:"approved_by,omitempty"` // empty = it was added
	ApprovedAt *time.Time   `json:"approved_at,omitempty"`
	Fields     []pins.Field `json:"fields"` // what has changed; empty = not kept
}

// changes lists the changed tools of a server that the viewer may see, word by word.
func (c *Console) changes(w http.ResponseWriter, r *http.Request, v Viewer) {
	name := r.PathValue("name")
	if !slices.Contains(c.visibleServers(v), name) {
		fail(w, http.StatusNotFound, "no server has that name")
		return
	}
	list := []changeView{}
	for _, change := range c.opts.Pins.Changes(name) {
		if r.Context().Err() != nil {
			return
		}
		if len(list) == maxChanges || v.Visible != nil && !v.Visible(name, change.Tool) {
			continue
		}
		view := changeView{
			Tool: texts.Reveal(change.Tool), SHA256: change.Latest.SHA256, Seen: change.Latest.At, Fields: change.Fields(),
		}
		if !change.Added() {
			view.ApprovedBy, view.ApprovedAt = change.Approved.By, &change.Approved.At
		}
		list = append(list, view)
	}
	reply(w, map[string]any{"changes": list, "can_approve": v.maySwitch()})
}

// approve approves the definition of a tool that the viewer has seen.
func (c *Console) approve(w http.ResponseWriter, r *http.Request, v Viewer) {
	var order struct {
		SHA256 string `json:"sha256"`
	}
	if !read(w, r, &order) {
		return
	}
	name := r.PathValue("name")
	switch {
	case order.SHA256 == "":
		fail(w, http.StatusBadRequest, "sha256 must name the definition to approve")
	case !slices.Contains(c.visibleServers(v), name):
		fail(w, http.StatusNotFound, "no server has that name")
	case !v.maySwitch():
		fail(w, http.StatusForbidden, "only a key that may use all servers and tools can approve tools")
	case c.opts.Pins == nil:
		fail(w, http.StatusNotFound, "tools.pin is off: there is nothing to approve")
	default:
		approved, err := c.opts.Pins.Approve(name, pins.Selection{SHA256: order.SHA256}, v.Caller.Name)
		switch {
		case len(approved) > 0:
		case err != nil:
			fail(w, http.StatusServiceUnavailable, "the tool is not approved: "+err.Error())
			return
		default:
			fail(w, http.StatusConflict, "the tool has changed again; look at the change anew")
			return
		}
		done := map[string]any{"approved": len(approved)}
		if err != nil {
			done["warning"] = "this lasts only until the process ends: " + err.Error()
		}
		reply(w, done)
	}
}
