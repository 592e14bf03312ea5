package rules

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Bounds of the search for tools.
const (
	maxTools   = 12
	maxClauses = 16
	maxTokens  = 2000
)

// call is a planned call.
type call struct {
	tool    *tool
	filling filling
	clause  clause
}

// chooser chooses the calls for one question.
type chooser struct {
	ctx     context.Context
	catalog Catalog
	message message

	validator *plan.Validator
	known     map[string]*tool
	calls     []*call
	open      []*call // writes that only lack arguments
	unmet     []plan.Unmet
	doubt     bool // a clause before has no call, or took what follows as text: nothing is written any more
}

func (c *chooser) tool(t plan.Tool) *tool {
	if c.known[t.Name] == nil {
		c.known[t.Name] = readTool(t)
	}
	return c.known[t.Name]
}

// find returns the tools for a clause, best first.
func (c *chooser) find(text string) (out []*tool) {
	for _, t := range c.catalog.Ask(c.ctx, text, maxTools) {
		out = append(out, c.tool(t))
	}
	return out
}

// choose plans each clause.
func (c *chooser) choose() {
	for i, cl := range c.message.clauses {
		if i == maxClauses {
			cl.end = c.message.clauses[len(c.message.clauses)-1].end
			c.miss(cl, nil, plan.UnmetUnclear, "")
			return
		}
		if cl.act == nothing || cl.act == abilities || c.ctx.Err() != nil {
			continue
		}
		before := len(c.calls)
		text := c.message.text[cl.start:cl.end]
		whole := cl
		whole.tokens = slices.Concat(cl.tokens, c.earlier(cl))
		tools := c.find(whole.query(c.message.text))
		if named := namedIn(text, tools); named != nil {
			tools = []*tool{named}
		} else if cl.foreign {
			c.miss(cl, tools, plan.UnmetUnclear, "")
			c.doubt = true
			continue
		}
		switch writer := c.write(cl, tools); {
		case writer:
		case cl.act == unclear:
			c.miss(cl, tools, plan.UnmetUnclear, about(cl, tools, nil))
		default:
			c.read(cl, whole, tools)
		}
		c.doubt = c.doubt || len(c.calls) == before || c.calls[len(c.calls)-1].filling.text && !searching[cl.verb]
	}
}

// query is what to search tools for.
func (c clause) query(text string) string {
	var parts []string
	for _, t := range c.tokens {
		switch {
		case t.kind == calculation:
			parts = append(parts, text[t.start:t.end], "calculate", operations[t.operator])
		case t.kind == path && strings.HasPrefix(t.text, "/"):
			parts = append(parts, "file")
		default:
			parts = append(parts, text[t.start:t.end])
		}
		if t.kind == path {
			parts = append(parts, "file")
		}
	}
	return strings.Join(parts, " ")
}

// namedIn returns the tool whose full name is in a text.
func namedIn(text string, tools []*tool) *tool {
	text = " " + strings.NewReplacer("(", " ", ")", " ", ",", " ", "`", " ").Replace(strings.TrimRight(text, ".!?")) + " "
	for _, t := range tools {
		own := t.Tool.Tool
		for _, name := range []string{t.Server + "__" + own, t.Server + ":" + own, t.Server + "." + own, own, t.Name} {
			if strings.ContainsAny(name, "_-:.") && strings.Contains(text, " "+name+" ") {
				return t
			}
		}
	}
	return nil
}

// write plans a tool that writes, if a clause is a plain command for just that. It reports whether the clause is about
// such a tool, so that nothing else is to be called for it.
func (c *chooser) write(cl clause, tools []*tool) bool {
	if cl.act != command {
		return false
	}
	type choice struct {
		call
		score float64
	}
	var ready, lacking []*choice
	var nearest *tool
	for _, t := range tools {
		called := callVerbs[cl.verb] && namedIn(c.message.text[cl.start:cl.end], []*tool{t}) != nil
		if t.reads || !called && !t.does(cl) {
			continue
		}
		exact := called || slices.Contains(t.verbs, search.Stem(cl.verb)) || slices.Contains(t.nameWords, cl.verb+cl.lower(1))
		if nearest == nil && (exact || plan.Acts(cl.verb)) {
			nearest = t
		}
		f := fill(cl, t, c.message.text)
		covered, ok := t.covered(cl, f)
		loose := len(f.args) - f.typedCount()
		if !ok || loose > 1 || len(cl.unexplained(t, f)) > 0 {
			continue
		}
		one := &choice{call{t, f, cl}, covered + 0.3*float64(f.typedCount()) - 0.5*float64(loose)}
		if slices.Contains(t.verbs[:min(1, len(t.verbs))], search.Stem(cl.verb)) {
			one.score += 0.3
		}
		if len(f.missing) == 0 && c.invalid(t, f) {
			continue
		}
		if len(f.missing) == 0 {
			ready = append(ready, one)
		} else if len(f.args) > 0 || determined(cl) && !cl.asked {
			lacking = append(lacking, one)
		}
	}
	best := func(choices []*choice) *call {
		slices.SortStableFunc(choices, func(a, b *choice) int { return int(math.Round(100 * (b.score - a.score))) })
		if len(choices) == 0 || len(choices) > 1 && choices[0].score-choices[1].score < 0.25 {
			return nil
		}
		return &choices[0].call
	}
	allowed := c.message.plain && cl.plain && !c.doubt
	switch done, open := best(ready), best(lacking); {
	case allowed && done != nil:
		c.calls = append(c.calls, done)
	case allowed && len(ready) == 0 && open != nil:
		c.open = append(c.open, open)
		c.miss(cl, tools, plan.UnmetMissingArgument, open.tool.Name, open.filling.missing...)
	case nearest != nil:
		c.miss(cl, tools, plan.UnmetUnclear, nearest.Name)
	default:
		return false
	}
	return true
}

