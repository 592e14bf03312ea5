package console

import (
	"net/http"

	"github.com/agenticnexus/agenticnexus/router"
)

// drain lets a replica hand its sessions over. This affects all callers.
func (o *Options) drain(w http.ResponseWriter, r *http.Request, v Viewer) {
	var order struct{}
	if !read(w, r, &order) {
		return
	}
	switch {
	case o.Drain == nil:
		fail(w, http.StatusNotFound, "the router runs alone")
	case !v.Operator:
		fail(w, http.StatusForbidden, "only a key with ops: true can drain replicas")
	default:
		if err := o.Drain(r.Context(), r.PathValue("name"), v.Caller.Name); err != nil {
			fail(w, http.StatusConflict, err.Error())
			return
		}
		reply(w, map[string]any{"draining": true})
	}
}

// replicas adds what is wrong with the cluster.
func (n *nowView) replicas(c *router.Cluster) {
	if c == nil {
		return
	}
	if c.NATS != router.NATSConnected {
		n.add(bad, "NATS", "disconnected; sessions of other replicas have to wait", "#/", nil)
	}
	for _, r := range c.Replicas {
		if r.Version != n.Version {
			n.add(warn, r.Name, "has the version "+r.Version, "#/", nil)
		}
		if r.Draining {
			n.add(warn, r.Name, "hands its sessions over and takes no new ones", "#/", nil)
		}
	}
}
