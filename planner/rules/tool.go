package rules

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Bounds of what is read of a tool.
const (
	maxParams = 40
	maxDepth  = 3
	maxEnum   = 300
)

// tool is a tool as its own texts describe it.
type tool struct {
	plan.Tool
	reads     bool
	verbs     []string           // stems of what it does
	nameStems []string           // of the name, without generic words such as "get"
	nameWords []string           // all words of the name
	words     map[string]float64 // stem to how much it says about the tool, at most 1
	params    []param
	outputs   []output
}

// param is a parameter.
type param struct {
	name         string
	required     bool
	schema       *schema.Schema
	typ          string          // JSON type, "string" if there is none
	stems        []string        // of the name
	about        string          // description, in lower case
	choices      []string        // enum values
	examples     []string        // values that the description names
	layout       string          // of dates
	defaultValue json.RawMessage // nil if there is none
}

// output is a field of a tool's result.
type output struct {
	path, typ string
	stems     []string
}

func readTool(t plan.Tool) *tool {
	out := &tool{Tool: t, reads: t.Reads(), words: map[string]float64{}}
	out.nameWords = texts.Words(t.Tool)
	sentence, _, _ := strings.Cut(clip(t.Description, 300), ". ")
	about := texts.Words(sentence)
	for _, w := range out.nameWords {
		switch stem := search.Stem(w); {
		case isToolVerb(w) && len(out.verbs) == 0: // the first verb of the name
			out.verbs = append(out.verbs, stem)
			if !generic[w] {
				out.nameStems = append(out.nameStems, stem)
			}
		case !search.IsStopWord(w) && !generic[w]:
			out.nameStems = append(out.nameStems, stem)
		}
	}
	if len(out.verbs) == 0 && len(out.nameWords) > 0 && !search.IsStopWord(out.nameWords[0]) {
		out.verbs = append(out.verbs, search.Stem(out.nameWords[0]))
	}
	if len(about) > 0 && isToolVerb(strings.TrimSuffix(about[0], "s")) {
		out.verbs = append(out.verbs, search.Stem(about[0]))
	}
	out.describe(t.Server, 0.4)
	out.describe(clip(t.Description, 1500), 0.6)
	out.describe(sentence, 0.8)
	out.describe(t.Title, 0.9)
	out.describe(t.Tool, 1)
	if input, err := schema.Read(t.InputSchema); err == nil {
		for _, field := range input.Fields[:min(len(input.Fields), maxParams)] {
			out.params = append(out.params, out.param(field))
		}
	}
	if result, err := schema.Read(t.OutputSchema); err == nil && len(t.OutputSchema) > 0 {
		out.outputs = outputs(result, "", 0)
	}
	return out
}

// describe notes what a text says about the tool.
func (t *tool) describe(text string, weight float64) {
	for _, w := range texts.Words(text) {
		if !search.IsStopWord(w) && !risky[w] {
			t.words[search.Stem(w)] = max(t.words[search.Stem(w)], weight)
		}
	}
}

// weightOf returns how much a word says about the tool.
func (t *tool) weightOf(w string) float64 {
	best := 0.0
	for _, part := range texts.Words(w) {
		stem := search.Stem(part)
		best = max(best, t.words[stem])
		for _, n := range t.nameStems {
			if best < 0.7 && search.Related(stem, n) {
				best = 0.7
			}
		}
	}
	return best
}

// isToolVerb reports whether a word names what tools do.
func isToolVerb(w string) bool { return search.RequestVerb(w) || plan.Acts(w) || readingVerbs[w] }

func (t *tool) param(field schema.Property) param {
	p := param{name: field.Name, required: field.Required, schema: field.Schema, typ: "string"}
	if p.schema == nil {
		p.schema = &schema.Schema{}
	}
	p.defaultValue = p.schema.Default
	for _, w := range texts.Words(field.Name) {
		p.stems = append(p.stems, search.Stem(w))
	}
	if s := p.schema; len(s.Types) > 0 {
		p.typ = s.Types[0]
	} else if len(s.Alternatives) > 0 && len(s.Alternatives[0].Types) > 0 {
		p.typ = s.Alternatives[0].Types[0]
	}
	described := cmp.Or(p.schema.Description, p.schema.Title)
	p.about = strings.ToLower(clip(described, 600))
	p.choices = choices(p.schema)
	if p.schema.Items != nil && len(p.choices) == 0 {
		p.choices = choices(p.schema.Items)
	}
	p.examples = examples(clip(described, 600))
	p.layout = dateLayout(p.about)
	t.describe(field.Name, 0.9)
	t.describe(p.about, 0.6)
	for _, c := range p.choices[:min(len(p.choices), 50)] {
		t.describe(c, 0.8)
	}
	return p
}

