// Package router answers questions: it plans tool calls over all downstream servers, runs them and
// composes the answer; and it offers that, with its other tools, as an MCP server.
//
// A Router may be used from any goroutine. Its answers go through the Exchange of each request, so that
// progress stands before its result on the request's own stream.
package router

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/server"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/router/execution"
	"github.com/agenticnexus/agenticnexus/synth"
)

// Name is the router's name as an MCP server and client.
const Name = "agenticnexus-router"

// Options of a Router.
type Options struct {
	Version    string
	Servers    *downstream.Manager
	Planner    *planner.Planner
	Synth      *synth.Synthesizer
	Finder     *search.Finder // its index is kept up to date with the catalog
	Rate       *limit.Rate
	Tools      ToolsConfig
	Query      QueryConfig
	Validation ValidationConfig
	QueryChars int
	Planning   planner.Config
	Execution  downstream.ExecutionConfig
	Validator  *plan.Validator // nil makes one; sharing it shares compiled schemas
	Models     func() Models   // how the models are; nil = there are none
	UseClient  bool            // there is no model, and clients may lend theirs
	Logger     *slog.Logger
	Tracer     trace.Tracer
	Observe    func(outcome string, took time.Duration) // after each query; may be nil
}

// Models says how the models are; nil where there is none.
type Models struct {
	Planner     *llm.Status `json:"planner"`
	Synthesizer *llm.Status `json:"synthesizer"`
}

// rejected reports whether a model's endpoint refuses the key.
func (m Models) rejected() bool {
	return slices.ContainsFunc([]*llm.Status{m.Planner, m.Synthesizer}, func(s *llm.Status) bool {
		return s != nil && s.State == llm.StateRejected
	})
}

// Router answers questions and serves the router profile.
type Router struct {
	opts      Options
	servers   *downstream.Manager
	executor  *execution.Executor
	planner   *planner.Planner
	synth     *synth.Synthesizer
	validator *validator
	logger    *slog.Logger
	tracer    trace.Tracer
	began     time.Time
	mcp       *server.MCPServer
	exposed   exposures
	loose     exposures // of callers without sessions

	searchTool []byte // its raw definition

	index indexing
}

// New makes a Router. The error says what is wrong with the options.
func New(opts Options) (*Router, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Tracer == nil {
		opts.Tracer = noop.NewTracerProvider().Tracer("")
	}
	if opts.Models == nil {
		opts.Models = func() Models { return Models{} }
	}
	v, err := newValidator(opts.QueryChars, opts.Validation.DenyPatterns)
	if err != nil {
		return nil, err
	}
	r := &Router{
		opts: opts, servers: opts.Servers, planner: opts.Planner, synth: opts.Synth, validator: v,
		logger: opts.Logger, tracer: opts.Tracer, began: time.Now(), index: indexing{index: opts.Finder.Index()},
	}
	r.executor = execution.New(execution.Options{
		Servers: opts.Servers, MaxParallel: opts.Execution.MaxParallel, Validator: opts.Validator, Logger: opts.Logger,
	})
	if r.mcp, err = r.newMCP(); err != nil {
		return nil, err
	}
	tool, err := define(ToolSearchTools)
	if err != nil {
		return nil, err
	}
	r.searchTool = encodeResult(tool)
	return r, nil
}

func (r *Router) observe(outcome string, took time.Duration) {
	if r.opts.Observe != nil {
		r.opts.Observe(outcome, took)
	}
}

// catalog returns the tools of all servers.
func (r *Router) catalog(ctx context.Context) (*downstream.Catalog, error) {
	return r.servers.Catalog(ctx)
}

// searchable returns the tools of all servers once the index knows them.
func (r *Router) searchable(ctx context.Context) (*downstream.Catalog, error) {
	c, err := r.catalog(ctx)
	if err == nil {
		r.index.follow(c)
	}
	return c, err
}

// lookAgain returns the catalog after tools that are not in it were looked up once more: at the server that a name
// names, else at all servers. since is when the caller began to look.
func (r *Router) lookAgain(ctx context.Context, since time.Time, names []string, visible downstream.Visible) (*downstream.Catalog, error) {
	everywhere := false
	for _, name := range names {
		if server, tool, ok := r.qualified(name, visible); !ok {
			everywhere = true
		} else if _, err := r.servers.Has(ctx, server, "", tool, visible); err != nil && ctx.Err() != nil {
			return nil, err
		}
	}
	if everywhere {
		r.servers.Refresh(ctx, since)
	}
	return r.catalog(ctx)
}

// qualified splits a name that begins with a server which the caller may see. A hidden server is treated as one that
// is not there, so that the time of an answer does not tell them apart.
func (r *Router) qualified(name string, visible downstream.Visible) (server, tool string, ok bool) {
	for _, separator := range separators {
		server, tool, ok = strings.Cut(name, separator)
		if ok && tool != "" && r.servers.Configured(server) && (visible == nil || visible(server, "")) {
			return server, tool, true
		}
	}
	return "", "", false
}

