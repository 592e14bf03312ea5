package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
)

// frame is a tool as a situation with roles to fill.
type frame struct {
	tool    plan.Tool
	shape   shape
	outputs []output
	name    []string        // stems of the tool's name and title, without stop words
	module  map[string]bool // stems of the name that only say where the tool belongs: "geo" of "geo.find_city"
	purpose []string        // stems of the first sentence of the description
	words   map[string]bool // stems of name and description
	labels  map[string]bool // stems of parameter names, descriptions and enums
	// how many parameters have a stem in their name, and in their name or description
	inNames, inTexts map[string]int
	labelStems       map[string]bool // stems of parameter names
	required         int             // number of required parameters
}

func (p *Planner) frame(t plan.Tool) *frame {
	f := &frame{tool: t, shape: readShape(t.InputSchema), outputs: readOutputs(t), words: map[string]bool{}, module: map[string]bool{}, labels: map[string]bool{}, inNames: map[string]int{}, inTexts: map[string]int{}, labelStems: map[string]bool{}}
	for _, w := range search.Words(t.Tool + " " + t.Title) {
		s := search.Stem(w)
		if !f.words[s] && !search.IsStopWord(w) {
			f.name = append(f.name, s)
		}
		f.words[s] = true
	}
	if i := strings.LastIndexAny(t.Tool, "./:"); i > 0 {
		for _, w := range search.Words(t.Tool[:i]) {
			f.module[search.Stem(w)] = true
		}
		for _, w := range search.Words(t.Tool[i:]) {
			delete(f.module, search.Stem(w))
		}
	}
	for _, w := range search.Words(firstSentence(t.Description)) {
		if s := search.Stem(w); !search.IsStopWord(w) && !slices.Contains(f.purpose, s) {
			f.purpose = append(f.purpose, s)
		}
	}
	for _, w := range search.Words(clip(t.Description, 2000)) {
		f.words[search.Stem(w)] = true
	}
	for _, q := range f.shape.params {
		q.addLabels(f.labels)
		f.count(q)
		if q.required {
			f.required++
		}
	}
	return f
}

// after reports whether the tool is named after the kind of thing that a stem is: the last word of its name.
func (f *frame) after(stem string) bool {
	return len(f.name) > 1 && f.name[len(f.name)-1] == stem
}

func firstSentence(s string) string {
	s = clip(s, 300)
	if i := strings.Index(s, ". "); i > 0 {
		return s[:i]
	}
	return s
}

// count notes the words of a parameter, to tell distinctive ones.
func (f *frame) count(q param) {
	seen := map[string]bool{}
	for _, s := range q.nameStems {
		if !seen[s] {
			seen[s] = true
			f.inNames[s]++
			f.inTexts[s]++
			f.labelStems[s] = true
		}
	}
	for s := range q.descStems {
		if !seen[s] {
			f.inTexts[s]++
		}
	}
	for _, p := range q.fields {
		f.count(p)
	}
}

func (p param) addLabels(labels map[string]bool) {
	for _, s := range p.nameStems {
		labels[s] = true
	}
	for s := range p.descStems {
		labels[s] = true
	}
	for i, e := range p.enum {
		if s, ok := e.(string); ok && i < 50 {
			for _, w := range search.Words(s) {
				labels[search.Stem(w)] = true
			}
		}
	}
	for _, q := range p.fields {
		q.addLabels(labels)
	}
	if p.items != nil {
		p.items.addLabels(labels)
	}
}
