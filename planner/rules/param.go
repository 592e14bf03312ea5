package rules

import (
	"cmp"
	"encoding/json"
	"math"
	"regexp"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/schema"
	"github.com/agenticnexus/agenticnexus/internal/search"
)

// Bounds on what is read of a schema.
const (
	maxParams   = 64
	maxChoices  = 20_000 // values of all enumerations of a schema
	maxExamples = 20     // of one parameter
)

// param is one property of an input schema.
type param struct {
	name        string
	kind        string // JSON Schema type; "" if unknown
	description string
	format      string
	required    bool
	enum        []any
	wide        map[string][]int // see wideIndex
	fallback    any              // default; nil if none
	minimum     *float64
	maximum     *float64
	items       *param  // of an array
	fields      []param // of an object
	nameStems   []string
	descStems   map[string]bool
	examples    []string
	listed      bool // the description lists the values: examples are all there is
}

// shape is a tool's input schema as far as arguments can be filled from language.
type shape struct {
	params []param
	ok     bool // the schema could be read
}

// readShape reads the fields of a schema. Of several alternatives for one of them, the first counts.
func readShape(raw json.RawMessage) shape {
	s, err := schema.Read(raw)
	if err != nil {
		return shape{}
	}
	var r shapeReader
	return shape{params: r.fields(s, 0), ok: true}
}

type shapeReader struct{ params, choices int } // so far

func (r *shapeReader) fields(s *schema.Schema, depth int) []param {
	var out []param
	for _, f := range s.Fields {
		if r.params++; r.params > maxParams {
			break
		}
		p := r.param(f.Name, f.Schema, depth)
		p.required = f.Required
		out = append(out, p)
	}
	return out
}

func (r *shapeReader) param(name string, s *schema.Schema, depth int) param {
	p := param{name: name, descStems: map[string]bool{}}
	for _, w := range search.Words(name) {
		p.nameStems = append(p.nameStems, search.Stem(w))
	}
	if s == nil {
		return p
	}
	p.fallback = decode(s.Default)
	title := s.Title
	p.description = s.Description
	for len(s.Types) == 0 && s.Enum == nil && len(s.Alternatives) > 0 {
		s = s.Alternatives[0]
		title, p.description = cmp.Or(title, s.Title), cmp.Or(p.description, s.Description)
		if p.fallback == nil {
			p.fallback = decode(s.Default)
		}
	}
	p.description = cmp.Or(p.description, title)
	if len(s.Types) > 0 {
		p.kind = s.Types[0]
	}
	p.format = s.Format
	// At least two values are kept: one would be a constant, none a free text.
	for _, v := range s.Enum[:min(len(s.Enum), max(2, maxChoices-r.choices))] {
		p.enum = append(p.enum, decode(v))
	}
	r.choices += len(p.enum)
	p.wide = wideIndex(p.enum)
	if p.fallback == nil {
		p.fallback = p.describedDefault()
	}
	p.minimum = bound(s.Bounds["minimum"], s.Bounds["exclusiveMinimum"], math.Inf(1))
	p.maximum = bound(s.Bounds["maximum"], s.Bounds["exclusiveMaximum"], math.Inf(-1))
	for _, w := range search.Words(clip(p.description, 600)) {
		if !search.IsStopWord(w) {
			p.descStems[search.Stem(w)] = true
		}
	}
	p.examples = examplesIn(p.description)
	for _, v := range s.Examples[:min(len(s.Examples), maxExamples)] {
		if text, ok := decode(v).(string); ok {
			p.examples = append(p.examples, text)
		}
	}
	p.listed = choiceList.MatchString(p.description)
	if depth < 3 {
		if p.kind == "array" {
			item := r.param(name, s.Items, depth+1)
			item.description += " " + p.description
			p.items = &item
		}
		if p.kind == "object" {
			p.fields = r.fields(s, depth+1)
		}
	}
	return p
}

// decode returns the value of JSON, nil if there is none.
func decode(raw json.RawMessage) (v any) {
	_ = json.Unmarshal(raw, &v) // an error leaves nil
	return v
}

// bound returns the outermost value that is allowed, nil if there is no bound. Of an exclusive bound, that is the next
// value towards the inside.
func bound(inclusive, exclusive json.Number, inside float64) *float64 {
	if f, err := inclusive.Float64(); err == nil {
		return &f
	}
	if f, err := exclusive.Float64(); err == nil {
		f = math.Nextafter(f, inside)
		return &f
	}
	return nil
}

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "")
	}
	return s
}

var (
	exampleLead  = regexp.MustCompile(`(?i)(?:e\.?g\.?,?|such as|for example,?|for instance,?|examples?:|like|options?:|one of|either|can be|could be)[:\s]+([^.;)\]]{2,160})`)
	choiceList   = regexp.MustCompile(`:\s+([^:;.(),]{1,40}(?:, [^:;.(),]{1,40})+,? or [^:;.(),]{1,40})`) // "Size: small, medium or large"
	quotedInText = regexp.MustCompile(`['"‘“` + "`" + `]([^'"’”` + "`" + `]{1,60})['"’”` + "`" + `]`)
)

// examplesIn finds the example values a description gives.
func examplesIn(description string) []string {
	description = clip(description, 1000)
	var out []string
	for _, m := range append(exampleLead.FindAllStringSubmatch(description, 4), choiceList.FindAllStringSubmatch(description, 1)...) {
		if q := quotedInText.FindAllStringSubmatch(m[1], 12); q != nil {
			for _, x := range q {
				out = append(out, x[1])
			}
			continue
		}
		for part := range strings.SplitSeq(strings.ReplaceAll(m[1], " or ", ", "), ",") {
			if part = strings.Trim(strings.TrimPrefix(strings.TrimSpace(part), "and "), " '\"`()"); part != "" && part != "etc" {
				out = append(out, part)
			}
		}
	}
	return out
}
