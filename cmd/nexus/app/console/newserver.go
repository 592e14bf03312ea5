package console

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/downstream"
	edits "github.com/agenticnexus/agenticnexus/internal/change"
	"github.com/agenticnexus/agenticnexus/internal/jsonc"
)

// newServer is a server to try or to add. It has either URL or Command.
type newServer struct {
	Name    string            `json:"name"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Command []string          `json:"command"` // with its arguments
	Env     map[string]string `json:"env"`
	Private bool              `json:"private"` // its results are confidential
	Try     bool              `json:"try"`     // connect and list its tools; add nothing
}

// wrong tells why a server cannot be added; empty if it can be.
func (s *newServer) wrong() string {
	if err := config.CheckServerName(s.Name); err != nil {
		return err.Error()
	}
	if (s.URL == "") == (len(s.Command) == 0) || len(s.Command) > 0 && s.Command[0] == "" {
		return "a server has an address or a command"
	}
	return ""
}

// plan plans to add the server. All its headers and variables are secrets.
func (s *newServer) plan(folder string) (*config.Addition, error) {
	fields, secrets := jsonc.Object{}, config.CredentialArgs(s.Command)
	add := func(name string, value any) { fields = append(fields, jsonc.Member{Name: name, Value: value}) }
	if s.URL != "" {
		add("url", s.URL)
	} else {
		add("command", s.Command[0])
		add("args", s.Command[1:])
	}
	for name, values := range map[string]map[string]string{"headers": s.Headers, "env": s.Env} {
		if len(values) > 0 {
			add(name, values)
		}
		secrets = slices.AppendSeq(secrets, maps.Values(values))
	}
	if s.Private {
		add("data", "private")
	}
	text, err := json.Marshal(jsonc.Object{{Name: "mcpServers", Value: jsonc.Object{{Name: s.Name, Value: fields}}}})
	if err != nil {
		return nil, err
	}
	return config.Add("the server", text, folder, secrets...)
}

// addServer tries a server or adds it to the configuration.
func addServer(c *Console, w http.ResponseWriter, r *http.Request, v Viewer) {
	var s newServer
	if !read(w, r, &s) || c.opts.Edit.refused(w, v) {
		return
	}
	if wrong := s.wrong(); wrong != "" {
		fail(w, http.StatusBadRequest, wrong)
		return
	}
	a, err := s.plan(c.opts.Edit.Folder)
	switch {
	case err != nil:
		fail(w, http.StatusBadRequest, err.Error())
	case len(a.Added) == 0 || slices.Contains(c.opts.Servers.Servers(), s.Name):
		fail(w, http.StatusConflict, "another server has that name")
	case s.Try:
		all, err := a.Servers()
		if err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
		try(c, w, r, v, all[slices.IndexFunc(all, func(t downstream.ServerConfig) bool { return t.Name == s.Name })])
	default:
		if c.opts.Edit.apply(r.Context(), w, v, "server "+s.Name+" added", a.Files...) {
			warning := await(r.Context(), c)
			reply(w, map[string]any{"added": s.Name, "warnings": a.Warnings, "warning": warning})
		}
	}
}

// removeServer takes a server out of the configuration.
func removeServer(c *Console, w http.ResponseWriter, r *http.Request, v Viewer) {
	var order struct{}
	if !read(w, r, &order) || c.opts.Edit.refused(w, v) {
		return
	}
	name := r.PathValue("name")
	removal, err := config.Remove(c.opts.Edit.Folder, name)
	var secrets *edits.Change
	if err == nil {
		secrets, err = removal.Secrets()
	}
	if err != nil {
		fail(w, http.StatusConflict, err.Error())
		return
	}
	files := slices.DeleteFunc([]*edits.Change{removal.File, secrets}, func(f *edits.Change) bool { return f == nil })
	if c.opts.Edit.apply(r.Context(), w, v, "server "+name+" removed", files...) {
		warning := await(r.Context(), c)
		notes := slices.DeleteFunc(append([]string{warning}, removal.Warnings...), func(s string) bool { return s == "" })
		reply(w, map[string]any{"removed": warning == "", "warning": strings.Join(notes, "; ")})
	}
}
