package eval

import (
	"context"
	"encoding/json"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner"
	"github.com/agenticnexus/agenticnexus/planner/rules"
)

// Tool is a line of a catalog, or a tool of a planning task.
type Tool struct {
	ID           string           `json:"id"`
	Server       string           `json:"server"`
	Name         string           `json:"name"`
	Title        string           `json:"title"`
	Description  string           `json:"description"`
	InputSchema  json.RawMessage  `json:"inputSchema"`
	OutputSchema json.RawMessage  `json:"outputSchema"`
	Outputs      []string         `json:"outputs"` // names of result fields, without an outputSchema
	Annotations  plan.Annotations `json:"annotations"`
}

func (t Tool) plan() plan.Tool {
	return plan.Tool{
		Name: t.Name, Server: t.Server, Tool: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
		OutputSchema: t.output(), Annotations: t.Annotations,
	}
}

// output returns the tool's output schema, or one made from the names of its result fields.
func (t Tool) output() json.RawMessage {
	if len(t.OutputSchema) > 0 || len(t.Outputs) == 0 {
		return t.OutputSchema
	}
	fields := map[string]any{}
	for _, name := range t.Outputs {
		fields[name] = map[string]any{}
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": fields})
	if err != nil {
		return nil
	}
	return raw
}

// searchable has all tools of a task, for search and for lookup.
type searchable struct {
	rules.Catalog
	planner.List
}

func newSearchable(tools []Tool) searchable {
	list := planTools(tools)
	return searchable{rules.NewCatalog(list), list}
}

// ranking ranks searchable tools.
type ranking struct{}

// Rank implements planner.Ranker.
func (ranking) Rank(ctx context.Context, query string, tools planner.Tools, limit int) []plan.Tool {
	if s, ok := tools.(searchable); ok {
		return s.Ask(ctx, query, limit)
	}
	return nil
}

func planTools(tools []Tool) []plan.Tool {
	out := make([]plan.Tool, len(tools))
	for i, t := range tools {
		out[i] = t.plan()
	}
	return out
}

// index builds a search index over a catalog, server by server as a router does.
func index(tools []Tool) *search.Index {
	servers := map[string][]search.Tool{}
	var order []string
	for _, t := range tools {
		if servers[t.Server] == nil {
			order = append(order, t.Server)
		}
		servers[t.Server] = append(servers[t.Server], search.Tool{
			ID: t.ID, Server: t.Server, Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
		})
	}
	x := search.New()
	for _, s := range order {
		x.Update(s, servers[s])
	}
	return x
}
