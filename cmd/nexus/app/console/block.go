package console

import (
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	edits "github.com/agenticnexus/agenticnexus/internal/change"
)

// openBlock reads the part of the configuration that a request names: servers/NAME, profiles or policy.
func (e Edit) openBlock(w http.ResponseWriter, r *http.Request) (b *config.Block) {
	var err error
	switch name, server := blockOf(r); name {
	case "servers/" + server:
		b, err = config.ServerBlock(e.Folder, server)
	case "profiles", "policy":
		b, err = config.SettingBlock(e.Folder, name)
	default:
		fail(w, http.StatusNotFound, "only servers, profiles and the policy are edited here")
		return nil
	}
	if err != nil {
		fail(w, http.StatusConflict, err.Error())
		return nil
	}
	return b
}

// blockOf returns the part of the configuration that a request names, and its server.
func blockOf(r *http.Request) (name, server string) {
	name = r.PathValue("block")
	return name, strings.TrimPrefix(name, "servers/")
}

// block shows a part of the configuration as it is written, with secrets if it has some.
func block(c *Console, w http.ResponseWriter, r *http.Request, v Viewer) {
	if c.opts.Edit.refused(w, v) {
		return
	}
	if b := c.opts.Edit.openBlock(w, r); b != nil {
		reply(w, map[string]string{"text": b.Text, "file": filepath.Base(b.File)})
	}
}

// replaceBlock checks, tries or saves another text of a part of the configuration.
func replaceBlock(c *Console, w http.ResponseWriter, r *http.Request, v Viewer) {
	var order struct {
		Was  string `json:"was"` // the text that was changed
		Text string `json:"text"`
		Do   string `json:"do"` // check, try (a server) or save
	}
	if !read(w, r, &order) || c.opts.Edit.refused(w, v) {
		return
	}
	b := c.opts.Edit.openBlock(w, r)
	if b == nil {
		return
	}
	if order.Was != b.Text {
		fail(w, http.StatusConflict, "the file has been changed meanwhile; copy what you need, and open this again")
		return
	}
	file, cfg, err := b.Replace(order.Text, c.opts.InForce())
	name, server := blockOf(r)
	at := slices.IndexFunc(cfg.Servers, func(s downstream.ServerConfig) bool { return s.Name == server })
	switch {
	case err != nil && order.Do == "check":
		reply(w, map[string]string{"mistake": err.Error()})
	case err != nil:
		fail(w, http.StatusBadRequest, err.Error())
	case order.Do == "try" && at >= 0:
		try(c, w, r, v, cfg.Servers[at])
	case order.Do == "check":
		change := edits.Change{Before: []byte(b.Text), After: []byte(order.Text)}
		reply(w, map[string]any{
			"diff": change.Diff(func(line string) string { return line }), "warnings": cfg.Warnings})
	case order.Do == "save":
		if !c.opts.Edit.apply(r.Context(), w, v, name+" changed", file) {
			return
		}
		warning := await(r.Context(), c)
		if warning == "" && !reflect.DeepEqual(cfg.Profiles, c.opts.InForce().Profiles) {
			warning = "The change is written; profiles change when the router starts again."
		}
		reply(w, map[string]any{"warning": warning})
	default:
		fail(w, http.StatusBadRequest, "want check, try or save")
	}
}
