package rules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/internal/search"
	"github.com/agenticnexus/agenticnexus/internal/segment"
)

// Bounds of what is read of a tool.
const (
	maxParams = 64
	maxDepth  = 3
	maxEnum   = 2000
)

// profile is a tool as its own texts describe it.
type profile struct {
	tool    plan.Tool
	reads   bool
	verb    string   // stem of what the tool does: the verb of its name, or of its description
	by      string   // stem of how it does that: "controls a lamp by setting its colour", or what else it calls that
	first   string   // stem of the first word of the name
	name    []string // stems of name and title, without stop words
	module  stems    // stems that only say where the tool belongs: of its server, and "geo" of "geo.find_city"
	words   stems    // of name and description
	labels  stems    // of parameter names, descriptions and choices
	params  []param
	outputs []output
	shared  map[string]int // how many parameters have a stem in their names
	broken  bool           // the input schema cannot be read
}

// param is a parameter, or a field of one.
type param struct {
	schema.Property
	stems []string // of its name
	about stems    // of its description
	role  role
}

func (q param) named(stem string) bool { return slices.Contains(q.stems, stem) }

func (f *profile) named(stem string) bool { return slices.Contains(f.name, stem) }

// isForDirectories reports whether a tool is for directories and not for files, by its name.
func (f *profile) isForDirectories() bool { return f.named("directori") && !f.named("file") }

// output is a field of a tool's result.
type output struct {
	path  string
	kind  string
	stems []string
}

// profiler makes profiles of tools for one question.
type profiler struct {
	lang string
	made map[string]*profile // by plan name
}

// stems returns the stems of a text's words in their order, without stop words.
func (r *profiler) stems(text string) []string {
	var out []string
	for _, w := range segment.Words(text) {
		if !search.IsStopWord(w) {
			own, _ := search.StemsIn(w, r.lang) // for a catalog in the language of the question
			out = append(out, search.Stem(w), own[0])
		}
	}
	return unique(out)
}

func (r *profiler) profile(t plan.Tool) *profile {
	if f := r.made[t.Name]; f != nil {
		return f
	}
	f := &profile{tool: t, reads: t.Reads(), verb: toolVerb(t), name: r.stems(t.Tool + " " + t.Title),
		module: stems{}, words: stems{}, labels: stems{}, shared: map[string]int{}}
	if m := byDoing().FindStringSubmatch(clip(t.Description, 300)); m != nil && !list("changes")[f.verb] {
		f.by = search.Stem(m[1])
	} else if words := segment.Words(clip(t.Description, 300)); len(words) > 0 && !f.reads {
		f.by = search.Stem(strings.TrimSuffix(words[0], "s")) // remove_from_cart: "Takes a product out of the cart"
	}
	if words := segment.Words(t.Tool); len(words) > 0 {
		f.first = search.Stem(words[0])
	}
	if i := strings.LastIndexAny(t.Tool, "./:"); i > 0 {
		for _, s := range r.stems(t.Tool[:i]) {
			f.module[s] = !slices.Contains(r.stems(t.Tool[i:]), s)
		}
	}
	for _, s := range r.stems(t.Server) {
		f.module[s] = !slices.Contains(f.name, s)
	}
	f.words.add(f.name)
	f.words.add(r.stems(clip(t.Description, 2000)))
	input, err := schema.Read(t.InputSchema)
	if f.broken = err != nil; !f.broken {
		f.params = r.params(f, input, 0)
	}
	if result, err := schema.Read(t.OutputSchema); err == nil {
		f.outputs = r.outputs(result, "", 0)
	}
	r.made[t.Name] = f
	return f
}

