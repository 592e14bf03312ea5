package planner

import (
	"cmp"
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
	maxCall        = 300 // bytes of the required ones in a shortened list
	maxExplanation = 120 // bytes about one parameter
	maxDescription = 500 // bytes about a tool
	maxName        = 200 // bytes
)

// signature has the parts of a tool's description in a prompt.
type signature struct {
	name     string
	params   []string // with their types, the required ones first
	required []string // the names of all required ones
	optional bool     // there are others
	cut      bool     // not all are in params
	unknown  bool     // the tool does not declare its parameters
	accepted string   // names of arguments that it accepted, if it does not declare them
	result   string
	text     bool // the declared result is no more than a text
	hints    string
	mark     string // of approval
	about    string
	notes    []string // about parameters
}

// newSignature reads the definition of a tool.
func newSignature(t *plan.Tool) *signature {
	s := &signature{name: texts.Line(t.Name, maxName), hints: hints(t.Annotations)}
	if s.about = texts.Line(t.Description, maxDescription); s.about == "" {
		s.about = texts.Line(t.Title, maxDescription)
	}
	if output, err := schema.Read(t.OutputSchema); err == nil && len(t.OutputSchema) > 0 {
		s.result = " -> " + texts.Cut((&typeWriter{}).typeOf(output, 0), maxType)
		s.text = slices.Equal(output.Types, []string{"string"}) || plan.DeclaresText(output)
	}
	input, err := schema.Read(t.InputSchema)
	if err != nil || len(input.Fields) == 0 && !takesNothing(t.InputSchema) {
		s.unknown = true
		return s
	}
	var parameters, optional []schema.Property
	for _, p := range input.Fields {
		if !p.Required {
			optional = append(optional, p)
			continue
		}
		parameters = append(parameters, p)
		s.required = append(s.required, texts.Line(p.Name, maxName))
	}
	parameters = append(parameters, optional...)
	s.optional = len(parameters) > len(s.required)
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
		if !repeats(p.Name, p.Description) {
			s.notes = append(s.notes, "\n  "+texts.Line(p.Name, maxName)+": "+texts.Line(p.Description, maxExplanation))
		}
	}
	return s
}

// takesNothing reports whether a schema without properties says that there are none.
func takesNothing(input json.RawMessage) bool {
	var s struct {
		Properties           map[string]json.RawMessage `json:"properties"`
		AdditionalProperties json.RawMessage            `json:"additionalProperties"`
	}
	return json.Unmarshal(input, &s) == nil && (s.Properties != nil || string(s.AdditionalProperties) == "false")
}

// repeats reports whether a text about a parameter says no more than its name.
func repeats(name, text string) bool {
	known := append(texts.Words(name), "the", "a", "an", "of", "for", "to", "this", "parameter", "argument", "value")
	return !slices.ContainsFunc(texts.Words(text), func(w string) bool { return !slices.Contains(known, w) })
}

// learn adds the learned result type and argument names of a tool that does not declare them. An object whose names are
// not known yet says less than a declared text.
func (s *signature) learn(result string, arguments []string) {
	if result != "" && (s.result == "" || s.text && result != "object") {
		s.result = " -> " + texts.Cut(result, maxType) + " (seen)"
	}
	if s.unknown && len(arguments) > 0 {
		s.accepted = "accepted before: " + texts.Line(strings.Join(arguments, ", "), maxExplanation)
	}
}

// call writes the call of the tool.
func (s *signature) call() string {
	params := strings.Join(s.params, ", ")
	switch {
	case s.unknown:
		params = cmp.Or(s.accepted, "arguments unknown")
	case s.cut:
		params += ", …"
	}
	return s.name + "(" + params + ")"
}

// names returns the names of the required parameters; "…" stands for optional ones.
func (s *signature) names() string {
	params := slices.Clone(s.required)
	switch {
	case s.unknown:
		params = append(params, "arguments unknown")
	case s.optional:
		params = append(params, "…")
	}
	return "(" + strings.Join(params, ", ") + ")"
}

// short writes the name of the tool with those of its required parameters. The mark of approval is a character behind.
// It reports whether the parameters fit.
func (s *signature) short() (text string, complete bool) {
	text, complete = s.names(), true
	if len(text) > maxCall {
		text, complete = "(arguments not shown)", false
	}
	switch s.mark {
	case needsApproval:
		text += shortApproval
	case needsApprovalLater:
		text += shortApprovalLater
	}
	return s.name + text, complete
}

// long describes the tool in a few lines: its call, its purpose and its parameters. "…" marks omissions.
//
//	web_search(query: string, limit?: integer = 10) -> {results: {title: string, url: string}[]} [read-only]
//	  Searches the web.
//	  query: words to look for
//
// It has at most limit bytes, including the marks of data lines. Descriptions of parameters are left out first, then
// types. Hints and the mark of approval stay, however large the schema is.
func (s *signature) long(limit int) string {
	const mark, left = len(llm.DataMark), "\n  …"
	room := limit - mark - len("…") - len(s.hints+s.mark)
	call := s.call()
	if len(call) > room {
		call = s.name + s.names()
	}
	text := texts.Cut(call+s.result, room) + s.hints + s.mark
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

func hints(a plan.Annotations) string {
	switch {
	case a.ReadOnly():
		return " [read-only]"
	case a.Destructive():
		return " [destructive]"
	}
	return ""
}

// signatureOf returns the signature of a tool with what was learned of it.
func (p *Planner) signatureOf(t *plan.Tool) *signature {
	s := newSignature(t)
	if p.learned != nil {
		s.learn(p.learned(t))
	}
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
