// Package rules plans tool calls without a language model.
//
// Package intent splits the question into clauses and says which of them ask for something; package values finds what may
// be an argument. For each clause the tools that a search finds are weighed (evidence.go): what share of the clause a
// tool's texts and arguments explain, and how well its required parameters are filled. The parameters are filled all
// together (fill.go, assign.go), by type, by the words around a value and by its side ("from", "to"), so that the sum is
// best and nothing is used twice. A required argument that nothing in the question gives is taken from the result of
// another call where the names of fields say so (chain.go). What is ambiguous is left out.
//
// A tool that writes is called only for a command or a request whose verb asks for what the tool does, and with nothing
// guessed (ask.go). In an unknown language only a tool that reads and is named in the question is called.
//
// Every part of the question that no call serves is in the plan's Unmet; a call that lacks nothing but required arguments
// is in its Open as well (unmet.go).
//
// A Planner has no state and may be used by many goroutines. The work for a question is bounded whatever its text and
// whatever the schemas.
package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/planner/rules/intent"
	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// Options are the settings of a Planner.
type Options struct {
	Now func() time.Time // the day that "today" is; nil means time.Now
}

// Planner plans by rules. Use [New].
type Planner struct {
	now func() time.Time
}

// New returns a Planner.
func New(o Options) *Planner {
	p := &Planner{now: o.Now}
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
	for _, h := range c.index.Search(words, search.SearchOptions{Limit: limit}) {
		out = append(out, c.byID[h.ID])
	}
	return out
}

// maxText bounds how much of a question is read, in bytes.
const maxText = 16 << 10

// Plan plans a question over the tools of a catalog. The error is ctx's, if it ended.
func (p *Planner) Plan(ctx context.Context, query string, tools Catalog) (plan.Plan, error) {
	said := clip(query, maxText)
	query = spelled(said, tools)
	texts, masked := announcedTexts(said)
	clauses := intent.Split(spelled(masked, tools))
	for i, cl := range clauses {
		clauses[i].Text = query[cl.Start:cl.End]
		clauses[i].Language = vocabulary(clauses[i])
	}
	lang := mostly(clauses)
	c := chooser{
		p: p, ctx: ctx, tools: tools, said: said, text: query, fills: map[*profile]filling{},
		values:   append(values.Extract(query, values.Options{Now: p.now(), Language: lang}), texts...),
		profiler: &profiler{lang: lang, made: map[string]*profile{}},
	}
	clauses = splitCalculations(query, clauses, c.values)
	c.choose(clauses[:min(len(clauses), maxClauses)])
	if err := ctx.Err(); err != nil {
		return plan.Plan{}, fmt.Errorf("planning by rules: %w", err)
	}
	out := plan.Plan{Source: plan.SourceRules, Steps: []plan.Step{}, Unmet: c.unmet, About: slices.ContainsFunc(clauses,
		about)}
	ids := map[*call]string{}
	for _, one := range c.calls {
		ids[one] = fmt.Sprintf("s%d", len(out.Steps)+1)
		out.Steps = append(out.Steps, one.step(ids[one], ids))
	}
	for i, one := range c.open {
		out.Open = append(out.Open, one.step(fmt.Sprintf("s%d", len(out.Steps)+i+1), ids))
	}
	if out.Note = note(out); out.Note == "" {
		out.Note = c.unworked()
	}
	return out, nil
}

// addressed are paths and addresses, whose words are of no language.
var addressed = lazy(`\S*\pL[/.@]\S*\pL\S*|\S*/\S*`)

// vocabulary is the language that knows most words of a clause: of "crea la carpeta" the function words are French, too.
func vocabulary(cl intent.Clause) string {
	best, most := cl.Language, -1
	if best == "" {
		return best
	}
	words := wordShape().FindAllString(addressed().ReplaceAllString(cl.Text, ""), maxWords)
	for _, lang := range []string{cl.Language, "de", "fr", "es"} {
		known := 0
		for _, w := range words {
			stems, empty := search.StemsIn(w, lang)
			both := slices.Contains(stems[1:], search.Stem(strings.ToLower(w))) // "patient" is English, too
			if empty || len(stems) > 1 && !(both && cl.Language == "en") || lang == "en" && search.RequestVerb(strings.ToLower(w)) {
				known++
			}
		}
		if known > most {
			best, most = lang, known
		}
	}
	return best
}

// mostly is the language of most of the question.
func mostly(clauses []intent.Clause) string {
	best, most, size := "", 0, map[string]int{}
	for _, c := range clauses {
		size[c.Language] += c.End - c.Start
		if size[c.Language] > most {
			best, most = c.Language, size[c.Language]
		}
	}
	return best
}
