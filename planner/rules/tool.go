package rules

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

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
	reads   bool
	verbs   []string           // stems of what it does
	name    []string           // stems of the words of its name that are no verbs such as "get"
	full    []string           // all words of the name
	words   map[string]float64 // stem to how much it says about the tool, at most 1
	params  []param
	outputs []output
}

// param is a parameter.
type param struct {
	name     string
	required bool
	schema   *schema.Schema
	typ      string          // JSON type, "string" if there is none
	stems    []string        // of the name
	about    string          // description, in lower case
	choices  []string        // enum values
	examples []string        // values that the description names
	layout   string          // of dates
	fallback json.RawMessage // default value, nil if there is none
}

// output is a field of a tool's result.
type output struct {
	path, typ string
	stems     []string
}

func readTool(t plan.Tool) *tool {
	out := &tool{Tool: t, reads: t.Reads(), words: map[string]float64{}}
	out.full = texts.Words(t.Tool)
	sentence, _, _ := strings.Cut(clip(t.Description, 300), ". ")
	about := texts.Words(sentence)
	for i, w := range out.full {
		switch stem := search.Stem(w); {
		case acts(w) && len(out.verbs) == 0 && (i == 0 || !acts(out.full[0])):
			out.verbs = append(out.verbs, stem)
			if !generic[w] {
				out.name = append(out.name, stem)
			}
		case !search.IsStopWord(w) && !generic[w]:
			out.name = append(out.name, stem)
		}
	}
	if len(out.verbs) == 0 && len(out.full) > 0 && !search.IsStopWord(out.full[0]) {
		out.verbs = append(out.verbs, search.Stem(out.full[0]))
	}
	if len(about) > 0 && acts(strings.TrimSuffix(about[0], "s")) {
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

// knows returns how much a word says about the tool.
func (t *tool) knows(w string) float64 {
	best := 0.0
	for _, part := range texts.Words(w) {
		stem := search.Stem(part)
		best = max(best, t.words[stem])
		for _, n := range t.name {
			if best < 0.7 && search.Related(stem, n) {
				best = 0.7
			}
		}
	}
	return best
}

// acts reports whether a word names what tools do.
func acts(w string) bool { return search.RequestVerb(w) || plan.Acts(w) || readingVerbs[w] }

func (t *tool) param(p schema.Property) param {
	q := param{name: p.Name, required: p.Required, schema: p.Schema, typ: "string"}
	if q.schema == nil {
		q.schema = &schema.Schema{}
	}
	q.fallback = q.schema.Default
	for _, w := range texts.Words(p.Name) {
		q.stems = append(q.stems, search.Stem(w))
	}
	if s := q.schema; len(s.Types) > 0 {
		q.typ = s.Types[0]
	} else if len(s.Alternatives) > 0 && len(s.Alternatives[0].Types) > 0 {
		q.typ = s.Alternatives[0].Types[0]
	}
	described := cmp.Or(q.schema.Description, q.schema.Title)
	q.about = strings.ToLower(clip(described, 600))
	q.choices = choices(q.schema)
	if q.schema.Items != nil && len(q.choices) == 0 {
		q.choices = choices(q.schema.Items)
	}
	q.examples = examples(clip(described, 600))
	q.layout = dateLayout(q.about)
	t.describe(p.Name, 0.9)
	t.describe(q.about, 0.6)
	for _, c := range q.choices[:min(len(q.choices), 50)] {
		t.describe(c, 0.8)
	}
	return q
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
	exampleList = regexp.MustCompile(`(?:[Ee]\.g\.,?|such as|[Ff]or example,?|[Ee]xamples?:|:) +([^().;]{1,200})`)
	exampleEnds = regexp.MustCompile(`, or | or | and |, |/`)
	layoutShape = regexp.MustCompile(`[ymd]{2,4}[-/. ][ymd]{2,4}[-/. ][ymd]{2,4}`)
)

// examples returns the values that a description lists: "City: Berlin, Lisbon or Toronto".
func examples(description string) (out []string) {
	for _, m := range exampleList.FindAllStringSubmatch(description, 3) {
		for _, e := range exampleEnds.Split(m[1], 20) {
			if e = strings.Trim(e, ` '"`+"`"); e != "" && len(e) <= 40 {
				out = append(out, e)
			}
		}
	}
	return out
}

// dateLayout is the layout of dates that a description asks for.
func dateLayout(about string) string {
	return strings.NewReplacer("yyyy", "2006", "mm", "01", "dd", "02", "yy", "06").Replace(layoutShape.FindString(about))
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
func (q param) named(stems map[string]bool) bool {
	return slices.ContainsFunc(q.stems, func(s string) bool { return stems[s] })
}

func (q param) numeric() bool { return q.typ == "number" || q.typ == "integer" }

// free reports whether any text may be the argument.
func (q param) free() bool {
	return q.typ == "string" && len(q.choices) == 0 && q.layout == "" && q.schema.Format == "" && !q.named(dateNames) &&
		!q.named(clockNames) && !q.named(pathNames)
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
	if slices.Contains(t.full, phrase) {
		return true
	}
	// "email ann@example.com": the noun is the verb. "order 4711" is none.
	next := token{}
	if len(c.tokens) > 1 {
		next = c.tokens[1]
	}
	noun := next.kind == quotation || next.kind == email || next.lower == "a" || next.lower == "an" || next.lower == "on" || next.lower == "the"
	return noun && slices.Contains(t.name, verb) && slices.ContainsFunc(t.verbs, func(v string) bool { return synonyms[v] == "create" || v == "send" })
}