// invalid reports whether the schema of a tool refuses the arguments, such as a number beyond its maximum.
func (c *chooser) invalid(t *tool, f filling) bool {
	for _, a := range f.args {
		if _, later := a.value.(reference); later {
			return false
		}
	}
	return c.validator.Validate(t.InputSchema, f.json()) != nil
}

// determined reports whether the object of a command has an article: "cancel my order", not "open issues".
func determined(cl clause) bool {
	return slices.ContainsFunc(cl.tokens, func(t token) bool { return articles[t.lower] })
}

// covered reports whether a command says all that the name of a tool says, so that "delete contact C-17" deletes no
// history of it, and how many words of the name it says.
func (t *tool) covered(cl clause, f filling) (n float64, ok bool) {
	said := map[string]bool{}
	nouns := 0
	for _, x := range cl.tokens {
		said[search.Stem(x.lower)] = true
		if x.kind == word && x.lower != cl.verb && !polarity[x.lower] && x.lower != "back" && !search.IsStopWord(x.lower) && !f.takes(x) {
			nouns++
		}
		switch x.kind {
		case path:
			said["file"], said["directori"] = true, true
		case email:
			said["email"], said["mail"], said["messag"] = true, true, true
		}
	}
	for _, p := range t.params {
		if f.args[p.name].typed {
			for _, s := range p.stems {
				said[s] = true
			}
		}
	}
	open := 0
	for _, w := range t.nameWords {
		stem := search.Stem(w)
		related := func() bool {
			for s := range said {
				if search.Related(s, stem) {
					return true
				}
			}
			return false
		}
		switch {
		case said[stem]:
			n++
		case polarity[w]:
			return 0, false
		case isToolVerb(w) || search.IsStopWord(w) && len(f.args) > 0 || strings.HasPrefix(w, cl.verb) && strings.HasSuffix(w, cl.lower(1)):
		case related():
			n += 0.8
		default:
			open++
		}
	}
	return n, open == 0 || open == 1 && nouns == 0 && len(f.args) > 0 && f.typedCount() == len(f.args)
}

// unexplained returns the tokens of a command that neither an argument takes nor the tool knows.
func (c clause) unexplained(t *tool, f filling) (out []token) {
	for i, x := range c.tokens {
		last := i == len(c.tokens)-1
		switch {
		case i > 0 && x.kind == word && x.lower != c.verb && search.Stem(x.lower) == search.Stem(c.verb) && !t.names(x.lower):
			out = append(out, x) // "cancel the cancellation of order 4711"
		case i == 0, f.takes(x), x.kind == mark && (x.lower == "," || x.lower == ":"), namedIn(x.text, []*tool{t}) != nil:
		case x.kind == word && (polarity[x.lower] || x.lower == "back" || x.lower == "over") && (i == 1 || last || x.lower == "off"):
			if !slices.Contains(t.nameWords, x.lower) && !slices.Contains(t.nameWords, c.verb+x.lower) {
				out = append(out, x)
			}
		case x.lower == "and" && !last && f.labels(t, c.tokens[i+1]): // "subject … and body …"
		case x.kind == word && plainWords[x.lower] && x.lower != "and", i == 1 && (x.lower == "me" || x.lower == "us"):
		case x.kind == word && t.weightOf(x.lower) >= 0.7 && !(inflected(x.lower) && !t.names(x.lower)):
		default:
			out = append(out, x)
		}
	}
	return out
}

