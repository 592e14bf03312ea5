package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/internal/auth"
	edits "github.com/agenticnexus/agenticnexus/internal/change"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// Edit is the configuration that operators may change on the page. The router reads it again when it changes.
type Edit struct {
	Folder string // empty = none
	Log    *slog.Logger
}

// fixed tells why the configuration cannot be changed; empty if it can.
func (e Edit) fixed() string {
	if e.Folder == "" {
		return "the configuration is not one folder of this router alone; change it where it comes from"
	}
	return ""
}

// refused answers a request for a change that the viewer must not make.
func (e Edit) refused(w http.ResponseWriter, v Viewer) bool {
	switch {
	case !v.mayEdit():
		fail(w, http.StatusForbidden, "only a key with edit: true and without limits can change the configuration here; "+
			"nexus keys new and nexus server add help on its machine")
	case e.fixed() != "":
		fail(w, http.StatusConflict, e.fixed())
	default:
		return false
	}
	return true
}

// mayEdit reports whether the viewer may change the configuration, and so run programs as the router.
func (v Viewer) mayEdit() bool { return v.Caller.Edits() && v.maySwitch() }

// allows reports whether the viewer can change the configuration.
func (e Edit) allows(v Viewer) bool { return v.mayEdit() && e.fixed() == "" }

// apply makes changes of files, and answers if it cannot. Once a file is changed, it goes on without the client.
func (e Edit) apply(ctx context.Context, w http.ResponseWriter, v Viewer, what string, files ...*edits.Change) bool {
	var err error
	for _, f := range files {
		err = cmp.Or(err, f.Writable())
	}
	for i, f := range files {
		if err != nil {
			break
		}
		if err = f.Apply(ctx, ""); err == nil {
			e.Log.Warn("configuration changed on the page", "what", what, "file", f.File, "by", v.Caller.Name)
			ctx = context.WithoutCancel(ctx)
		} else if i > 0 {
			err = fmt.Errorf("%s is changed, but not %s: %w", files[i-1].File, f.File, err)
		}
	}
	if err == nil {
		return true
	}
	status := http.StatusServiceUnavailable
	if errors.Is(err, edits.ErrMeanwhile) {
		status = http.StatusConflict
	}
	fail(w, status, err.Error())
	return false
}

const (
	reloadTime = 5 * time.Second // for changed files to be in force
	lookAgain  = 100 * time.Millisecond
)

// await waits until the router has taken over the files as they are now. The warning tells why they are not in force;
// empty if they are.
func await(ctx context.Context, c *Console) (warning string) {
	ctx, cancel := context.WithTimeout(ctx, reloadTime)
	defer cancel()
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for {
		now := c.opts.InForce()
		want, err := config.Reload([]string{c.opts.Edit.Folder}, config.Options{}, now)
		switch {
		case err != nil:
			return "The change is written, but not in force: " + err.Error()
		case reflect.DeepEqual(now.Auth, want.Auth) && reflect.DeepEqual(now.Policy, want.Policy) &&
			reflect.DeepEqual(now.Servers, want.Servers):
			return ""
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return "The change is written, but not yet in force."
		}
	}
}

// keyNames matches the names of keys that the page makes.
var keyNames = pattern.New(`^[A-Za-z0-9][A-Za-z0-9 ._@-]{0,63}$`)

// createKey adds an API key to the settings, and shows it once.
func createKey(c *Console, w http.ResponseWriter, r *http.Request, v Viewer) {
	var order struct {
		Name    string   `json:"name"`
		Servers []string `json:"servers"` // empty = all
		Ops     bool     `json:"ops"`
	}
	if !read(w, r, &order) || c.opts.Edit.refused(w, v) {
		return
	}
	keys, known := c.opts.InForce().Auth.APIKeys, c.opts.Servers.Servers()
	switch {
	case !keyNames().MatchString(order.Name):
		fail(w, http.StatusBadRequest, "the name of a key has 1 to 64 letters, digits and . _ @ - inside")
	case slices.ContainsFunc(keys, func(k auth.KeyConfig) bool { return k.Name == order.Name }):
		fail(w, http.StatusConflict, "another key has that name")
	case slices.ContainsFunc(order.Servers, func(name string) bool { return !slices.Contains(known, name) }):
		fail(w, http.StatusBadRequest, "a server of the key does not exist")
	default:
		key, hash := auth.NewKey()
		file, err := config.AddKey(c.opts.Edit.Folder, auth.KeyConfig{
			Name: order.Name, SHA256: hash, Servers: order.Servers, Ops: order.Ops})
		if err != nil {
			fail(w, http.StatusConflict, err.Error())
			return
		}
		if c.opts.Edit.apply(r.Context(), w, v, "key "+order.Name+" added", file) {
			warning := await(r.Context(), c)
			reply(w, map[string]any{"key": key, "warning": warning})
		}
	}
}

// revokeKey removes an API key from the settings.
func revokeKey(c *Console, w http.ResponseWriter, r *http.Request, v Viewer) {
	var order struct{}
	if !read(w, r, &order) || c.opts.Edit.refused(w, v) {
		return
	}
	name := r.PathValue("name")
	file, err := config.RemoveKey(c.opts.Edit.Folder, name)
	if err != nil {
		fail(w, http.StatusConflict, err.Error())
		return
	}
	if c.opts.Edit.apply(r.Context(), w, v, "key "+name+" removed", file) {
		warning := await(r.Context(), c)
		reply(w, map[string]any{"revoked": warning == "", "warning": warning})
	}
}