// separators stand between a server's name and a tool's.
var separators = [...]string{"__", ":", "."}

// listed returns the catalog. It fails if a caller sees nothing because no server could be listed: that
// must not look like a success.
func (r *Router) listed(ctx context.Context, visible downstream.Visible) (*downstream.Catalog, error) {
	catalog, err := r.catalog(ctx)
	if err != nil {
		return nil, err
	}
	if missing := missing(catalog, visible); len(missing) > 0 && !catalog.SeesAny(visible) {
		reasons := make([]string, len(missing))
		for i, m := range missing {
			reasons[i] = m.String()
		}
		return nil, refuse("No server could be listed: %s", strings.Join(reasons, ", "))
	}
	return catalog, nil
}

// missing returns the servers that could not be listed, as far as a caller may know of them.
func missing(catalog *downstream.Catalog, visible downstream.Visible) []downstream.Missing {
	return slices.DeleteFunc(slices.Clone(catalog.Missing), func(m downstream.Missing) bool {
		return visible != nil && !visible(m.Server, "")
	})
}

// serversFor returns the servers of which a caller may see something, in configuration order.
func (r *Router) serversFor(visible downstream.Visible) []string {
	return slices.DeleteFunc(r.servers.Servers(), func(name string) bool {
		return visible != nil && !visible(name, "")
	})
}

// Tools returns what list_available_tools lists for a caller.
func (r *Router) Tools(ctx context.Context, visible downstream.Visible, server string) ([]ToolInfo, error) {
	if server != "" && !slices.Contains(r.serversFor(visible), server) {
		return nil, refuse("Invalid argument: server: Unknown server: %s; known are %s", server, strings.Join(r.serversFor(visible), ", "))
	}
	catalog, err := r.listed(ctx, visible)
	if err != nil {
		return nil, err
	}
	out := []ToolInfo{}
	for t := range catalog.See(visible) {
		if server == "" || t.Server == server {
			out = append(out, ToolInfo{Name: t.Name, Server: t.Server, Description: t.Description, Schema: t.InputSchema})
		}
	}
	return out, nil
}

// Missing returns the servers that could not be listed when the tools were last asked for, and why.
func (r *Router) Missing(ctx context.Context) []downstream.Missing {
	catalog, err := r.catalog(ctx)
	if err != nil {
		return nil
	}
	return catalog.Missing
}

// Found is a tool that a search found.
type Found struct {
	downstream.Tool
	Score float64
}

// Search ranks the tools that a caller may see, best first.
func (r *Router) Search(ctx context.Context, query string, limit int, visible downstream.Visible) ([]Found, error) {
	catalog, err := r.listed(ctx, visible)
	if err != nil {
		return nil, err
	}
	r.index.follow(catalog)
	tools := usable{catalog, visible}
	var out []Found
	for _, hit := range r.opts.Finder.Search(ctx, query, search.SearchOptions{Limit: limit, Allow: tools.Has}) {
		if t, unknown := catalog.Lookup(hit.ID, visible); unknown == nil {
			out = append(out, Found{*t, hit.Score})
		}
	}
	return out, nil
}

// Health is the state of the router.
type Health struct {
	Status        string                       `json:"status"` // healthy, degraded or unhealthy
	Version       string                       `json:"version"`
	UptimeSeconds float64                      `json:"uptime_seconds"`
	Servers       map[string]downstream.Status `json:"servers"`
	LLM           Models                       `json:"llm"`
}

// Health tells how the router and the servers that a caller may see are.
func (r *Router) Health(visible downstream.Visible, server string) (*Health, error) {
	all := r.servers.Status()
	seen := r.serversFor(visible)
	if server != "" && !slices.Contains(seen, server) {
		return nil, refuse("Invalid argument: server: Unknown server: %s; known are %s", server, strings.Join(seen, ", "))
	}
	h := &Health{Version: r.opts.Version, UptimeSeconds: time.Since(r.began).Round(time.Millisecond).Seconds(), Servers: map[string]downstream.Status{}, LLM: r.opts.Models()}
	up, down := 0, 0
	for _, name := range seen {
		if server != "" && name != server {
			continue
		}
		st, ok := all[name]
		if !ok {
			continue // a new configuration removed it a moment ago
		}
		h.Servers[name] = st
		switch st.Status {
		case downstream.StateConnected:
			up++
		case downstream.StateDisabled:
		default:
			down++
		}
	}
	switch {
	case down == 0:
		h.Status = "healthy"
	case up == 0:
		h.Status = "unhealthy"
	default:
		h.Status = "degraded"
	}
	if h.Status == "healthy" && h.LLM.rejected() {
		h.Status = "degraded" // the rules plan and the digest answers
	}
	return h, nil
}

// refusalText returns the text for the caller if err is his own fault.
func refusalText(err error) (string, bool) {
	var refusal *Refusal
	var fault *plan.Error
	switch {
	case errors.As(err, &refusal):
		return refusal.Text, true
	case errors.As(err, &fault):
		return fault.Message, true
	}
	return "", false
}
