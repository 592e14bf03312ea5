package rules

import (
	"cmp"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agenticnexus/agenticnexus/planner/rules/values"
)

// How well a parameter is filled.
const (
	takeRequired = 0.3 // the least score that a required parameter takes
	takeOptional = 1.9
	known        = 0.75 // below, a required argument is a guess
	sure         = 1.0  // below, it is weak evidence
	strong       = 4.0
)

// choice is what a parameter is given.
type choice struct {
	value      any
	score      float64
	start, end int  // bytes of the question; equal for what is not a part of it
	unclear    bool // the question can be read in more than one way
}

func (c choice) overlaps(start, end int) bool { return c.start < end && start < c.end }

// clashes reports whether two choices use the same part of the question, or the same result.
func (c choice) clashes(o choice) bool {
	if c.end == c.start {
		_, refers := c.value.(reference)
		return refers && c.value == o.value
	}
	return c.overlaps(o.start, o.end)
}

// filling is what the parameters of a tool are given.
type filling struct {
	chosen  map[string]choice
	missing []param  // required and open
	unclear []string // parameters left open because a value for them can be read in more than one way
}

// uses is how surely a word is part of an argument.
func (f filling) uses(w word) float64 {
	used := 0.0
	for _, c := range f.chosen {
		if c.overlaps(w.start, w.end) {
			used = max(used, min(1, c.score/2))
		}
	}
	return used
}

// guessed reports whether a required argument rests on weak evidence.
func (f filling) guessed(q param) bool {
	c, ok := f.chosen[q.Name]
	return ok && q.Required && c.score < known
}

// complete reports whether all that a tool requires is known, and not merely guessed unless the tool only reads.
func (f filling) complete(of *profile) bool {
	return len(f.missing) == 0 && (of.reads || !slices.ContainsFunc(of.params, f.guessed))
}

// filler fills the parameters of one tool from one question.
type filler struct {
	p       *Planner
	a       ask
	f       *profile
	earlier []*call
	texts   []values.Value // values and phrases
	digits  int            // how many numbers are written in digits
}

// fill gives each parameter at most one part of what is asked, so that all fit best together, and no part twice.
func (p *Planner) fill(a ask, f *profile, earlier []*call) filling {
	l := filler{p: p, a: a, f: f, earlier: earlier}
	l.a.values = l.parts()
	l.texts = slices.Concat(l.a.values, l.phrases())
	for _, v := range a.values {
		if row := form(v); row == "number" || row == "yearlike" {
			l.digits++
		}
	}
	return l.fill(f.params, 0)
}

// parts adds to the values what a tool may want of them: the parts of "owner/name", and a place with the region after it
// or the number before it.
func (l *filler) parts() []values.Value {
	out := slices.Clip(l.a.values)
	owned := slices.ContainsFunc(l.f.params, func(q param) bool { return q.Name == "owner" || q.Name == "org" })
	for i, v := range l.a.values {
		if owner, name, ok := strings.Cut(v.Text, "/"); owned && ok && v.Kind == values.Identifier &&
			!strings.Contains(name, "/") {
			left, right := v, v
			left.Text, left.End, left.Label = owner, v.Start+len(owner), "owner"
			right.Text, right.Start, right.Label = name, v.End-len(name), "repo"
			out = append(out, left, right)
		}
		if v.Kind == values.DateRange && len(v.Alternatives) == 0 { // "last week" for a first and a last day
			first, last := v, v
			first.Kind, first.Until, first.End, first.Cue, first.Label = values.Date, time.Time{}, (v.Start+v.End)/2, "from", "bound"
			last.Kind, last.Time, last.Until, last.Start, last.Cue, last.Label = values.Date, v.Until, time.Time{}, first.End, "to", "bound"
			out = append(out, first, last)
		}
		joined := v // "the folder reports in /tmp"
		for _, o := range l.a.values[i+1:] {
			paths := v.Kind == values.Path && o.Kind == values.Path && o.Start > v.End && o.Start-v.End < 12
			if paths && (o.Cue == "in" || o.Cue == "to") && !strings.ContainsAny(v.Text, "/\\*") &&
				strings.HasPrefix(o.Text, "/") {
				joined.Text, joined.End, joined.Label = path.Join(o.Text, v.Text), o.End, "region"
				out = append(out, joined)
			}
		}
		wide := v
		if i := slices.IndexFunc(l.a.words, func(w word) bool { return w.end+1 == v.Start }); i >= 0 && v.Kind == values.Name &&
			regionOf[strings.ToLower(l.a.text[l.a.words[i].start:v.End])] != "" {
			wide.Start, wide.End = l.a.words[i].start, v.End // "San Francisco" at the beginning of a sentence
		}
		for j, o := range l.a.values {
			switch {
			case v.Kind != values.Name:
			case j > i && o.Kind == values.Name && o.Start > wide.End && strings.TrimSpace(l.a.text[wide.End:o.Start]) == ",":
				wide.End = o.End
			case j < i && (o.Kind <= values.Ordinal || o.Kind == values.Identifier) && o.End < v.Start && strings.TrimSpace(l.a.text[o.End:v.Start]) == "":
				wide.Start = o.Start
			}
		}
		if wide.Start < v.Start || wide.End > v.End {
			wide.Text, wide.Label = l.a.text[wide.Start:wide.End], "region"
			out = append(out, wide)
		}
	}
	return out
}