// labels reports whether a word names an argument.
func (f filling) labels(t *tool, x token) bool {
	return slices.ContainsFunc(t.params, func(p param) bool {
		_, given := f.args[p.name]
		return given && p.labels(x.lower)
	})
}

// inflected reports whether a word may be a participle or an adverb: "deleting", "finished", "supposedly".
func inflected(w string) bool {
	return len(w) > 4 && !adverbial[w] && (strings.HasSuffix(w, "ing") || strings.HasSuffix(w, "ed") || strings.HasSuffix(w, "ly"))
}

// names reports whether the name of a tool, of a parameter or a choice has a word.
func (t *tool) names(w string) bool {
	return slices.Contains(t.nameWords, w) || slices.ContainsFunc(t.params, func(p param) bool {
		chosen := func(s string) bool { return strings.Contains(strings.ToLower(s), w) }
		return slices.Contains(texts.Words(p.name), w) || slices.ContainsFunc(p.choices, chosen)
	})
}

// about is the name of the tool that writes and does what a clause speaks of without asking for it, by a word that
// another tool does not know.
func about(cl clause, tools []*tool, other *tool) string {
	for _, t := range tools {
		does := func(x token) bool {
			return x.kind == word && slices.Contains(t.verbs, search.Stem(x.lower)) && (other == nil || other.weightOf(x.lower) < 0.8)
		}
		if !t.reads && slices.ContainsFunc(cl.tokens, does) {
			return t.Name
		}
	}
	return ""
}

// Weights and the least score of a tool that reads. They keep false positives on the irrelevance sets of
// docs/evaluation.md below .15.
const (
	nameWeight   = 1.0
	coverWeight  = 1.2
	verbWeight   = 0.3
	typedWeight  = 0.25
	searchWeight = 0.45
	calcWeight   = 1.5
	looseShare   = 0.4
	unusedCost   = 0.35
	missingCost  = 0.6
	leastScore   = 1.12
	namedTool    = 3.0
)

// read plans the best tool that reads for a clause. whole is the clause with what it refers to.
func (c *chooser) read(cl, whole clause, tools []*tool) {
	var best, producer *call
	score, writer := 0.0, ""
	for rank, t := range tools {
		f := fill(whole, t, c.message.text)
		s := max(t.evidence(cl, f), t.evidence(whole, f)) - 0.02*float64(rank)
		if !t.reads {
			if cl.act == inform && s > score && about(cl, []*tool{t}, nil) != "" {
				best, score, writer = nil, s, t.Name
			}
			continue
		}
		acts := cl.act == command && plan.Acts(cl.verb) && !openers[cl.verb] && !f.calculated
		if acts && !slices.Contains(t.verbs, search.Stem(cl.verb)) || idle[cl.verb] {
			continue
		}
		if namedIn(c.message.text[cl.start:cl.end], []*tool{t}) != nil {
			s += namedTool
		}
		var made *call
		if len(f.missing) > 0 && s > leastScore {
			made = c.produce(cl, t, &f)
		}
		if len(f.missing) == 0 && c.invalid(t, f) {
			continue
		}
		s -= missingCost * float64(len(f.missing))
		if s > score {
			best, producer, score, writer = &call{t, f, cl}, made, s, ""
		}
	}
	if best != nil && cl.act == inform && writer == "" {
		writer = about(cl, tools, best.tool)
	}
	switch {
	case writer != "" && score >= leastScore:
		c.miss(cl, tools, plan.UnmetUnclear, writer)
	case best == nil || score < leastScore && len(best.filling.missing) == 0 || score < leastScore-0.2:
		c.miss(cl, tools, plan.UnmetNoTool, "")
	case len(best.filling.missing) > 0:
		c.open = append(c.open, best)
		c.miss(cl, tools, plan.UnmetMissingArgument, best.tool.Name, best.filling.missing...)
	default:
		if producer != nil {
			c.calls = append(c.calls, producer)
		}
		if !slices.ContainsFunc(c.calls, func(o *call) bool {
			return o.tool == best.tool && string(o.filling.json()) == string(best.filling.json())
		}) {
			c.calls = append(c.calls, best)
		}
	}
}

// earlier returns the tokens of the clause before, if a clause refers to it by a pronoun and has no value of its own.
func (c *chooser) earlier(cl clause) []token {
	refers := func(t token) bool { return t.lower == "it" || t.lower == "them" || t.lower == "there" }
	i := slices.IndexFunc(c.message.clauses, func(o clause) bool { return o.start == cl.start })
	if i < 1 || !slices.ContainsFunc(cl.tokens, refers) || slices.ContainsFunc(cl.tokens, token.value) {
		return nil
	}
	between := token{kind: mark, start: cl.end, end: cl.end}
	return slices.Concat([]token{between}, c.message.clauses[i-1].tokens[1:])
}

