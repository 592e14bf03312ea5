// Package rules plans tool calls without a language model.
//
// It is small and cautious. It understands plain commands and plain questions in English, and values that have a form:
// numbers, dates, quotations, identifiers, addresses, paths, and what a tool's schema lists. Another language can only
// name a tool in full. What it does not understand is in the plan's Unmet, with the nearest tools.
//
// The path of a question: text.go splits it into words and values; sentence.go splits these into clauses and decides
// what each asks for; choose.go weighs the tools that a search finds for a clause; fill.go gives values to their
// parameters; unmet.go says what was left out. words.go has the tables.
//
// A tool that writes is called only on positive evidence. Every sentence of the question must be plain; the clause must
// be a command of nothing but allowed words; its verb must ask for what the tool does; each of its words must be taken
// by an argument or be known to the tool; and no other tool may fit as well. Nothing is looked up or guessed for it.
//
// A Planner may be used by many goroutines; it keeps compiled schemas alone, within bounds. Its work is
// bounded whatever the question and the schemas.
package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Options are the settings of a Planner.
type Options struct {
	Now func() time.Time // the day that "today" is; nil means time.Now
}

// Planner plans by rules. Use [New].
type Planner struct {
	now       func() time.Time
	validator *plan.Validator
}

// New returns a Planner.
func New(o Options) *Planner {
	p := &Planner{now: o.Now, validator: plan.NewValidator()}
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
	// Look searches by words alone.
	Look(words string, limit int) []plan.Tool
}

// NewCatalog returns a Catalog of a list of tools. It indexes the list once; a caller with a catalog that
// lasts keeps a [search.Index] of its own.
func NewCatalog(tools []plan.Tool) Catalog {
	c := catalog{search.New(), map[string]plan.Tool{}}
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
	for _, h := range c.index.Search(words, search.SearchOptions{Limit: limit, Literal: true}) {
		out = append(out, c.byID[h.ID])
	}
	return out
}

// maxText bounds how much of a question is read, in bytes. A longer question writes nothing.
const maxText = 16 << 10

// Plan plans a question over the tools of a catalog. The error is ctx's, if it ended.
func (p *Planner) Plan(ctx context.Context, query string, tools Catalog) (plan.Plan, error) {
	text := clip(query, maxText)
	verbs := map[string]bool{}
	for _, t := range tools.Ask(ctx, text, maxTools) {
		if words := texts.Words(t.Tool); len(words) > 1 && !search.IsStopWord(words[0]) {
			verbs[words[0]] = true
		}
	}
	c := chooser{ctx: ctx, catalog: tools, message: parse(text, scan(text, p.now()), verbs), known: map[string]*tool{}, validator: p.validator}
	c.message.plain = c.message.plain && len(text) == len(query)
	c.choose()
	if err := ctx.Err(); err != nil {
		return plan.Plan{}, fmt.Errorf("planning by rules: %w", err)
	}
	out := plan.Plan{Source: plan.SourceRules, Steps: []plan.Step{}, Unmet: c.unmet}
	out.About = slices.ContainsFunc(c.message.clauses, func(cl clause) bool { return cl.act == abilities })
	ids := map[*call]string{}
	for _, one := range c.calls {
		ids[one] = fmt.Sprintf("s%d", len(out.Steps)+1)
		out.Steps = append(out.Steps, one.step(ids[one], ids))
	}
	for i, one := range c.open {
		out.Incomplete = append(out.Incomplete, one.step(fmt.Sprintf("s%d", len(out.Steps)+i+1), ids))
	}
	out.Note = note(out)
	return out, nil
}

// step writes a call as a plan step. Calls that it refers to have their ids already.
func (c *call) step(id string, ids map[*call]string) plan.Step {
	s := plan.Step{ID: id, Tool: c.tool.Name, Server: c.tool.Server, After: []string{}}
	for name, a := range c.filling.args {
		if ref, ok := a.value.(reference); ok {
			from := ids[ref.call]
			if !slices.Contains(s.After, from) {
				s.After = append(s.After, from)
			}
			a.value = "$" + from + "." + ref.path
			c.filling.args[name] = a
		}
	}
	slices.Sort(s.After)
	s.Arguments = c.filling.json()
	return s
}

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "")
	}
	return s
}
