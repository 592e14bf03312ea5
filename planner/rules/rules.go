// Package rules plans tool calls without a language model.
//
// Package intent splits the question into clauses and says which of them ask for something; package values finds what may
// be an argument. For each clause the tools that a search finds are weighed: what share of the clause a tool's texts and
// arguments explain, whether the verb asks for what the tool does, and how well its required parameters are filled. The
// parameters are filled all together, by type, by the words around a value and by its side ("from", "to"), so that the
// sum is best and nothing is used twice. A required argument that nothing in the question gives is taken from the result
// of another call where the names of fields say so. What is ambiguous is left out.
//
// A tool that writes is called only for a command or a request whose verb asks for what the tool does, and with nothing
// guessed. In an unknown language only a tool that reads and is named in the question is called.
//
// Every part of the question that no call serves is in the plan's Unmet; a call that lacks nothing but required arguments
// is in its Open as well.
//
// A Planner has no state and may be used by many goroutines. The work for a question is bounded whatever its text and
// whatever the schemas.
package rules

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

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

// maxText bounds how much of a question is read, in bytes.
const maxText = 16 << 10

// Plan plans a question over the tools of a catalog. The error is ctx's, if it ended.
func (p *Planner) Plan(ctx context.Context, query string, tools Catalog) (plan.Plan, error) {
	out := plan.Plan{Source: plan.SourceRules, Steps: []plan.Step{}}
	query = clip(query, maxText)
	clauses := intent.Split(query)
	c := chooser{p: p, ctx: ctx, tools: tools, text: query, now: p.now(), fills: map[*profile]filling{}}
	c.profiler = &profiler{lang: language(clauses), made: map[string]*profile{}}
	c.values = c.extract()
	c.choose(clauses)
	if err := ctx.Err(); err != nil {
		return plan.Plan{}, fmt.Errorf("planning by rules: %w", err)
	}
	ids := map[*call]string{}
	for _, one := range c.calls {
		ids[one] = fmt.Sprintf("s%d", len(out.Steps)+1)
		out.Steps = append(out.Steps, one.step(ids[one], ids))
	}
	for i, one := range c.open {
		out.Open = append(out.Open, one.step(fmt.Sprintf("s%d", len(out.Steps)+i+1), ids))
	}
	out.Unmet = c.unmet
	out.About = slices.ContainsFunc(clauses, about)
	out.Note = note(out)
	return out, nil
}

// language is that of most clauses.
func language(clauses []intent.Clause) string {
	best, most, count := "", 0, map[string]int{}
	for _, c := range clauses {
		count[c.Language] += c.End - c.Start
		if count[c.Language] > most {
			best, most = c.Language, count[c.Language]
		}
	}
	return best
}

// note says what to do where there is no step: which tools are nearest, and what they need.
func note(p plan.Plan) string {
	if len(p.Steps) > 0 || p.About {
		return ""
	}
	var near, open []string
	for _, u := range p.Unmet {
		if u.Reason == plan.UnmetMissingArgument {
			open = append(open, "`"+u.Tool+"`"+needs(u.Missing))
		}
		for _, n := range u.Nearest {
			if text := "`" + n.Tool + "`" + needs(n.Missing); !slices.Contains(near, text) && len(near) < maxNearest {
				near = append(near, text)
			}
		}
	}
	if len(open) > 0 {
		return "An argument is missing: " + strings.Join(open, ", ") + "."
	}
	if len(near) == 0 {
		return "No tool matches."
	}
	return "No tool matches. Closest: " + strings.Join(near, ", ") + "."
}

func needs(missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	return " (needs `" + strings.Join(missing, "`, `") + "`)"
}

// extract finds the values of the question. The year of one date holds for those that name none.
func (c *chooser) extract() []values.Value {
	o := values.Options{Now: c.now, Language: c.lang}
	out := values.Extract(c.text, o)
	dated := func(v values.Value) bool {
		return v.Kind == values.Date || v.Kind == values.DateTime || v.Kind == values.DateRange
	}
	i := slices.IndexFunc(out, func(v values.Value) bool { return dated(v) && strings.Contains(v.Text, strconv.Itoa(v.Time.Year())) })
	if i < 0 || out[i].Time.Year() == c.now.Year() {
		return out
	}
	o.Now = time.Date(out[i].Time.Year(), 1, 1, 0, 0, 0, 0, c.now.Location())
	if then := values.Extract(c.text, o); len(then) == len(out) {
		for i, v := range out {
			if dated(v) && strings.ContainsFunc(v.Text, unicode.IsDigit) {
				out[i] = then[i]
			}
		}
	}
	return out
}

// aboutWords are all that questions for what can be done here consist of.
var aboutWords = wordSet(`what can could do does you this help me with which tools are there available have here offer how
was kannst du machen können sie tun que peux tu faire pouvez vous qué puedes hacer puede`)

// about reports whether a clause asks what can be done here.
func about(cl intent.Clause) bool {
	words := strings.FieldsFunc(strings.ToLower(cl.Text), func(r rune) bool { return !unicode.IsLetter(r) })
	if len(words) < 2 || cl.Act != intent.Question && cl.Act != intent.ActionQuestion {
		return false
	}
	asked := func(some ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(some, w) })
	}
	return !slices.ContainsFunc(words, func(w string) bool { return !aboutWords[w] }) &&
		asked("what", "which", "how", "was", "que", "qué") && asked("you", "tools", "du", "sie", "tu", "vous", "puedes", "puede")
}