func (l *filler) fill(params []param, depth int) filling {
	out := filling{chosen: map[string]choice{}}
	rows := make([][]choice, len(params))
	for i, q := range params {
		rows[i] = l.candidates(q)
	}
	for i, c := range assign(params, rows) {
		switch {
		case c == nil:
		case c.unclear: // asked about or left out, but no guess
			out.unclear = append(out.unclear, params[i].Name)
		default:
			out.chosen[params[i].Name] = *c
		}
	}
	for _, q := range params {
		if _, ok := out.chosen[q.Name]; ok {
			continue
		}
		if c, ok := l.inner(q, out, depth); ok {
			out.chosen[q.Name] = c
		} else if c, ok := settled(q); ok && q.Required {
			out.chosen[q.Name] = c
		} else if q.Required {
			out.missing = append(out.missing, q)
		}
	}
	return out
}

// inner fills an object, or a list of one object, whose fields the question gives.
func (l *filler) inner(q param, outer filling, depth int) (choice, bool) {
	s, list := q.Schema, kindOf(q.Schema) == "array" && q.Items != nil
	if list {
		s = q.Items
	}
	if kindOf(s) != "object" || len(s.Fields) == 0 || depth >= maxDepth-1 {
		return choice{}, false
	}
	inside := *l
	inside.texts = slices.DeleteFunc(slices.Clone(l.texts), func(v values.Value) bool {
		return slices.ContainsFunc(l.f.params, func(o param) bool { return outer.chosen[o.Name].overlaps(v.Start, v.End) })
	})
	r := profiler{lang: l.a.lang}
	fill := inside.fill(r.params(&profile{labels: stems{}, shared: map[string]int{}}, s, 0), depth+1)
	if len(fill.chosen) == 0 || len(fill.missing) > 0 {
		return choice{}, false
	}
	object, out := map[string]any{}, choice{score: strong, start: len(l.a.text)}
	for name, c := range fill.chosen {
		object[name] = c.value
		out.score = min(out.score, c.score)
		if c.end > c.start {
			out.start, out.end = min(out.start, c.start), max(out.end, c.end)
		}
	}
	out.value = object
	if list {
		out.value = []any{object}
	}
	out.start = min(out.start, out.end)
	return out, out.score >= least(q)
}

// describedDefault is how descriptions name what is taken when nothing is given.
var describedDefault = regexp.MustCompile(`(?i)\bdefaults?(?: value)?(?: is| to|:|=)? ?(?:to )?['"]?([\w.-]*\w)`)

// settled is what a parameter is given that the question does not mention: its default or its only choice.
func settled(q param) (choice, bool) {
	raw := q.Default
	if len(raw) == 0 && len(q.Enum) == 1 {
		raw = q.Enum[0]
	}
	if m := describedDefault.FindStringSubmatch(q.Description); len(raw) == 0 && m != nil {
		if raw = json.RawMessage(strings.ToLower(m[1])); kindOf(q.Schema) == "string" {
			raw = json.RawMessage(strconv.Quote(m[1]))
		}
	}
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil || v == nil {
		return choice{}, false
	}
	kind := map[byte]string{'"': "string", 't': "boolean", 'f': "boolean", '[': "array", '{': "object"}[raw[0]]
	fits := kindOf(q.Schema) == cmp.Or(kind, "number") || kind == "" && kindOf(q.Schema) == "integer" &&
		!strings.Contains(string(raw), ".")
	listed := len(q.Enum) == 0 || slices.Contains(choices(q.Schema), strings.Trim(string(raw), `"`))
	return choice{value: v, score: sure}, fits && listed
}

// candidates returns what a parameter could be given.
func (l *filler) candidates(q param) (out []choice) {
	switch kind := kindOf(q.Schema); {
	case kind == "array":
		return l.lists(q)
	case kind == "object":
		return nil
	case kind == "boolean":
		out = l.flags(q)
	case len(q.Enum) > 0:
		out = l.choices(q)
	default:
		out = l.codes(q)
	}
	for _, v := range l.texts {
		if c, ok := l.take(q, v); ok && (v.Kind != values.Phrase || len(q.Enum) == 0) {
			out = append(out, c)
		}
	}
	return append(out, l.references(q)...)
}
