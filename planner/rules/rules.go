// Package rules plans without a model: it reads the question as language and the tools as JSON
// Schema, and calls a tool only on evidence.
//
// A question is split into clauses; each is matched with the best-ranked tools, whose parameters are
// filled with what the clause mentions (numbers with units, dates, names, quotations, choices, …).
// Where what a tool needs is what another returns, the other is called first and its result
// referred to. Where no tool explains enough of the question the plan is empty and its Note says so; a
// tool that only lacks required arguments is in its Open then, without guesses.
//
// A tool that says it may be destructive is never called, and a tool that does not say it is
// read-only is not called with a required argument that is a guess. Nor is a tool named
// after something that it does ("create", "book") called only because another tool needs its result.
//
// A Planner has no state and may be used by many goroutines. The work for a question is bounded
// whatever its text and whatever the schemas.
package rules

import (
	"context"
	"fmt"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
)

// Options are the settings of a Planner.
type Options struct {
	Now func() time.Time // the day that "today" is; nil means time.Now
}

// Planner plans by rules. Use [New].
type Planner struct {
	now       func() time.Time
	thesaurus *search.Thesaurus
}

// New returns a Planner.
func New(o Options) *Planner {
	p := &Planner{now: o.Now, thesaurus: search.NewThesaurus()}
	if p.now == nil {
		p.now = time.Now
	}
	return p
}

// Catalog is the tools that a question may use. Both methods return those that fit best, best first, at most
// limit of them.
type Catalog interface {
	// Ask searches by what the user says. It may ask an embedding model.
	Ask(ctx context.Context, question string, limit int) []plan.Tool
	// Look searches by words that tools use, often many times for one question.
	Look(words string, limit int) []plan.Tool
}

// NewCatalog returns a Catalog of a list of tools. It indexes the list once; a caller with a catalog that
// lasts keeps a [search.Index] of its own.
func NewCatalog(tools []plan.Tool) Catalog {
	c := catalog{search.New(search.Options{}), map[string]plan.Tool{}}
	servers := map[string][]search.Tool{}
	for i, t := range tools {
		id := fmt.Sprintf("%06d", i)
		c.byID[id] = t
		servers[t.Server] = append(servers[t.Server], search.Tool{
			ID: id, Server: t.Server, Name: t.Tool, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
		})
	}
	for server, ts := range servers {
		c.index.Update(server, ts)
	}
	return c
}

// catalog ranks by words alone.
type catalog struct {
	index *search.Index
	byID  map[string]plan.Tool
}

func (c catalog) Ask(_ context.Context, question string, limit int) []plan.Tool {
	return c.Look(question, limit)
}

func (c catalog) Look(words string, limit int) []plan.Tool {
	var out []plan.Tool
	for _, h := range c.index.Search(words, search.SearchOptions{Limit: limit}) {
		out = append(out, c.byID[h.ID])
	}
	return out
}

// Plan plans a question over the tools of a catalog. The error is ctx's, if it ended.
func (p *Planner) Plan(ctx context.Context, query string, tools Catalog) (plan.Plan, error) {
	out := plan.Plan{Source: plan.SourceRules, Steps: []plan.Step{}}
	calls, open := p.calls(ctx, query, tools)
	if err := ctx.Err(); err != nil {
		return plan.Plan{}, fmt.Errorf("planning by rules: %w", err)
	}
	ids := map[*call]string{}
	for _, c := range calls {
		step, err := c.step(fmt.Sprintf("s%d", len(out.Steps)+1), ids)
		if err != nil {
			return plan.Plan{}, fmt.Errorf("planning by rules: %w", err)
		}
		ids[c] = step.ID
		out.Steps = append(out.Steps, step)
	}
	if len(out.Steps) > 0 {
		return out, nil
	}
	out.Note = noToolFits
	if open != nil {
		step, err := open.step("s1", ids)
		if err != nil {
			return plan.Plan{}, fmt.Errorf("planning by rules: %w", err)
		}
		out.Open = []plan.Step{step}
	}
	return out, nil
}

const noToolFits = "No available tool fits this question."
