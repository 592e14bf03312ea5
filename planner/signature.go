package planner

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agenticnexus/agenticnexus/internal/short"
	"github.com/agenticnexus/agenticnexus/planner/llm"
	"github.com/agenticnexus/agenticnexus/planner/plan"
)

// Bounds of a signature. Schemas are untrusted: depth and width end the walk, whatever they refer to.
const (
	maxTypeDepth   = 5
	maxParameters  = 30
	maxChoices     = 12  // of an enum or union
	maxType        = 300 // bytes of one type
	maxExplanation = 120 // bytes about one parameter
	maxDescription = 500 // bytes about a tool
	maxName        = 200 // bytes
	maxSchema      = 256 << 10
	maxTypes       = 300 // types written for one tool
	maxReferences  = 30  // followed for one tool
)

// toolList shows tools to the model as one data block of at most room bytes, the last ones not if they are too many.
func toolList(tools []plan.Tool, room int) string {
	const source, marks = "the servers' descriptions of their tools", 100
	tools = tools[:min(len(tools), (room-marks)/minTool)]
	limit := min(maxTool, (room-marks)/len(tools))
	var blocks []string
	for _, t := range tools {
		blocks = append(blocks, signature(t, limit-1))
	}
	return llm.Data(source, strings.Join(blocks, "\n"))
}

