package rules

import (
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/search"
)

// Some questions need a kind of tool that they do not name: a calculation needs one that evaluates
// expressions, news one that searches. implied returns the tools of that kind.
func (c *chooser) implied(r reading) []plan.Tool {
	var out []plan.Tool
	if slices.ContainsFunc(r.mentions, func(m mention) bool { return m.kind == kindFormula }) {
		out = append(out, c.tools.Look("calculate evaluate mathematical expression", 3)...)
	}
	if r.current() {
		out = append(out, c.tools.Look("search web internet news query", 3)...)
	}
	return out
}

// current reports whether a question is about what is going on: no store of facts but a search
// answers it.
func (r reading) current() bool {
	for i, t := range r.tokens {
		if t.is("news", "headlines", "latest", "breaking") || t.is("new") && i > 0 && r.tokens[i-1].is("is", "what") {
			return true
		}
	}
	return false
}

// searches reports whether a tool looks things up by free text.
func (f *frame) searches() bool {
	return slices.ContainsFunc([]string{"search", "web", "internet", "news"}, func(s string) bool {
		return slices.Contains(f.name, s) || slices.Contains(f.purpose, s)
	})
}

// openQuery lets the free-text parameter of a searching tool take what the question is about.
func (f *filler) openQuery(q param) []candidate {
	if !q.required || q.classOf() != classQuery || !f.frame.searches() || !f.r.current() {
		return nil
	}
	start, end := 0, len(f.r.tokens)
	for start < end && (f.r.tokens[start].stop() || search.RequestVerb(f.r.tokens[start].lower)) {
		start++
	}
	for end > start && (f.r.tokens[end-1].punct() || f.r.tokens[end-1].is("please", "thanks")) {
		end--
	}
	if start == end {
		return nil
	}
	text := strings.TrimSpace(f.r.between(start, end))
	return []candidate{{text, 4, mention{kind: kindPhrase, start: start, end: end, text: text}}}
}
