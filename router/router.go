// Package router answers questions: [Router.Query] plans tool calls over all downstream servers, runs them and composes
// the answer. A [Profile] offers that, and the router's other tools, as an MCP server.
//
// Both may be used from any goroutine. A Profile answers through the Exchange of each request, so that progress stands
// before its result on the request's own stream.
package router

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/downstream"
	"github.com/agenticnexus/agenticnexus/internal/limit"
	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/tracing"
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
	Ranking    Ranking // its index is kept up to date with the catalog
	Query      QueryConfig
	Validation ValidationConfig
	Limits     limit.Config
	MaxRounds  int // of planning, where a query names none
	Execution  downstream.ExecutionConfig
	Validator  *plan.Validator // nil makes one; sharing it shares compiled schemas
	Models     ModelOptions
	Logger     *slog.Logger
	Tracer     tracing.Tracer
	Follow     Follow // may be nil
}

// Follow is called when a query begins, and may set its Report; what it returns is called when the query has ended,
// with the record or the error. Neither may block.
type Follow func(q *Query, began time.Time) (ended func(r *Record, outcome string, err error))

// ModelOptions say what models there are besides those of the planner and the synthesizer.
type ModelOptions struct {
	Status   func() Models // of the configured ones; nil = there are none
	Sampling bool          // there is none, and those of clients may be used
	Observed Observed      // what is made of the calls of clients' models

	// Learn gets the arguments and the value of each step that has succeeded; nil = nobody does. It does not block.
	Learn func(t plan.Tool, arguments, value json.RawMessage)

	// Answered gets the full names of the tools that have answered a question of a caller; nil = nobody does. It does not
	// block.
	Answered func(caller, question string, tools []string)
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

// Router answers questions.
type Router struct {
	opts      Options
	servers   *downstream.Manager
	tools     *directory
	executor  *execution.Executor
	planner   *planner.Planner
	synth     *synth.Synthesizer
	validator *validator
	logger    *slog.Logger
	tracer    tracing.Tracer
	began     time.Time
}

// New makes a Router. The error says what is wrong with the options.
func New(opts Options) (*Router, error) {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Follow == nil {
		opts.Follow = func(*Query, time.Time) func(*Record, string, error) { return func(*Record, string, error) {} }
	}
	if opts.Models.Status == nil {
		opts.Models.Status = func() Models { return Models{} }
	}
	v, err := newValidator(opts.Limits.QueryChars, opts.Validation.DenyPatterns)
	if err != nil {
		return nil, err
	}
	r := &Router{
		opts: opts, servers: opts.Servers, planner: opts.Planner, synth: opts.Synth, validator: v,
		logger: opts.Logger, tracer: opts.Tracer, began: time.Now(),
		tools: &directory{servers: opts.Servers, index: indexing{finder: opts.Ranking.Finder}},
	}
	r.executor = execution.New(execution.Options{
		Servers: opts.Servers, MaxParallel: opts.Execution.MaxParallel, Validator: opts.Validator, Logger: opts.Logger,
		Tracer: opts.Tracer, Learn: opts.Models.Learn,
	})
	return r, nil
}

// Tools returns what list_available_tools lists for a caller.
func (r *Router) Tools(ctx context.Context, visible downstream.Visible, server string) ([]ToolInfo, error) {
	if server != "" && !slices.Contains(r.tools.serversFor(visible), server) {
		return nil, refuse("Invalid argument: server: Unknown server: %s; known: %s", server,
			strings.Join(r.tools.serversFor(visible), ", "))
	}
	if server != "" {
		visible = within(visible, server)
	}
	catalog, err := r.tools.listed(ctx, visible)
	if err != nil {
		return nil, err
	}
	out := []ToolInfo{}
	for t := range catalog.See(visible) {
		out = append(out, ToolInfo{Name: t.Name, Server: t.Server, Description: t.Description, Schema: t.InputSchema})
	}
	return out, nil
}

// Missing returns the servers that could not be listed when the tools were last asked for, and why.
func (r *Router) Missing(ctx context.Context) []downstream.Missing {
	catalog, err := r.tools.all(ctx)
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

// Index has searches know a catalog before the first of them.
func (r *Router) Index(c *downstream.Catalog) { r.tools.index.follow(c) }

// Search ranks the tools that a caller may see, best first, those before others that have answered its questions.
func (r *Router) Search(
	ctx context.Context, caller, query string, limit int, visible downstream.Visible,
) ([]Found, error) {
	catalog, err := r.tools.listed(ctx, visible)
	if err != nil {
		return nil, err
	}
	r.tools.index.follow(catalog)
	var out []Found
	for _, hit := range r.opts.Ranking.find(ctx, query, usable{catalog, visible, caller}, limit, false) {
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
	all := r.servers.StatusFor(visible)
	seen := r.tools.serversFor(visible)
	if server != "" && !slices.Contains(seen, server) {
		return nil, refuse("Invalid argument: server: Unknown server: %s; known: %s", server, strings.Join(seen, ", "))
	}
	h := &Health{Version: r.opts.Version, UptimeSeconds: time.Since(r.began).Round(time.Millisecond).Seconds(),
		Servers: map[string]downstream.Status{}, LLM: r.opts.Models.Status()}
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
