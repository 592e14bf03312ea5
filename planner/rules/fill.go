package rules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"path"
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

// overlaps reports whether an argument is a part of text[start:end].
func (f filling) overlaps(start, end int) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(f.chosen)), func(c choice) bool { return c.overlaps(start, end) })
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

// parts adds to the values what a tool may want of them: the parts of "owner/name", the ends of a range of days, a path
// with the folder it is in, and a place with the region after it or the number before it.
func (l *filler) parts() []values.Value {
	out, text := slices.Clip(l.a.values), l.a.text
	add := func(v values.Value, start, end int, text, label string) {
		v.Start, v.End, v.Text, v.Label = start, end, text, label
		out = append(out, v)
	}
	owned := slices.ContainsFunc(l.f.params, func(q param) bool { return q.Name == "owner" || q.Name == "org" })
	for i, v := range l.a.values {
		owner, name, ok := strings.Cut(v.Text, "/")
		switch {
		case v.Kind == values.Identifier && owned && ok && !strings.Contains(name, "/"):
			add(v, v.Start, v.Start+len(owner), owner, "owner")
			add(v, v.End-len(name), v.End, name, "repo")
		case v.Kind == values.DateRange && len(v.Alternatives) == 0: // "last week" for a first and a last day
			middle := (v.Start + v.End) / 2
			first, last := v, v
			first.Kind, first.Cue, first.Until = values.Date, "from", time.Time{}
			last.Kind, last.Cue, last.Time, last.Until = values.Date, "to", v.Until, time.Time{}
			add(first, v.Start, middle, v.Text, "bound")
			add(last, middle, v.End, v.Text, "bound")
		case (v.Kind == values.Path || v.Cue == "named" && list("changes").any(l.a.verb)) && !strings.ContainsAny(v.Text, "/\\*"):
			one := !slices.ContainsFunc(l.a.values[:i], func(o values.Value) bool { return o.Kind == values.Path })
			for _, o := range l.a.values[i+1:] { // "the folder reports in /tmp", but not "move a.txt and b.txt to /tmp"
				near, end := o.Start-v.End < 12, v.End
				if near {
					end = o.End
				}
				if o.Kind == values.Path && strings.HasPrefix(o.Text, "/") && (o.Cue == "in" || o.Cue == "to" && one && near) {
					v.Kind = values.Path
					add(v, v.Start, end, path.Join(o.Text, v.Text), "region")
				} else if o.Kind != values.Path || strings.ContainsAny(o.Text, "/\\*") {
					break
				}
			}
		case v.Kind == values.Name:
			start, end := v.Start, v.End
			if i := slices.IndexFunc(l.a.words, func(w word) bool { return w.end+1 == v.Start }); i >= 0 &&
				table().regionOf[strings.ToLower(text[l.a.words[i].start:v.End])] != "" {
				start = l.a.words[i].start // "San Francisco" at the beginning of a sentence
			}
			for j, o := range l.a.values {
				numbered := o.Kind <= values.Ordinal || o.Kind == values.Identifier
				switch {
				case j > i && o.Kind == values.Name && o.Start > end && strings.TrimSpace(text[end:o.Start]) == ",":
					end = o.End
				case j < i && numbered && o.End < v.Start && strings.TrimSpace(text[o.End:v.Start]) == "":
					start = o.Start
				}
			}
			if start < v.Start || end > v.End {
				add(v, start, end, text[start:end], "region")
			}
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
		case c.unclear, twin(params, rows, i, *c), l.offered(*c): // asked about or left out, but no guess
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

// alternative is how another value follows a value.
var alternative = lazy(`(?i)^["'”»]?,? (?:or|oder|ou|o|u) `)

// offered reports whether what a write would be given is one of several: "delete contact C-1 or C-2".
func (l *filler) offered(c choice) bool {
	return !l.f.reads && c.start < c.end && alternative().MatchString(l.a.text[c.end:])
}

// twin reports whether a number suits another optional parameter as well as i: the 5 of "5 lines" is no head and no tail.
func twin(params []param, rows [][]choice, i int, c choice) bool {
	for j, o := range params {
		same := func(d choice) bool { return d.clashes(c) && d.score > c.score-0.1 }
		if j != i && !o.Required && !params[i].Required && numeric(kindOf(o.Schema)) && slices.ContainsFunc(rows[j], same) {
			return true
		}
	}
	return false
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
var describedDefault = lazy(`(?i)\bdefaults?(?: value)?(?: is| to|:|=)? ?(?:to )?['"]?([\w.-]*\w)`)

// settled is what a parameter is given that the question does not mention: its default or its only choice.
func settled(q param) (choice, bool) {
	raw := q.Default
	if len(raw) == 0 && len(q.Enum) == 1 {
		raw = q.Enum[0]
	}
	if m := describedDefault().FindStringSubmatch(q.Description); len(raw) == 0 && m != nil {
		if raw = json.RawMessage(strings.ToLower(m[1])); kindOf(q.Schema) == "string" {
			raw = json.RawMessage(strconv.Quote(m[1]))
		}
	}
	var v any
	if json.Unmarshal(raw, &v) != nil || v == nil {
		return choice{}, false
	}
	kind := map[byte]string{'"': "string", 't': "boolean", 'f': "boolean", '[': "array", '{': "object"}[raw[0]]
	whole := kind == "" && !bytes.Contains(raw, []byte("."))
	fits := kindOf(q.Schema) == cmp.Or(kind, "number") || kindOf(q.Schema) == "integer" && whole
	listed := len(q.Enum) == 0 || slices.Contains(choices(q.Schema), strings.Trim(string(raw), `"`))
	return choice{value: v, score: sure}, fits && listed
}

// candidates returns what a parameter could be given.
func (l *filler) candidates(q param) (out []choice) {
	switch kindOf(q.Schema) {
	case "array":
		return l.lists(q)
	case "object":
		return nil
	case "boolean":
		out = l.flags(q)
	default:
		out = l.choices(q)
	}
	for _, v := range l.texts {
		if c, ok := l.take(q, v); ok && (v.Kind != values.Phrase || len(q.Enum) == 0) {
			out = append(out, c)
		}
	}
	return append(out, l.references(q)...)
}
