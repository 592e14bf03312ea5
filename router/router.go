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
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/server"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/planner/llm"
	"github.com/agenticnexus/agenticnexus/planner/plan"
	"github.com/agenticnexus/agenticnexus/planner/search"
	"github.com/agenticnexus/agenticnexus/router/limit"
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
	Models     func() Models // how the models are; nil = there are none
	UseClient  bool          // there is no model, and clients may lend theirs
	Logger     *slog.Logger
	Tracer     trace.Tracer
	Observe    func(outcome string, took time.Duration) // after each query; may be nil
}

// Models says how the models are; nil where there is none.
type Models struct {
	Planner     *llm.Status `json:"planner"`
	Synthesizer *llm.Status `json:"synthesizer"`
}

// Router answers questions and serves the router profile.
type Router struct {
	opts      Options
	servers   *downstream.Manager
	planner   *planner.Planner
	synth     *synth.Synthesizer
	validator *validator
	logger    *slog.Logger
	tracer    trace.Tracer
	began     time.Time
	mcp       *server.MCPServer
	exposed   exposures

	searchTool []byte // its raw definition

	mu      sync.Mutex
	indexed map[string][]downstream.Tool // by server, as the index knows them
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
		logger: opts.Logger, tracer: opts.Tracer, began: time.Now(), indexed: map[string][]downstream.Tool{},
	}
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

// catalog returns the tools of all servers and brings the index up to date with them.
func (r *Router) catalog(ctx context.Context) (*downstream.Catalog, error) {
	c, err := r.servers.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	servers := r.servers.Servers()
	for name := range r.indexed {
		if !slices.Contains(servers, name) {
			delete(r.indexed, name)
			r.opts.Finder.Index().Update(name, nil)
		}
	}
	for _, name := range servers {
		tools := c.Of(name)
		if known := r.indexed[name]; len(known) == len(tools) && (len(tools) == 0 || &known[0] == &tools[0]) {
			continue
		}
		r.indexed[name] = tools
		entries := make([]search.Tool, len(tools))
		for i, t := range tools {
			entries[i] = search.Tool{ID: t.Full(), Server: name, Name: t.Tool.Tool, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema}
		}
		r.opts.Finder.Index().Update(name, entries)
	}
	return c, nil
}

// listed returns the catalog. It fails if a caller sees nothing because no server could be listed: that
// must not look like a success.
func (r *Router) listed(ctx context.Context, visible downstream.Visible) (*downstream.Catalog, error) {
	catalog, err := r.catalog(ctx)
	if err != nil {
		return nil, err
	}
	if missing := missing(catalog, visible); len(missing) > 0 && len(catalog.See(visible)) == 0 {
		return nil, refuse("No server could be listed: %s", strings.Join(missing, ", "))
	}
	return catalog, nil
}

// missing returns the servers that could not be listed, as far as a caller may know of them.
func missing(catalog *downstream.Catalog, visible downstream.Visible) (names []string) {
	for _, name := range catalog.Missing {
		if visible == nil || visible(name, "") {
			names = append(names, name)
		}
	}
	return names
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
	for _, t := range catalog.See(visible) {
		if server == "" || t.Server == server {
			out = append(out, ToolInfo{Name: t.Name, Server: t.Server, Description: t.Description, Schema: t.InputSchema})
		}
	}
	return out, nil
}

// Missing returns the servers that could not be listed when the tools were last asked for.
func (r *Router) Missing(ctx context.Context) []string {
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
	allowed := func(id string) bool {
		_, unknown := catalog.Lookup(id, visible)
		return unknown == nil
	}
	var out []Found
	for _, hit := range r.opts.Finder.Search(ctx, query, search.SearchOptions{Limit: limit, Allow: allowed}) {
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
