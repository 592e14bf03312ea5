// Package router answers questions. [Router.Query] plans tool calls over all downstream servers, runs them and
// composes the answer. A [Frontend] serves queries and the router's other tools as an MCP server.
//
// Both are safe for concurrent use. A Frontend responds through the Exchange of each request, so that progress
// precedes the result on the request's own stream.
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
	"github.com/agenticnexus/agenticnexus/downstream/catalog"
	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
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
	Ranking    planner.Ranking // the Router keeps its index up to date
	Query      QueryConfig
	Validation ValidationConfig
	Limits     limit.Config
	MaxRounds  int // of planning, if the query gives none
	Execution  downstream.ExecutionConfig
	Validator  *plan.Validator // nil creates one; share it to share compiled schemas
	Models     ModelOptions
	Logger     *slog.Logger
	Tracer     tracing.Tracer
	Hooks
}

// Hooks are functions around queries and calls. Each may be nil.
type Hooks struct {
	Follow Follow
	Calls  func(execution.ToolCaller) execution.ToolCaller // wraps the calls of tools by plans and by Call

	// Cluster returns the state of the cluster; nil = the router runs alone.
	Cluster func() *Cluster

	// SealingKeys returns the key that seals plans that wait for approval, and those before it that did so within an
	// hour. nil = a key that is lost with the process.
	SealingKeys func() [][]byte
}

// Follow is called when a query begins and may set its Report. The function it returns is called when the query ends,
// with the record or the error. Neither may block.
type Follow func(q *Query, began time.Time, traceID string) (ended func(r *Record, outcome string, err error))

// ModelOptions describe the models other than those of the planner and the synthesizer.
type ModelOptions struct {
	Status   func() Models // status of the configured models; nil = none configured
	Sampling bool          // no model is configured and clients' models may be used
	Observed Observed      // records the calls of clients' models; its Mask is also that of failures

	// Learn receives the arguments and the value of each successful step, and the servers whose results it carries. It
	// must not block; nil = unused.
	Learn func(t plan.Tool, carries []string, arguments, value json.RawMessage)
}

// Models is the status of the models; nil fields have no model.
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
	calls     execution.ToolCaller
	directory *directory
	executor  *execution.Executor
	planner   *planner.Planner
	synth     *synth.Synthesizer
	validator *validator
	approvals approvals
	logger    *slog.Logger
	tracer    tracing.Tracer
	began     time.Time
}

// New returns a Router. The error names the invalid option.
func New(opts Options) (*Router, error) {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Validator == nil {
		opts.Validator = plan.NewValidator()
	}
	if opts.Follow == nil {
		opts.Follow = func(*Query, time.Time, string) func(*Record, string, error) { return func(*Record, string, error) {} }
	}
	if opts.Cluster == nil {
		opts.Cluster = func() *Cluster { return nil }
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
		approvals: newApprovals(opts.SealingKeys), logger: opts.Logger, tracer: opts.Tracer, began: time.Now(),
		directory: &directory{servers: opts.Servers, index: newIndexing(opts.Ranking.Finder)},
	}
	r.calls = r.servers
	if opts.Calls != nil {
		r.calls = opts.Calls(r.servers)
	}
	r.executor = execution.New(execution.Options{
		Servers: r.calls, MaxParallel: opts.Execution.MaxParallel, Validator: opts.Validator, Logger: opts.Logger,
		Mask:   opts.Models.Observed.Mask,
		Tracer: opts.Tracer, Learn: opts.Models.Learn,
	})
	return r, nil
}

// As returns the Router as a caller (auth.Caller.Login) has it, see downstream.As.
func (r *Router) As(caller string) *Router {
	d := r.directory.as(caller)
	if d == r.directory {
		return r
	}
	own := *r
	own.directory, own.servers = d, d.servers
	return &own
}

// Tools returns the entries of list_available_tools for a caller; an empty server means all.
func (r *Router) Tools(ctx context.Context, visible downstream.Visible, server string) ([]ToolInfo, error) {
	if server != "" && !slices.Contains(r.directory.serversFor(visible), server) {
		return nil, refuse("Invalid argument: server: Unknown server: %s; known: %s", server,
			strings.Join(r.directory.serversFor(visible), ", "))
	}
	if server != "" {
		visible = within(visible, server)
	}
	catalog, err := r.directory.listed(ctx, visible)
	if err != nil {
		return nil, err
	}
	out := []ToolInfo{}
	for t := range catalog.See(visible) {
		out = append(out, ToolInfo{Name: t.Name, Server: t.Server, Description: t.Description, Schema: t.InputSchema})
	}
	return out, nil
}