// params reads the properties of an object, and the words of all that is in them.
func (r *profiler) params(f *profile, s *schema.Schema, depth int) []param {
	var out []param
	for _, field := range s.Fields[:min(len(s.Fields), maxParams)] {
		if field.Schema == nil {
			field.Schema = &schema.Schema{}
		}
		p := param{Property: field, stems: r.stems(field.Name), about: stems{}}
		described := r.stems(clip(cmp.Or(field.Description, field.Title), 600))
		p.about.add(described)
		p.role = roleOf(p)
		f.labels.add(append(described, p.stems...))
		for _, choice := range choices(field.Schema)[:min(len(field.Enum), 50)] {
			f.labels.add(r.stems(choice))
		}
		for _, s := range p.stems {
			f.shared[s]++
		}
		for _, inner := range []*schema.Schema{field.Schema, field.Items} {
			if inner != nil && depth < maxDepth {
				r.params(f, inner, depth+1)
			}
		}
		out = append(out, p)
	}
	return out
}

// outputs reads the fields of a result. Inside a list it is the first element that is referred to.
func (r *profiler) outputs(s *schema.Schema, path string, depth int) []output {
	var out []output
	for _, field := range s.Fields[:min(len(s.Fields), maxParams)] {
		at := path + field.Name
		out = append(out, output{path: at, kind: kindOf(field.Schema), stems: r.stems(field.Name)})
		if field.Schema != nil && depth < maxDepth {
			out = append(out, r.outputs(field.Schema, at+".", depth+1)...)
			if field.Items != nil {
				out = append(out, r.outputs(field.Items, at+".0.", depth+1)...)
			}
		}
	}
	return out
}

// required returns the parameters that a call has to give.
func (f *profile) required() []param {
	return slices.DeleteFunc(slices.Clone(f.params), func(p param) bool { return !p.Required })
}

// kindOf is the first type that a schema names, "" for none.
func kindOf(s *schema.Schema) string {
	for s != nil && len(s.Types) == 0 && len(s.Alternatives) > 0 {
		s = s.Alternatives[0]
	}
	if s == nil || len(s.Types) == 0 {
		return ""
	}
	return s.Types[0]
}

func numeric(kind string) bool { return kind == "number" || kind == "integer" }

// choices returns the texts that a parameter may be.
func choices(s *schema.Schema) []string {
	var out []string
	for _, v := range s.Enum[:min(len(s.Enum), maxEnum)] {
		out = append(out, strings.Trim(string(v), `"`))
	}
	return out
}

// toolVerb is the stem of what a tool does: the first verb of its name, else that of its description.
func toolVerb(t plan.Tool) string {
	sentence, _, _ := strings.Cut(clip(t.Description, 300), ". ")
	name := segment.Words(t.Tool)
	for k, words := range [][]string{name, segment.Words(sentence)} {
		for i, w := range words[:min(len(words), 8)] {
			if search.RequestVerb(w) || i == 0 && k > 0 {
				return search.Stem(strings.TrimSuffix(w, "s"))
			}
		}
	}
	if len(name) == 0 {
		return ""
	}
	return search.Stem(name[0])
}

// byDoing is how descriptions say how a tool does what it does.
var byDoing = lazy(`\bby (\w+ing)\b`)

// does reports whether a verb of a question, given by its stems, asks for what a tool does.
func (f *profile) does(verb []string) bool {
	return slices.ContainsFunc(verb, func(v string) bool {
		same := func(s string) bool { return s == v || sameGroup(s, v) }
		noun := !f.module[v] && (list("creating")[f.verb] && f.named(v) && v != "file" || f.first == v) // not "file an issue"
		sum := f.reads && slices.ContainsFunc(f.name, func(n string) bool { return sameGroup(v, n) })   // "add" for get_sum
		return same(f.verb) || same(f.by) || noun || sum || slices.ContainsFunc(f.params, func(p param) bool {
			return slices.ContainsFunc(choices(p.Schema), func(c string) bool { // "decline": response is accept or decline
				return !strings.HasSuffix(c, "ed") && same(search.Stem(strings.ToLower(c))) // "cancelled" is nothing to do
			})
		})
	})
}

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "")
	}
	return s
}
