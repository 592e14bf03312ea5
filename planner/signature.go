package planner

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/llm"
	"github.com/agenticnexus/agenticnexus/internal/plan"
	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/internal/texts"
)

// Bounds of a signature. Definitions of tools are untrusted.
const (
	maxParameters  = 30
	maxExplanation = 120 // bytes about one parameter
	maxDescription = 500 // bytes about a tool
	maxName        = 200 // bytes
)

// signature has the parts of a tool's description in a prompt.
type signature struct {
	name     string
	params   []string // with their types, the required ones first
	required int      // of them
	cut      bool     // there are others
	result   string
	hints    string
	about    string
	notes    []string // about parameters
	full     string   // the long description, at most maxTool bytes
	line     string   // the brief description, at most maxBrief bytes
}

// newSignature reads the definition of a tool.
func newSignature(t *plan.Tool) *signature {
	s := &signature{name: texts.Line(t.Name, maxName), hints: hints(t.Annotations)}
	if s.about = texts.Line(t.Description, maxDescription); s.about == "" {
		s.about = texts.Line(t.Title, maxDescription)
	}
	if output, err := schema.Read(t.OutputSchema); err == nil && len(t.OutputSchema) > 0 {
		s.result = " -> " + texts.Cut((&typeWriter{}).typeOf(output, 0), maxType)
	}
	input, err := schema.Read(t.InputSchema)
	if err != nil {
		s.cut = true
		return s
	}
	parameters := slices.Clone(input.Fields)
	slices.SortStableFunc(parameters, func(a, b schema.Property) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	if len(parameters) > maxParameters {
		parameters, s.cut = parameters[:maxParameters], true
	}
	var w typeWriter
	for _, p := range parameters {
		param := w.property(p, 0)
		if d := p.Default; len(d) > 0 && len(d) <= 40 {
			param += " = " + texts.Line(string(d), maxName)
		}
		s.params = append(s.params, param)
		if p.Required {
			s.required++
		}
		if p.Description != "" {
			s.notes = append(s.notes, "\n  "+texts.Line(p.Name, maxName)+": "+texts.Line(p.Description, maxExplanation))
		}
	}
	return s
}

// learn adds the learned result type and argument names of a tool that does not declare them.
func (s *signature) learn(result string, arguments []string) {
	if s.result == "" && result != "" {
		s.result = " -> " + texts.Cut(result, maxType) + " (seen)"
	}
	if len(s.params) == 0 && !s.cut && len(arguments) > 0 {
		s.notes = append(s.notes, "\n  accepted before: "+texts.Line(strings.Join(arguments, ", "), maxExplanation))
	}
}

// call writes the call of the tool with the first n of its parameters.
func (s *signature) call(n int) string {
	params := strings.Join(s.params[:n], ", ")
	if n < len(s.params) || s.cut {
		if n > 0 {
			params += ", "
		}
		params += "…"
	}
	return s.name + "(" + params + ")"
}

// long describes the tool in a few lines: its call, its purpose and its parameters. "…" marks omissions.
//
//	web_search(query: string, limit?: integer = 10) -> {results: {title: string, url: string}[]} [read-only]
//	  Searches the web.
//	  query: words to look for
//
// It has at most limit bytes, including the marks of data lines. Descriptions of parameters are left out first.
func (s *signature) long(limit int) string {
	const mark, left = len(llm.DataMark), "\n  …"
	text := texts.Cut(s.call(len(s.params))+s.result+s.hints, limit-mark-len("…"))
	if room := limit - len(text) - 2*mark - len(left); s.about != "" && room > 0 {
		text += "\n  " + texts.Cut(s.about, room)
	}
	lines := 1 + strings.Count(text, "\n")
	for i, note := range s.notes {
		rest := 0
		if i < len(s.notes)-1 {
			rest = len(left) + mark
		}
		if lines++; len(text)+len(note)+lines*mark+rest > limit {
			if len(text)+len(left)+lines*mark <= limit {
				text += left
			}
			break
		}
		text += note
	}
	return text
}

// brief describes the tool in a line of at most limit bytes or, if that is not possible, by its name alone. "…" marks
// omissions. It reports whether the line has all required parameters.
func (s *signature) brief(limit int) (text string, complete bool) {
	const least = 20 // bytes of a useful description
	text = s.call(s.required)
	tail := s.hints
	if len(text)+len(tail) > limit && tail != "" {
		tail = " …"
	}
	text += tail
	if complete = len(text) <= limit && !(s.cut && s.required == len(s.params)); !complete {
		text = s.name + "(…)"
	}
	switch room := limit - len(text) - len(": …"); {
	case s.about == "":
	case room >= min(least, len(s.about)):
		text += ": " + texts.Cut(s.about, room)
	case !strings.Contains(text, "…") && room >= 0:
		text += ": …"
	}
	return text, complete
}

// minBrief is the least length of a brief description.
func (s *signature) minBrief() int { return len(s.name) + len("(…)") }

func hints(a plan.Annotations) string {
	switch {
	case a.ReadOnly():
		return " [read-only]"
	case a.Destructive():
		return " [destructive]"
	}
	return ""
}

// signatureOf returns the signature of a tool with its full and brief descriptions. mark is added to its hints.
func (p *Planner) signatureOf(t *plan.Tool, mark string) *signature {
	s := newSignature(t)
	s.hints += mark
	if p.learned != nil {
		s.learn(p.learned(t))
	}
	s.full = s.long(maxTool)
	s.line, _ = s.brief(maxBrief)
	return s
}

// Bounds of a type. Schemas are untrusted.
const (
	maxTypeDepth = 5
	maxChoices   = 12  // of an enum or union
	maxType      = 300 // bytes of one type
	maxTypes     = 300 // types written for one tool
)

// typeWriter writes the types of one schema.
type typeWriter struct{ types int } // so far

// typeOf writes a schema as a type.
func (w *typeWriter) typeOf(s *schema.Schema, depth int) string {
	if w.types++; s == nil || depth > maxTypeDepth || w.types > maxTypes {
		return "any"
	}
	var parts []string
	switch {
	case s.Enum != nil:
		for _, v := range s.Enum[:min(len(s.Enum), maxChoices+1)] {
			parts = append(parts, texts.Line(string(v), maxName))
		}
	case len(s.Alternatives) > 0 && len(s.Properties) == 0:
		for _, a := range s.Alternatives[:min(len(s.Alternatives), maxChoices+1)] {
			parts = append(parts, w.typeOf(a, depth+1))
		}
	case len(s.Types) == 0:
		parts = append(parts, "any")
	default:
		for _, name := range s.Types {
			parts = append(parts, w.named(name, s, depth))
		}
	}
	if s.Nullable {
		parts = append(parts, "null")
	}
	var once []string
	for _, p := range parts {
		if len(once) == maxChoices {
			once = append(once, "…")
			break
		}
		if !slices.Contains(once, p) {
			once = append(once, p)
		}
	}
	return strings.Join(once, " | ")
}

// named writes one of the types of a schema.
func (w *typeWriter) named(name string, s *schema.Schema, depth int) string {
	low, high := s.Bounds["minimum"], s.Bounds["maximum"]
	switch name {
	case "array":
		return w.array(s, depth) + interval(s.Bounds["minItems"], s.Bounds["maxItems"], " items")
	case "object":
		return w.object(s, depth)
	case "string":
		if s.Format != "" {
			name += "<" + texts.Line(s.Format, 40) + ">"
		}
		if s.Pattern != "" && len(s.Pattern) <= 40 {
			name += " /" + texts.Line(s.Pattern, 40) + "/"
		}
		return name + interval(s.Bounds["minLength"], s.Bounds["maxLength"], " characters")
	case "integer", "number":
		if x := s.Bounds["exclusiveMinimum"]; low == "" && x != "" {
			low = ">" + x
		}
		if x := s.Bounds["exclusiveMaximum"]; high == "" && x != "" {
			high = "<" + x
		}
		name += interval(low, high, "")
		if x := s.Bounds["multipleOf"]; x != "" {
			name += " step " + string(x)
		}
		return texts.Line(name, 60)
	}
	return texts.Line(name, 40)
}

// interval writes bounds. Either may be missing.
func interval(low, high json.Number, unit string) string {
	if low == "" && high == "" {
		return ""
	}
	return " " + texts.Line(string(low+".."+high), 40) + unit
}

func (w *typeWriter) array(s *schema.Schema, depth int) string {
	if s.Items == nil && len(s.PrefixItems) > 0 {
		var parts []string
		for _, p := range s.PrefixItems[:min(len(s.PrefixItems), maxChoices)] {
			parts = append(parts, w.typeOf(p, depth+1))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	item := w.typeOf(s.Items, depth+1)
	if strings.Contains(item, " ") && !(strings.HasPrefix(item, "{") && strings.HasSuffix(item, "}")) {
		item = "(" + item + ")"
	}
	return item + "[]"
}

func (w *typeWriter) object(s *schema.Schema, depth int) string {
	var parts []string
	for i, p := range s.Fields {
		if i == maxChoices {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, w.property(p, depth+1))
	}
	if s.Additional != nil {
		parts = append(parts, "[name]: "+w.typeOf(s.Additional, depth+1))
	}
	if len(parts) == 0 {
		return "object"
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// property writes a property with its type.
func (w *typeWriter) property(p schema.Property, depth int) string {
	name := texts.Line(p.Name, maxName)
	if !p.Required {
		name += "?"
	}
	return name + ": " + texts.Cut(w.typeOf(p.Schema, depth), maxType)
}