// evidence says how well a tool fits a clause: what share of its words the tool knows, what share of the tool's name the
// clause says, and how many values fit.
func (t *tool) evidence(cl clause, f filling) float64 {
	known, all, searches := 0.0, 0.0, false
	said := map[string]bool{}
	for i, x := range cl.tokens {
		if x.kind == word {
			for _, w := range texts.Words(x.text) {
				said[search.Stem(w)] = true
			}
		}
		if x.kind == mark || x.kind == word && (search.IsStopWord(x.lower) || courtesy[x.lower]) {
			continue
		}
		weight := 1.0
		if i == 0 && cl.act == command && isToolVerb(x.lower) {
			weight = 0.4
		}
		all += weight
		switch e := t.weightOf(x.lower); {
		case x.value() && f.takes(x) && f.taker(x).typed:
			known += weight
		case x.value() && !f.takes(x):
		case f.takes(x) && f.taker(x).typed:
			known += weight * max(0.8, e)
		case f.takes(x):
			known += weight * max(looseShare, e)
			searches = searches || e >= 0.8
		default:
			known += weight * e
		}
	}
	score := 0.0
	searches = searches || slices.Contains(t.nameWords, cl.verb) && cl.verb != "get"
	if f.text && searches {
		score = searchWeight
	}
	if all > 0 {
		score += coverWeight * known / all
	}
	if len(t.nameStems) > 0 {
		found := 0.0
		for _, n := range t.nameStems {
			switch {
			case said[n]:
				found++
			case slices.ContainsFunc(cl.tokens, func(x token) bool {
				return x.kind == word && search.Related(search.Stem(x.lower), n)
			}):
				found += 0.7
			}
		}
		score += nameWeight * found / float64(len(t.nameStems))
	}
	if strings.Contains(t.Description, "DEPRECATED") {
		score -= verbWeight
	}
	if cl.act == command && slices.Contains(t.verbs, search.Stem(cl.verb)) {
		score += verbWeight
	}
	score += typedWeight * float64(min(f.typedCount(), 3))
	for _, x := range cl.tokens {
		if x.kind == calculation {
			if f.calculated {
				score += calcWeight
			} else {
				score -= calcWeight / 2
			}
		} else if x.value() && x.kind != number && !f.takes(x) && !f.text {
			score -= unusedCost
		}
	}
	return score
}

// reference is a field of the result of an earlier call.
type reference struct {
	call *call
	path string
}

// produce gives the parameters that a clause leaves open a field of another call's result: of a call that is planned, or
// of one that reads and that the clause fills. It returns the call to make first, if it is new.
func (c *chooser) produce(cl clause, t *tool, f *filling) *call {
	if len(f.missing) > 2 {
		return nil
	}
	var left []param
	var made *call
	for _, p := range f.missing {
		found := false
		use := func(from *call) bool {
			for _, o := range from.tool.outputs {
				if from.tool != t && p.takes(o, from.tool) {
					f.args[p.name] = argument{value: reference{from, o.path}}
					return true
				}
			}
			return false
		}
		for _, earlier := range slices.Backward(c.calls) {
			if found = use(earlier); found {
				break
			}
		}
		for _, candidate := range c.catalog.Look(strings.Join(p.stems, " ")+" "+c.message.text[cl.start:cl.end], maxTools) {
			other := c.tool(candidate)
			if found || made != nil || !other.reads || other == t || len(other.outputs) == 0 {
				continue
			}
			filled := fill(cl, other, c.message.text)
			if len(filled.missing) > 0 || filled.typedCount() == 0 {
				continue
			}
			from := &call{other, filled, cl}
			if found = use(from); found {
				made = from
			}
		}
		if !found {
			left = append(left, p)
		}
	}
	f.missing = left
	return made
}

// takes reports whether a parameter may take a field of a result, by name and type.
func (p param) takes(o output, from *tool) bool {
	if o.typ != "" && o.typ != p.typ && !(p.numeric() && (o.typ == "number" || o.typ == "integer")) || len(o.stems) == 0 {
		return false
	}
	if slices.Equal(p.stems, o.stems) {
		return len(p.stems) > 1 || !common[p.stems[0]]
	}
	last := len(p.stems) - 1 // "hotel_id" takes the "id" that find_hotel returns
	return last > 0 && idNames[p.stems[last]] && len(o.stems) == 1 && o.stems[0] == p.stems[last] && slices.Contains(from.nameStems, p.stems[0])
}