func choices(s *schema.Schema) (out []string) {
	for _, v := range s.Enum[:min(len(s.Enum), maxEnum)] {
		if text := strings.Trim(string(v), `"`); text != "" && text != "null" {
			out = append(out, text)
		}
	}
	return out
}

var (
	exampleList = pattern.New(`(?:[Ee]\.g\.,?|such as|[Ff]or example,?|[Ee]xamples?:|:) +([^().;]+)`)
	exampleEnds = pattern.New(`, or | or | and |, |/`)
	layoutShape = pattern.New(`[ymd]{2,4}[-/. ][ymd]{2,4}[-/. ][ymd]{2,4}`)
)

// examples returns the values that a description lists: "City: Berlin, Lisbon or Toronto".
func examples(description string) (out []string) {
	for _, m := range exampleList().FindAllStringSubmatch(description, 3) {
		for _, e := range exampleEnds().Split(m[1], 20) {
			if e = strings.Trim(e, ` '"`+"`"); e != "" && len(e) <= 40 {
				out = append(out, e)
			}
		}
	}
	return out
}

// dateLayout is the layout of dates that a description asks for.
func dateLayout(about string) string {
	return strings.NewReplacer("yyyy", "2006", "mm", "01", "dd", "02", "yy", "06").Replace(layoutShape().FindString(about))
}

// outputs reads the fields of a result. In a list it is the first element that is referred to.
func outputs(s *schema.Schema, path string, depth int) (out []output) {
	if s == nil || depth > maxDepth {
		return nil
	}
	for _, f := range s.Fields[:min(len(s.Fields), maxParams)] {
		o := output{path: path + f.Name}
		for _, w := range texts.Words(f.Name) {
			o.stems = append(o.stems, search.Stem(w))
		}
		if f.Schema == nil {
			continue
		}
		if len(f.Types) > 0 {
			o.typ = f.Types[0]
		}
		out = append(out, o)
		out = append(out, outputs(f.Schema, o.path+".", depth+1)...)
		out = append(out, outputs(f.Items, o.path+".0.", depth+1)...)
	}
	return out
}

// named reports whether the name of a parameter has one of some stems.
func (p param) named(stems map[string]bool) bool {
	return slices.ContainsFunc(p.stems, func(s string) bool { return stems[s] })
}

func (p param) numeric() bool { return p.typ == "number" || p.typ == "integer" }

// free reports whether any text may be the argument.
func (p param) free() bool {
	return p.typ == "string" && len(p.choices) == 0 && p.layout == "" && p.schema.Format == "" && !p.named(dateNames) &&
		!p.named(clockNames) && !p.named(pathNames)
}

// does reports whether a verb of a command, with the particle after it, asks for what a tool does.
func (t *tool) does(c clause) bool {
	verb := search.Stem(c.verb)
	phrase := c.verb + c.lower(1) // "roll back" is rollback
	for _, v := range t.verbs {
		if v == verb || v == search.Stem(phrase) || synonyms[v] != "" && synonyms[v] == synonyms[verb] {
			return true
		}
	}
	if slices.Contains(t.nameWords, phrase) {
		return true
	}
	// "email ann@example.com": the noun is the verb. "order 4711" is none.
	next := token{}
	if len(c.tokens) > 1 {
		next = c.tokens[1]
	}
	noun := next.kind == quotation || next.kind == email || next.lower == "a" || next.lower == "an" || next.lower == "on" || next.lower == "the"
	return noun && slices.Contains(t.nameStems, verb) && slices.ContainsFunc(t.verbs, func(v string) bool { return synonyms[v] == "create" || v == "send" })
}