// signature is a tool in a few lines: how it is called, what it is for, what its parameters mean.
//
//	web_search(query: string, limit?: integer = 10) -> {results: {title: string, url: string}[]} [read-only]
//	  Searches the web.
//	  query: words to look for
//
// The explanations of parameters go first when there is little room: limit counts bytes, the marks of data lines included.
func signature(t plan.Tool, limit int) string {
	tooLarge := len(t.InputSchema) > maxSchema
	if tooLarge {
		t.InputSchema = nil
	}
	if len(t.OutputSchema) > maxSchema {
		t.OutputSchema = nil
	}
	w := schemaWriter{root: t.InputSchema}
	parameters := properties(t.InputSchema)
	required := requiredNames(t.InputSchema)
	slices.SortStableFunc(parameters, func(a, b member) int { // what must be given first, else as declared
		return boolInt(!slices.Contains(required, a.name)) - boolInt(!slices.Contains(required, b.name))
	})
	var heads, notes []string
	if tooLarge {
		heads = append(heads, "…")
	}
	for i, p := range parameters {
		if i == maxParameters {
			heads = append(heads, "…")
			break
		}
		head := short.Line(p.name, maxName)
		if !slices.Contains(required, p.name) {
			head += "?"
		}
		head += ": " + short.Text(w.typeOf(p.value, 0), maxType)
		if d := readSchema(p.value).Default; len(d) > 0 && len(d) <= 40 {
			head += " = " + short.Line(string(d), maxName)
		}
		heads = append(heads, head)
		if about := readSchema(p.value).Description; about != "" {
			notes = append(notes, "\n  "+short.Line(p.name, maxName)+": "+short.Line(about, maxExplanation))
		}
	}
	text := short.Line(t.Name, maxName) + "(" + strings.Join(heads, ", ") + ")"
	if out := (&schemaWriter{root: t.OutputSchema}).typeOf(t.OutputSchema, 0); len(t.OutputSchema) > 0 {
		text += " -> " + short.Text(out, maxType)
	}
	text += hints(t.Annotations)
	const mark = len(llm.DataMark)
	text = short.Text(text, limit-mark-len("…"))
	about := short.Line(t.Description, maxDescription)
	if about == "" {
		about = short.Line(t.Title, maxDescription)
	}
	if room := limit - len(text) - 2*mark - len("\n  …"); about != "" && room > 0 {
		text += "\n  " + short.Text(about, min(room, maxDescription))
	}
	lines := 1 + strings.Count(text, "\n")
	for _, note := range notes {
		if lines++; len(text)+len(note)+lines*mark > limit {
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

// member is a member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf reads an object in its order; anything else has no members.
func membersOf(object json.RawMessage) []member {
	d := jsontext.NewDecoder(bytes.NewReader(object), jsontext.AllowDuplicateNames(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	var out []member
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			break
		}
		text := name.String()
		value, err := d.ReadValue()
		if err != nil {
			break
		}
		out = append(out, member{text, json.RawMessage(value.Clone())})
	}
	return out
}

func properties(schema json.RawMessage) []member { return membersOf(readSchema(schema).Properties) }

func requiredNames(schema json.RawMessage) []string {
	var names []string
	_ = json.Unmarshal(readSchema(schema).Required, &names) // a schema that is wrong requires nothing
	return names
}

// schemaFields are the keywords that a signature shows. Each is kept raw, so that a wrong one spoils no other.
type schemaFields struct {
	Properties, Required, Default json.RawMessage
	Type, Items, Enum, Const      json.RawMessage
	AnyOf, OneOf                  json.RawMessage
	Minimum, Maximum              json.RawMessage
	Ref, Format, Description      string
}

func readSchema(schema json.RawMessage) (s schemaFields) {
	var ref, format, description json.RawMessage
	fields := map[string]*json.RawMessage{
		"properties": &s.Properties, "required": &s.Required, "default": &s.Default,
		"type": &s.Type, "items": &s.Items, "enum": &s.Enum, "const": &s.Const, "anyOf": &s.AnyOf, "oneOf": &s.OneOf,
		"minimum": &s.Minimum, "maximum": &s.Maximum, "$ref": &ref, "format": &format, "description": &description,
	}
	for _, m := range membersOf(schema) {
		if field, ok := fields[m.name]; ok {
			*field = m.value
		}
	}
	s.Ref, s.Format, s.Description = stringOf(ref), stringOf(format), stringOf(description)
	return s
}

// stringOf is the value of a JSON string; anything else is none.
func stringOf(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// schemaWriter writes types of one schema.
type schemaWriter struct {
	root              json.RawMessage
	types, references int // so far
}

// typeOf writes a schema as a type.
func (w *schemaWriter) typeOf(schema json.RawMessage, depth int) string {
	w.types++
	if depth > maxTypeDepth || w.types > maxTypes {
		return "any"
	}
	s := readSchema(schema)
	if s.Ref == "" {
		return w.write(s, depth)
	}
	w.references++
	if w.references > maxReferences {
		return "any"
	}
	return w.typeOf(w.resolve(s.Ref), depth+1)
}

func (w *schemaWriter) write(s schemaFields, depth int) string {
	switch {
	case s.Const != nil:
		return short.Line(string(s.Const), maxName)
	case s.Enum != nil:
		return w.union(s.Enum, func(v json.RawMessage) string { return short.Line(string(v), maxName) })
	case s.AnyOf != nil:
		return w.union(s.AnyOf, func(v json.RawMessage) string { return w.typeOf(v, depth+1) })
	case s.OneOf != nil:
		return w.union(s.OneOf, func(v json.RawMessage) string { return w.typeOf(v, depth+1) })
	}
	var name string
	if json.Unmarshal(s.Type, &name) != nil {
		if len(s.Type) > 0 {
			return w.union(s.Type, func(v json.RawMessage) string { return strings.Trim(short.Line(string(v), 40), `"`) })
		}
		if s.Properties != nil {
			name = "object"
		}
	}
	switch name {
	case "":
		return "any"
	case "array":
		if s.Items == nil {
			return "any[]"
		}
		item := w.typeOf(s.Items, depth+1)
		if strings.Contains(item, " | ") && !strings.HasPrefix(item, "{") {
			item = "(" + item + ")"
		}
		return item + "[]"
	case "object":
		return w.object(s, depth)
	case "string":
		if s.Format != "" {
			return "string<" + short.Line(s.Format, 40) + ">"
		}
	case "integer", "number":
		if s.Minimum != nil || s.Maximum != nil {
			return short.Line(name+" "+string(s.Minimum)+".."+string(s.Maximum), 60)
		}
	}
	return short.Line(name, 40)
}

func (w *schemaWriter) object(s schemaFields, depth int) string {
	var required []string
	_ = json.Unmarshal(s.Required, &required) // a schema that is wrong requires nothing
	var parts []string
	for i, p := range membersOf(s.Properties) {
		if i == maxChoices {
			parts = append(parts, "…")
			break
		}
		name := short.Line(p.name, maxName)
		if !slices.Contains(required, p.name) {
			name += "?"
		}
		parts = append(parts, name+": "+w.typeOf(p.value, depth+1))
	}
	if len(parts) == 0 {
		return "object"
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// union writes a list of alternatives.
func (w *schemaWriter) union(list json.RawMessage, write func(json.RawMessage) string) string {
	var values []json.RawMessage
	if json.Unmarshal(list, &values) != nil || len(values) == 0 {
		return "any"
	}
	var parts []string
	for _, v := range values {
		if len(parts) == maxChoices {
			parts = append(parts, "…")
			break
		}
		if text := write(v); !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " | ")
}

// resolve follows a reference within the schema; others lead nowhere.
func (w *schemaWriter) resolve(ref string) json.RawMessage {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	at := w.root
	for i, part := range strings.Split(path, "/") {
		if i > 8 {
			return nil
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		members := membersOf(at)
		j := slices.IndexFunc(members, func(m member) bool { return m.name == part })
		if j < 0 {
			return nil
		}
		at = members[j].value
	}
	return at
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
