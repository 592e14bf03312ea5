package rules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/internal/search"
)

// maxParams bounds how many parameters of a tool are filled.
const maxParams = 64

// profile is a tool as its own texts describe it.
type profile struct {
	tool    plan.Tool
	reads   bool
	verb    string          // stem of what the tool does: the verb of its name, or of its description
	name    []string        // stems of name and title, without stop words
	module  map[string]bool // stems of the name that only say where the tool belongs: "geo" of "geo.find_city"
	words   map[string]bool // stems of name and description
	labels  map[string]bool // stems of parameter names, descriptions and choices
	params  []param
	outputs []output
	shared  map[string]int // how many parameters have a stem in their names
	broken  bool           // the input schema cannot be read
}

// param is a parameter, or a field of one.
type param struct {
	schema.Property
	stems []string        // of its name
	about map[string]bool // stems of its description
}

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
	for _, w := range search.Words(text) {
		if !search.IsStopWord(w) {
			own, _ := search.StemsIn(w, r.lang) // for a catalog in the language of the question
			out = append(out, search.Stem(w))
			if own[0] != out[len(out)-1] {
				out = append(out, own[0])
			}
		}
	}
	return out
}

func (r *profiler) profile(t plan.Tool) *profile {
	if f := r.made[t.Name]; f != nil {
		return f
	}
	f := &profile{tool: t, reads: t.Reads(), module: map[string]bool{}, words: map[string]bool{}, labels: map[string]bool{}, shared: map[string]int{}}
	f.name = unique(r.stems(t.Tool + " " + t.Title))
	if i := strings.LastIndexAny(t.Tool, "./:"); i > 0 {
		for _, s := range r.stems(t.Tool[:i]) {
			f.module[s] = !slices.Contains(r.stems(t.Tool[i:]), s)
		}
	}
	add(f.words, f.name)
	add(f.words, r.stems(clip(t.Description, 2000)))
	f.verb = toolVerb(t)
	input, err := schema.Read(t.InputSchema)
	f.broken = err != nil
	if err == nil {
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
		p := param{Property: field, stems: unique(r.stems(field.Name)), about: map[string]bool{}}
		add(p.about, r.stems(clip(cmp.Or(field.Description, field.Title), 600)))
		add(f.labels, p.stems)
		for s := range p.about {
			f.labels[s] = true
		}
		for _, choice := range choices(field.Schema, 50) {
			add(f.labels, r.stems(choice))
		}
		for _, s := range p.stems {
			f.shared[s]++
		}
		for _, inner := range []*schema.Schema{field.Schema, field.Items} {
			if inner != nil && depth < 3 {
				r.params(f, inner, depth+1)
			}
		}
		out = append(out, p)
	}
	return out
}

// maxOutputDepth is how deep inside a result fields are still referred to.
const maxOutputDepth = 3

// outputs reads the fields of a result. Inside a list it is the first element that is referred to.
func (r *profiler) outputs(s *schema.Schema, path string, depth int) []output {
	var out []output
	for _, field := range s.Fields[:min(len(s.Fields), maxParams)] {
		at := path + field.Name
		out = append(out, output{path: at, kind: kindOf(field.Schema), stems: unique(r.stems(field.Name))})
		if field.Schema != nil && depth < maxOutputDepth {
			out = append(out, r.outputs(field.Schema, at+".", depth+1)...)
			if field.Items != nil {
				out = append(out, r.outputs(field.Items, at+".0.", depth+1)...)
			}
		}
	}
	return out
}

// kindOf is the first type that a schema names, "" for none.
func kindOf(s *schema.Schema) string {
	if s == nil {
		return ""
	}
	for len(s.Types) == 0 && len(s.Alternatives) > 0 {
		s = s.Alternatives[0]
	}
	if len(s.Types) == 0 {
		return ""
	}
	return s.Types[0]
}

// choices returns the texts that a parameter, or the elements of a list, may be.
func choices(s *schema.Schema, limit int) []string {
	values := s.Enum
	if len(values) == 0 && s.Items != nil {
		values = s.Items.Enum
	}
	var out []string
	for _, v := range values[:min(len(values), limit)] {
		out = append(out, strings.Trim(string(v), `"`))
	}
	return out
}

// maxEnum bounds how many choices of a parameter are looked for.
const maxEnum = 2000

// required returns the parameters that a call has to give.
func (f *profile) required() []param {
	return slices.DeleteFunc(slices.Clone(f.params), func(p param) bool { return !p.Required })
}

func firstSentence(s string) string {
	s = clip(s, 300)
	if i := strings.Index(s, ". "); i > 0 {
		return s[:i]
	}
	return s
}

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "")
	}
	return s
}

func add(set map[string]bool, stems []string) {
	for _, s := range stems {
		set[s] = true
	}
}

// unique drops what stands twice.
func unique(stems []string) []string {
	var out []string
	for _, s := range stems {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