// Missing returns the servers whose tools could not be listed the last time, and why.
func (r *Router) Missing(ctx context.Context) []downstream.Missing {
	catalog, err := r.directory.all(ctx)
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

// Index adds a catalog to the search index ahead of the first search.
func (r *Router) Index(c *downstream.Catalog) { r.directory.index.follow(c) }

// Search ranks the tools that a caller may see, best first.
func (r *Router) Search(
	ctx context.Context, query string, limit int, visible downstream.Visible,
) ([]Found, error) {
	catalog, err := r.directory.listed(ctx, visible)
	if err != nil {
		return nil, err
	}
	if err := r.directory.follow(ctx, catalog); err != nil {
		return nil, err
	}
	var out []Found
	tools := usable{catalog: catalog, visible: visible, caller: r.directory.caller}
	for _, hit := range r.opts.Ranking.Search(ctx, query, tools, limit, false) {
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
	Cluster       *Cluster                     `json:"cluster,omitempty"` // nil = the router runs alone
}

// Health returns the state of the router and of the servers that a caller may see.
func (r *Router) Health(visible downstream.Visible, server string) (*Health, error) {
	all := r.servers.StatusFor(visible)
	seen := r.directory.serversFor(visible)
	if server != "" && !slices.Contains(seen, server) {
		return nil, refuse("Invalid argument: server: Unknown server: %s; known: %s", server, strings.Join(seen, ", "))
	}
	h := &Health{Version: r.opts.Version, UptimeSeconds: time.Since(r.began).Round(time.Millisecond).Seconds(),
		Servers: map[string]downstream.Status{}, LLM: r.opts.Models.Status(), Cluster: r.opts.Cluster()}
	up, down := 0, 0
	for _, name := range seen {
		if server != "" && name != server {
			continue
		}
		st, ok := all[name]
		if !ok {
			continue // just removed by a new configuration
		}
		h.Servers[name] = st
		switch {
		case st.Status == downstream.StateConnected:
			up++
		case st.Status == downstream.StatePerCaller:
		case st.Status == downstream.StateDisabled && st.LastError == nil: // on purpose
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
	if h.Status == "healthy" && (h.LLM.rejected() || h.Cluster != nil && h.Cluster.NATS != NATSConnected) {
		h.Status = "degraded" // rules plan; the digest answers; sessions of other replicas have to wait
	}
	return h, nil
}

// ToolsConfig selects the router's own tools that are offered.
type ToolsConfig struct {
	Tools []string `yaml:"tools"`
}

// QueryConfig sets the time limits of queries.
type QueryConfig struct {
	Timeout    time.Duration `yaml:"timeout"`     // if the caller gives no timeout
	TimeoutMax time.Duration `yaml:"timeout_max"` // the maximum a caller may request
}

// ValidationConfig defines which queries are refused.
type ValidationConfig struct {
	DenyPatterns []string `yaml:"deny_patterns"` // RE2, matched without regard to case; empty = none
}

// The names of the router's own tools.
const (
	ToolProcessQuery = "process_query"
	ToolListTools    = "list_available_tools"
	ToolHealthCheck  = "health_check"
	ToolSearchTools  = "search_available_tools"
	ToolRun          = "run"
)

// DefaultTools offers every router tool.
func DefaultTools() ToolsConfig {
	return ToolsConfig{Tools: []string{ToolProcessQuery, ToolListTools, ToolHealthCheck, ToolSearchTools, ToolRun}}
}

// DefaultQuery returns the default limits. The timeout is 55 s because common clients give up after 60 s.
func DefaultQuery() QueryConfig {
	return QueryConfig{Timeout: 55 * time.Second, TimeoutMax: 10 * time.Minute}
}

// DefaultValidation denies model control tokens and common override phrases.
func DefaultValidation() ValidationConfig {
	return ValidationConfig{DenyPatterns: []string{
		`<\|[a-z_]{1,40}\|>`,
		`\[/?INST\]`,
		`<</?SYS>>`,
		`\b(ignore|disregard|forget)\s+(all\s+|any\s+)?(of\s+)?(the\s+|your\s+)?(previous|prior|above|earlier)\s+(instructions?|prompts?|rules)\b`,
		`\breveal\s+(your|the)\s+(system\s+prompt|hidden\s+instructions)\b`,
	}}
}

// Resolve returns the server and the own name of a tool by any of its names.
func (r *Router) Resolve(ctx context.Context, name string) (server, tool string, err error) {
	return r.directory.resolve(ctx, name, nil)
}

// Call calls one tool by any of its names, on behalf of a user of this process. It returns the raw result. A JSON-RPC
// error of the server is returned as a *jsonrpc.Error.
func (r *Router) Call(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error) {
	server, tool, err := r.directory.resolve(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	reply, err := r.calls.Call(ctx, &downstream.Request{
		Server: server, Tool: tool, Method: "tools/call", Params: catalog.Params(tool, arguments, nil),
		Provenance: downstream.Provenance{Profile: "router"},
	})
	if err != nil {
		return nil, err
	}
	if reply.Err != nil {
		e := &jsonrpc.Error{Message: string(reply.Err)}
		_ = json.Unmarshal(reply.Err, e) // on failure, the message set above remains
		return nil, e
	}
	return reply.Result, nil
}
