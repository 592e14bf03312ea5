package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/app"
	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/router"
)

// backend is the router that a command uses, in this process or remote.
type backend interface {
	// health returns the structured content of health_check.
	health(ctx context.Context) (json.RawMessage, error)
	// tools returns the structured content of list_available_tools or, with a search, of search_available_tools.
	tools(ctx context.Context, search string) (json.RawMessage, error)
	// missing returns the servers that tools could not list, with the reasons.
	missing(ctx context.Context) ([]string, error)
	// call returns the whole result of one tool.
	call(ctx context.Context, tool string, arguments json.RawMessage) (json.RawMessage, error)
}

// maxHits bounds the tools that a search shows.
const maxHits = 20

// backend opens the router that the flags select.
func (s *source) backend(w *world, r remote) (backend, func(), error) {
	if r.Remote != "" {
		p, err := r.connect(w.ctx, nil)
		if err != nil {
			return nil, nil, err
		}
		return p, p.close, nil
	}
	a, done, err := s.open(w)
	if err != nil {
		return nil, nil, err
	}
	return local{a}, done, nil
}

// local is a router in this process.
type local struct{ app *app.App }

func (l local) health(context.Context) (json.RawMessage, error) {
	health, err := l.app.Router().Health(nil, "")
	if err != nil {
		return nil, err
	}
	return json.Marshal(health)
}

func (l local) tools(ctx context.Context, search string) (json.RawMessage, error) {
	var tools any
	var err error
	if search == "" {
		tools, err = l.app.Router().Tools(ctx, nil, "")
	} else {
		var found []router.Found
		found, err = l.app.Router().Search(ctx, search, maxHits, nil)
		hits := []router.FoundTool{}
		for _, f := range found {
			hits = append(hits, f.As(f.Name))
		}
		tools = hits
	}
	if err != nil {
		return nil, err
	}
	return plainJSON(map[string]any{"tools": tools})
}

func (l local) missing(ctx context.Context) (missing []string, err error) {
	for _, m := range l.app.Router().Missing(ctx) {
		missing = append(missing, m.String())
	}
	return missing, nil
}

func (l local) call(ctx context.Context, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	return l.app.Router().Call(ctx, tool, arguments)
}

func (p *peer) health(ctx context.Context) (json.RawMessage, error) {
	return p.structured(ctx, router.ToolHealthCheck, map[string]any{})
}

func (p *peer) tools(ctx context.Context, search string) (json.RawMessage, error) {
	if search == "" {
		return p.structured(ctx, router.ToolListTools, map[string]any{})
	}
	return p.structured(ctx, router.ToolSearchTools, map[string]any{"query": search, "limit": maxHits})
}

func (p *peer) missing(ctx context.Context) ([]string, error) {
	h, err := healthOf(ctx, p)
	if errors.Is(err, errNotOffered) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var missing []string
	for name, s := range h.Servers {
		switch {
		case s.Status == downstream.StateConnected, s.Status == downstream.StateDegraded,
			s.Status == downstream.StateDisabled, s.Status == downstream.StatePerCaller:
		case s.LastError != nil:
			missing = append(missing, fmt.Sprintf("%s (%s: %s)", name, s.LastError.Reason, s.LastError.Message))
		default:
			missing = append(missing, fmt.Sprintf("%s (%s)", name, s.Status))
		}
	}
	slices.Sort(missing)
	return missing, nil
}

func (p *peer) call(ctx context.Context, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	return p.ask(ctx, router.ToolRun, map[string]any{"tool": tool, "parameters": arguments}, nil)
}

// structured returns the structured content of one of the remote router's own tools.
func (p *peer) structured(ctx context.Context, tool string, args map[string]any) (json.RawMessage, error) {
	result, err := p.answer(ctx, tool, args, nil)
	if err != nil {
		return nil, err
	}
	return result.StructuredContent, nil
}

// state is the part of the structured content of health_check that commands use.
type state struct {
	Status  string                       `json:"status"`
	Version string                       `json:"version"`
	Servers map[string]downstream.Status `json:"servers"`
	LLM     router.Models                `json:"llm"`
	Cluster *router.Cluster              `json:"cluster"` // nil = the router runs alone
	raw     json.RawMessage
}

func healthOf(ctx context.Context, b backend) (*state, error) {
	raw, err := b.health(ctx)
	if err != nil {
		return nil, err
	}
	h := &state{raw: raw}
	if err := json.Unmarshal(raw, h); err != nil {
		return nil, fmt.Errorf("reading the health: %w", err)
	}
	return h, nil
}

// mistaken returns the servers that are disabled by a mistake in the configuration, with the reasons; h may be nil.
func (h *state) mistaken() (out []string) {
	if h == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(h.Servers)) {
		if s := h.Servers[name]; s.Status == downstream.StateDisabled && s.LastError != nil {
			out = append(out, name+" (disabled: "+s.LastError.Message+")")
		}
	}
	return out
}

// listed reports whether any server has connected.
func (h *state) listed() bool {
	for _, s := range h.Servers {
		if s.Status == downstream.StateConnected {
			return true
		}
	}
	return false
}

// idle reports whether every server is disabled.
func (h *state) idle() bool {
	for _, s := range h.Servers {
		if s.Status != downstream.StateDisabled {
			return false
		}
	}
	return true
}

// serverOf returns the server in a qualified tool name, or "" for a bare name.
func (h *state) serverOf(tool string) string {
	for server := range catalog.Splits(tool) {
		if _, known := h.Servers[server]; known {
			return server
		}
	}
	return ""
}
